"""A model file, checked before llama.cpp sees it: complete, of the right kind, and what it says of itself.

Knows the GGUF format and the names of its keys; knows no llama.cpp, no prompts, no memory limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import xxhash

from localctx.engine.architectures import NOT_LANGUAGE_MODELS, ROPE_TYPES
from localctx.engine.gguf_reader import LazyArray, RawHeader, TensorInfo, Value, display, read_raw
from localctx.engine.shards import check_set, resolve
from localctx.errors import ModelError

__all__ = [
    "GGUFHeader",
    "LazyArray",
    "TensorInfo",
    "Value",
    "chat_template",
    "display",
    "fingerprint",
    "missing_template",
    "open_embedding_model",
    "open_model",
    "open_reranking_model",
    "resolve",
]

_N_WINDOWS = 64
_WINDOW_BYTES = 1 << 16
_EMBEDDING_POOLINGS, _RANK_POOLING = (1, 2, 3), 4
_POOLING_KINDS = {
    1: "an embedding model",
    2: "an embedding model",
    3: "an embedding model",
    4: "a reranking model",
}


@dataclass(frozen=True, slots=True)
class GGUFHeader:
    """The headers of all files of a model as one. `metadata` is the first file's, `tensors` all files';
    `overrides` are the values that were replaced in it, KEY=TYPE:VALUE.
    """

    path: Path
    files: tuple[RawHeader, ...]
    metadata: Mapping[str, Value]
    tensors: tuple[TensorInfo, ...]
    overrides: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, first shard first."""
        return tuple(file.path for file in self.files)

    @property
    def version(self) -> int:
        """GGUF version, 2 or 3."""
        return self.files[0].version

    @property
    def architecture(self) -> str:
        """llama.cpp's name of the architecture; empty when the file has none."""
        return self.text("general.architecture")

    @property
    def is_known_architecture(self) -> bool:
        """Whether the pinned llama.cpp lists the architecture."""
        return self.architecture in ROPE_TYPES

    @property
    def data_offset(self) -> int:
        """Where the tensor data of the first file starts, in bytes."""
        return self.files[0].data_offset

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def size_expected(self) -> int:
        """Size that the tensor tables ask for, at least."""
        return sum(file.size_expected for file in self.files)

    @property
    def weights_bytes(self) -> int:
        """Size of the tensors; of the data area where a tensor's type is unknown."""
        if any(tensor.size_bytes is None for tensor in self.tensors):
            return sum(file.size_bytes - file.data_offset for file in self.files)
        return sum(tensor.size_bytes or 0 for tensor in self.tensors)

    def arch_key(self, name: str) -> str:
        """The full name of an architecture's own key: "context_length" → "llama.context_length"."""
        return f"{self.architecture}.{name}"

    def integer(self, key: str, default: int = 0) -> int:
        """A whole number; default when missing or of another type."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def number(self, key: str, default: float = 0.0) -> float:
        """A number as float; default when missing or of another type."""
        value = self.metadata.get(key)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default

    def text(self, key: str, default: str = "") -> str:
        """A string; default when missing or of another type."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else default

    def flag(self, key: str, default: bool | None = None) -> bool | None:
        """A truth value; default when missing or of another type."""
        value = self.metadata.get(key)
        return value if isinstance(value, bool) else default

    def per_layer(self, key: str, n_layer: int, default: int = 0) -> tuple[int, ...]:
        """One whole number per layer, from a single one or an array; what is missing is `default`."""
        value = self.metadata.get(key)
        if isinstance(value, tuple):
            values = [int(v) if isinstance(v, int) else default for v in value[:n_layer]]
            return tuple(values + [default] * (n_layer - len(values)))
        return (self.integer(key, default),) * n_layer

    def array_length(self, key: str) -> int:
        """Number of elements of an array, 0 when it is missing."""
        value = self.metadata.get(key)
        return len(value) if isinstance(value, tuple | LazyArray) else 0


def open_model(path: Path) -> GGUFHeader:
    """The headers of all files of a language model, given any one of them.

    Raises ModelError, one line, for a file that is missing, cut short, damaged, or no language model.
    """
    header = _open(path)
    _check_kind(header)
    return header


