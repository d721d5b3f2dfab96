"""Says what a file that is no GGUF looks like, from its first bytes. Knows no paths."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Lookalike", "describe"]


@dataclass(frozen=True, slots=True)
class Lookalike:
    """What the bytes look like, and what to do."""

    what: str
    hint: str = "name a .gguf file"


_DOWNLOAD = "download the model file itself"
_CONVERT = "convert it with llama.cpp's convert_hf_to_gguf.py, or download a .gguf"
_OLD = Lookalike("an old GGML/GGJT model, which llama.cpp no longer reads", "download the model as .gguf")
_MAGICS: tuple[tuple[bytes, Lookalike], ...] = (
    (b"FUGG", Lookalike("a big-endian GGUF", "download the little-endian file")),
    (
        b"version https://git-lfs",
        Lookalike("a Git LFS pointer, not the file it stands for", "git lfs pull, or " + _DOWNLOAD),
    ),
    (b"tjgg", _OLD),
    (b"lmgg", _OLD),
    (b"fmgg", _OLD),
    (b"algg", Lookalike("an old GGML LoRA adapter", "convert it to GGUF and pass it with --lora")),
    (b"\x80\x02", Lookalike("a PyTorch checkpoint (pickle)", _CONVERT)),
    (b"\x80\x03", Lookalike("a PyTorch checkpoint (pickle)", _CONVERT)),
    (b"\x80\x04", Lookalike("a PyTorch checkpoint (pickle)", _CONVERT)),
    (b"\x1f\x8b", Lookalike("gzip data", "unpack it first")),
    (b"\x28\xb5\x2f\xfd", Lookalike("zstd data", "unpack it first")),
    (b"7z\xbc\xaf", Lookalike("a 7z archive", "unpack it first")),
    (b"%PDF", Lookalike("a PDF", "the model goes to --model, the document stands alone")),
    (b"\x7fELF", Lookalike("a program")),
    (b"\x89HDF", Lookalike("an HDF5 file", _CONVERT)),
)
_HTML = re.compile(rb"\s*(<!doctype html|<html|<head|<body|<\?xml)", re.IGNORECASE)
_MIN_TEXT_SHARE = 0.95


def describe(head: bytes) -> Lookalike | None:
    """What a file with these first bytes looks like; None when it begins as a GGUF does."""
    if head[:4] == b"GGUF":
        return None
    if not head:
        return Lookalike("the file is empty", _DOWNLOAD)
    if not head.strip(b"\0"):
        return Lookalike("it begins with zeros: a download that was never filled", "download it again")
    for magic, found in _MAGICS:
        if head.startswith(magic):
            return found
    if head.startswith(b"PK\x03\x04"):
        torch = b"data.pkl" in head[:256]
        return (
            Lookalike("a PyTorch checkpoint (zip)", _CONVERT)
            if torch
            else Lookalike("a zip archive", "unpack it first")
        )
    if head[8:10] == b'{"' and int.from_bytes(head[:8], "little") < 1 << 32:
        return Lookalike("a safetensors file", _CONVERT)
    if _HTML.match(head.removeprefix(b"\xef\xbb\xbf")):
        return Lookalike("an HTML or XML page, perhaps a login or error page", _DOWNLOAD)
    if head.lstrip()[:1] in (b"{", b"["):
        return Lookalike("JSON text, perhaps an error message", _DOWNLOAD)
    if sum(byte in b"\t\n\r" or byte >= 32 for byte in head) >= _MIN_TEXT_SHARE * len(head):
        return Lookalike("text, not a model")
    return Lookalike(f"unknown content (begins with {head[:4].hex(' ')})")
