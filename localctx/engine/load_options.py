"""Options that llama.cpp cannot serve, found before anything is loaded. Is handed llama_cpp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localctx.engine.devices import Device
from localctx.engine.ggml_types import CACHE_TYPES
from localctx.engine.new_context import ROPE_SCALINGS
from localctx.engine.options import EngineOptions
from localctx.errors import UsageError

__all__ = ["check_options", "n_gpu_layers"]


def check_options(lib: Any, options: EngineOptions, find_devices: Callable[[], list[Device]]) -> None:
    """Raises UsageError for types, scalings and devices that are not there."""
    for name in (options.type_k, options.type_v):
        if name not in CACHE_TYPES:
            raise UsageError(f"KV cache type {name!r} is not known", f"one of {', '.join(CACHE_TYPES)}")
    if options.rope.scaling is not None and options.rope.scaling not in ROPE_SCALINGS:
        raise UsageError(
            f"RoPE scaling {options.rope.scaling!r} is not known", f"one of {', '.join(ROPE_SCALINGS)}"
        )
    if options.gpu_layers not in ("auto", "0") and not lib.llama_supports_gpu_offload():
        raise UsageError(
            f"--gpu-layers {options.gpu_layers}: no GPU can be used"
            f" (devices: {', '.join(device.name for device in find_devices())})",
            "--gpu-layers auto, or install a GPU build: make install GPU=cuda",
        )


def n_gpu_layers(lib: Any, options: EngineOptions) -> int:
    """llama.cpp's number: negative for all."""
    if options.gpu_layers in ("auto", "all"):
        return -1 if lib.llama_supports_gpu_offload() else 0
    return int(options.gpu_layers)
