"""LoRA adapters: files checked against the model before anything is loaded, then laid over every context.

Knows GGUF headers; is handed llama_cpp. What an adapter changes is part of the model's fingerprint, so that
KV made without it is never served with it.
"""

from __future__ import annotations

import ctypes
import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import xxhash

from localctx.engine.gguf import GGUFHeader, display, fingerprint
from localctx.engine.gguf_reader import RawHeader, TensorInfo, read_raw
from localctx.engine.llama_log import logged
from localctx.engine.options import Adapter
from localctx.errors import ModelError, UsageError
from localctx.values import ModelInfo

__all__ = ["Adapters", "parse_adapters", "with_adapters"]

_A, _B = ".lora_a", ".lora_b"
_FLIPPED = "token_embd.weight"  # its rows are looked up, not multiplied


def parse_adapters(text: str) -> tuple[Adapter, ...]:
    """FILE[:SCALE],... as llama.cpp writes it; a number after the last colon is the scale.

    Raises UsageError for a name that is missing and a scale that changes nothing.
    """
    adapters = []
    for item in text.split(",") if text else ():
        name, colon, number = item.rpartition(":")
        try:
            scale = float(number) if colon else None
        except ValueError:
            scale = None
        path = item if scale is None else name
        if not path.strip():
            raise UsageError(f"--lora {item!r} names no file", "--lora FILE or --lora FILE:SCALE")
        taken = 1.0 if scale is None else ctypes.c_float(scale).value  # llama.cpp's numbers
        if taken == 0 or not math.isfinite(taken):
            raise UsageError(f"--lora {item!r}: a scale of {number} is of no use", "leave it out for 1")
        adapters.append(Adapter(Path(path), 1.0 if scale is None else scale))
    return tuple(adapters)


def with_adapters(info: ModelInfo, header: GGUFHeader, adapters: Sequence[Adapter]) -> ModelInfo:
    """The model's facts under the adapters: another fingerprint, the same without any.

    Reads the adapters' headers. Raises ModelError, one line, for a file that is missing, no LoRA, or made for
    another model.
    """
    if not adapters:
        return info
    digest = xxhash.xxh3_128(f"{info.fingerprint}\n".encode())
    tensors = {tensor.name: tensor for tensor in header.tensors}
    for adapter in adapters:
        raw = read_raw(adapter.path)
        _check_kind(raw, header, info.name)
        _check_tensors(raw, tensors, info.name)
        alone = GGUFHeader(raw.path, (raw,), raw.metadata, raw.tensors)
        digest.update(f"{fingerprint(alone)} {adapter.scale:.9g}\n".encode())
    return dataclasses.replace(info, fingerprint=digest.hexdigest())


def _check_kind(raw: RawHeader, header: GGUFHeader, name: str) -> None:
    """Whether the file is a LoRA adapter for this architecture that is in force from the first token on."""
    where, metadata = display(raw.path), raw.metadata
    if metadata.get("general.type") != "adapter":
        is_model = "general.architecture" in metadata and metadata.get("general.type", "model") == "model"
        what = "a model, not a LoRA adapter" if is_model else "not a LoRA adapter"
        raise ModelError(
            f"{where}: {what}", "models go to --model" if is_model else "name a LoRA in GGUF format"
        )
    if metadata.get("adapter.type") != "lora":
        kind = str(metadata.get("adapter.type", "unknown"))[:40]
        raise ModelError(f"{where}: an adapter of type {kind!r}, not a LoRA", "name a LoRA in GGUF format")
    architecture = str(metadata.get("general.architecture", ""))[:80]
    if architecture != header.architecture:
        raise ModelError(
            f"{where}: a LoRA for architecture {architecture!r}; {name} is {header.architecture!r}",
            "use the model that it was trained on",
        )
    if any(key.startswith("adapter.alora.") for key in metadata):
        raise ModelError(
            f"{where}: a LoRA that some words switch on (aLoRA), which is not supported", "name a plain LoRA"
        )


def _check_tensors(raw: RawHeader, tensors: Mapping[str, TensorInfo], name: str) -> None:
    """Whether every matrix of the adapter has its place in the model."""
    where, hint = display(raw.path), "use the model that it was trained on"
    pairs: dict[str, dict[str, TensorInfo]] = {}
    for tensor in raw.tensors:
        base, half = tensor.name[: -len(_A)], tensor.name[-len(_A) :]
        if half not in (_A, _B):
            if not tensor.name.endswith("_norm.weight"):  # llama.cpp ignores those of chat adapters
                raise ModelError(f"{where}: {tensor.name[:80]!r} is no part of a LoRA", "convert it again")
            continue
        pairs.setdefault(base, {})[half] = tensor
    if not pairs:
        raise ModelError(f"{where}: a LoRA without any matrix", "download it again")
    for base, pair in pairs.items():
        if base not in tensors:
            raise ModelError(f"{where}: a LoRA for another model: {name} has no {base[:80]!r}", hint)
        if len(pair) != 2:
            raise ModelError(f"{where}: half of {base[:80]!r} is missing", "download it again")
        if not _fits(tensors[base], pair[_A], pair[_B]):
            raise ModelError(f"{where}: a LoRA for a model of another size ({base[:80]!r})", hint)


def _fits(base: TensorInfo, a: TensorInfo, b: TensorInfo) -> bool:
    """Whether B·A has the shape of the model's matrix; shapes are [columns, rows, ...]."""
    if any(len(tensor.shape) < 2 for tensor in (base, a, b)):
        return False
    if base.name == _FLIPPED:
        return base.shape[0] == b.shape[1] and base.shape[1] == a.shape[1] and a.shape[0] == b.shape[0]
    return base.shape[0] == a.shape[0] and base.shape[1] == b.shape[1] and a.shape[1] == b.shape[0]


class Adapters:
    """The adapters of one model, loaded with its weights and freed by llama.cpp with them."""

    def __init__(self, adapters: Sequence[Adapter]) -> None:
        self._adapters = tuple(adapters)
        self._handles: list[Any] = []

    def load(self, lib: Any, weights: int) -> None:
        """Load them beside the weights. Raises ModelError with llama.cpp's reason."""
        for adapter in self._adapters[len(self._handles) :]:
            handle, log = logged(lib, partial(_load, lib, weights, adapter.path), lib.llama_adapter_lora_free)
            if not handle:
                raise ModelError(f"{display(adapter.path)}: llama.cpp cannot load it: {log.error()}")
            self._handles.append(handle)

    def apply(self, lib: Any, context: int) -> None:
        """Put them in force in a new context. Raises ModelError when llama.cpp refuses."""
        n = len(self._handles)
        if not n:
            return
        handles = (lib.llama_adapter_lora_p_ctypes * n)(*self._handles)
        scales = (ctypes.c_float * n)(*(adapter.scale for adapter in self._adapters))
        if lib.llama_set_adapters_lora(context, handles, n, scales):
            raise ModelError("llama.cpp does not take the LoRA adapters", "leave --lora out")


def _load(lib: Any, weights: int, path: Path, _: object) -> Any:
    """llama.cpp's handle; null where it refuses."""
    return lib.llama_adapter_lora_init(weights, os.fsencode(path))