def open_embedding_model(path: Path) -> GGUFHeader:
    """The same of a model that turns texts into vectors. Raises ModelError for any other."""
    return _pooling(path, _EMBEDDING_POOLINGS, "an embedding model", "localctx models pull all-minilm-l6-v2")


def open_reranking_model(path: Path) -> GGUFHeader:
    """The same of a model that judges a question and a passage together. Raises ModelError for any other."""
    return _pooling(path, (_RANK_POOLING,), "a reranking model", "a cross-encoder in GGUF, as bge-reranker")


def _pooling(path: Path, wanted: tuple[int, ...], what: str, hint: str) -> GGUFHeader:
    header = _open(path)
    if header.integer(header.arch_key("pooling_type")) not in wanted or not header.tensors:
        raise ModelError(f"{display(header.path)}: not {what}", hint)
    return header


def _open(path: Path) -> GGUFHeader:
    files = tuple(read_raw(shard) for shard in resolve(path))
    check_set(files)
    tensors = tuple(tensor for file in files for tensor in file.tensors)
    return GGUFHeader(files[0].path, files, files[0].metadata, tensors)


def _check_kind(header: GGUFHeader) -> None:
    where, architecture = display(header.path), header.architecture
    kind = header.text("general.type")
    if kind == "adapter" or "adapter.type" in header.metadata:
        raise ModelError(
            f"{where}: a LoRA adapter, not a model", "pass it with --lora, next to its base model"
        )
    name = "clip" if kind == "mmproj" else kind if kind in NOT_LANGUAGE_MODELS else architecture
    what = NOT_LANGUAGE_MODELS.get(name) or _POOLING_KINDS.get(
        header.integer(header.arch_key("pooling_type"))
    )
    if what is not None:
        raise ModelError(f"{where}: {what}, not a language model", "choose a model that generates text")
    if not architecture:
        raise ModelError(
            f"{where}: does not say which architecture it is", "choose a language model in GGUF format"
        )
    if not header.tensors:
        unknown = (
            ""
            if header.is_known_architecture
            else f", architecture {architecture[:80]!r} unknown to llama.cpp"
        )
        raise ModelError(
            f"{where}: vocabulary or metadata only, without weights{unknown}", "download the full model file"
        )


def chat_template(header: GGUFHeader) -> str | None:
    """The file's chat template, the default one of several; None without any."""
    for key in ("tokenizer.chat_template", "tokenizer.chat_template.default"):
        template = header.text(key)
        if template:
            return template
    names = sorted(key for key in header.metadata if key.startswith("tokenizer.chat_template."))
    return next((header.text(key) for key in names if header.text(key)), None)


def missing_template(header: GGUFHeader) -> str:
    """Why chat_template() gives none."""
    for key, value in header.metadata.items():
        if key.startswith("tokenizer.chat_template") and isinstance(value, LazyArray):
            return f"the model's chat template is too long ({value.size_bytes:,} bytes)"
    return "the model file has no chat template"


def fingerprint(header: GGUFHeader) -> str:
    """xxh3-128, in hex, of each file's header, its size, and 64 windows of 64 KiB spread over its data.

    Two models differ in it as soon as a metadata value, a tensor's type or shape, or anything inside a
    window differs; a change of a few bytes between windows goes unseen. So do two that differ in what was
    replaced. It reads 4 MiB of a large file.
    """
    digest = xxhash.xxh3_128()
    for line in header.overrides:
        digest.update(line.encode("utf-8", "surrogateescape") + b"\0")
    for file in header.files:
        digest.update(file.size_bytes.to_bytes(8, "little"))
        with file.path.open("rb") as stream:
            _update(digest, stream.read, file.data_offset)
            n_data = file.size_bytes - file.data_offset
            n_windows = min(_N_WINDOWS, -(-n_data // _WINDOW_BYTES))
            for i in range(n_windows):
                last = n_data - _WINDOW_BYTES
                stream.seek(file.data_offset + max(0, last * i // max(1, n_windows - 1)))
                digest.update(stream.read(_WINDOW_BYTES))
    return digest.hexdigest()


def _update(digest: xxhash.xxh3_128, read: Callable[[int], bytes], n_bytes: int) -> None:
    """Hash the next n_bytes, a mebibyte at a time."""
    while n_bytes > 0:
        data = read(min(n_bytes, 1 << 20))
        if not data:
            return
        digest.update(data)
        n_bytes -= len(data)
