"""Options that llama.cpp cannot serve, found before anything is loaded. Is handed llama_cpp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localctx.engine.devices import Device
from localctx.engine.ggml_types import CACHE_TYPES, TYPE_SIZES, type_id
from localctx.engine.gguf import GGUFHeader
from localctx.engine.model_facts import kv_shape, n_layer
from localctx.engine.options import EngineOptions
from localctx.engine.placing import Placing, place
from localctx.engine.rope_scaling import check_rope
from localctx.errors import UsageError

__all__ = ["check_options"]

_NO_FLASH_ATTENTION = frozenset(("grok",))
_GPU_TYPES = ("f16", "bf16", "q8_0", "q4_0")
"""Cache types for which GPU builds have attention kernels by default, K and V alike."""


def check_options(
    lib: Any, header: GGUFHeader, options: EngineOptions, find_devices: Callable[[], list[Device]]
) -> Placing:
    """Where the tensors go. Raises UsageError for types, scalings and devices that are not there, or not for
    this model.
    """
    devices = find_devices()
    placing = place(header, options, devices, can_offload=bool(lib.llama_supports_gpu_offload()))
    if placing.split_mode == "tensor" and not options.flash_attn:
        raise UsageError("--split-mode tensor needs flash attention", "--flash-attn on")
    for name in (options.type_k, options.type_v):
        if name not in CACHE_TYPES:
            raise UsageError(f"KV cache type {name!r} is not known", f"one of {', '.join(CACHE_TYPES)}")
    if (options.type_k, options.type_v) != ("f16", "f16"):
        _check_types(header, options)
        if placing.n_gpu_layers and not options.force:
            _check_gpu_types(options, devices)
    check_rope(header, options.rope, options.force)
    return placing


def _check_types(header: GGUFHeader, options: EngineOptions) -> None:
    """Against flash attention, the class of model and the size of its heads."""
    shape, wanted = kv_shape(header), f"type_k={options.type_k},type_v={options.type_v}"
    is_quantised = {name: _block(name) > 1 for name in (options.type_k, options.type_v)}
    has_flash = options.flash_attn and header.architecture not in _NO_FLASH_ATTENTION
    if is_quantised[options.type_v] and not has_flash:
        raise UsageError(
            f"type_v={options.type_v}: a quantised V cache needs flash attention",
            "type_v=f16" if options.flash_attn else "--flash-attn on, or type_v=f16",
        )
    if shape.is_recurrent:
        raise UsageError(f"{wanted}: this model is recurrent and has no KV cache", "leave the types out")
    if shape.is_mla and options.type_k != options.type_v:
        raise UsageError(f"{wanted}: compressed KV (MLA) has one type", "the same type for both")
    for letter, name, head in zip("kv", (options.type_k, options.type_v), _head_dims(header), strict=True):
        if head % _block(name):
            raise UsageError(
                f"type_{letter}={name}: blocks of {_block(name)} values do not divide this model's heads of"
                f" {head}",
                "f16, bf16 or f32",
            )


def _check_gpu_types(options: EngineOptions, devices: list[Device]) -> None:
    """Against the kernels that a GPU build has; without one attention is computed on the CPU, slowly."""
    types = (options.type_k, options.type_v)
    if any(device.is_gpu for device in devices) and (types[0] != types[1] or types[0] not in _GPU_TYPES):
        raise UsageError(
            f"type_k={types[0]},type_v={types[1]}: GPU builds have no attention kernel for this pair",
            f"one of {', '.join(_GPU_TYPES)} for both, --gpu-layers 0, or --force",
        )


def _block(name: str) -> int:
    return TYPE_SIZES[type_id(name)][1]


def _head_dims(header: GGUFHeader) -> tuple[int, int]:
    """Elements of a key head and of a value head."""
    heads = max(1, *header.per_layer(header.arch_key("attention.head_count"), n_layer(header)), 1)
    head = header.integer(header.arch_key("embedding_length")) // heads
    return (
        header.integer(header.arch_key("attention.key_length"), head),
        header.integer(header.arch_key("attention.value_length"), head),
    )
