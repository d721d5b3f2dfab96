"""Bytes a model will take, from its header alone, and whether they fit. Knows no llama.cpp and loads nothing.

Weights are file pages when mapped: they can be dropped and read again, so they do not kill a process, but a
model larger than the memory it gets runs at the speed of the disk. So: cache and buffers must fit in free
memory, or OutOfMemory; weights beyond it are a notice. Under an address-space limit (ulimit -v) everything
counts. Weights that llama.cpp copies into a layout of its own are ordinary memory and count too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from localctx.engine.ggml_types import row_bytes
from localctx.engine.gguf import GGUFHeader, TensorInfo
from localctx.engine.memory import Available, format_bytes
from localctx.engine.model_facts import KVShape, kv_shape, n_layer
from localctx.errors import OutOfMemory

__all__ = [
    "CELL_STEP",
    "ContextSettings",
    "MemoryEstimate",
    "estimate",
    "kv_bytes",
    "largest_n_ctx",
    "require",
    "require_gpu",
]

CELL_STEP = 256
"""llama.cpp rounds the cells of a cache up to a multiple of this."""
_FIXED_BYTES = 16 << 20  # contexts, graphs, samplers
_MASK_BYTES = 2  # per cell and token of a batch
_EMBD_ROWS, _FF_ROWS = 7, 3  # rows of f32 per token alive at once; measured: 4 and 3
_CANDIDATE_BYTES = 12  # per token of the vocabulary while a sampler looks at it
_REPACKED = frozenset(("q2_K", "q4_0", "q4_K", "iq4_nl", "mxfp4"))  # on some CPU, as measured with AVX2
_MAX_CTX = 1 << 31


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """What else decides the size of a context: tokens per batch, sequences, rows of logits beyond one a
    sequence, cache types, layers on GPUs, and tensors that are moved from where their layer is: name →
    whether to a GPU.
    """

    n_ubatch: int = 512
    n_seq: int = 1
    n_outputs: int = 0
    type_k: str = "f16"
    type_v: str = "f16"
    n_gpu_layers: int = 0
    moved: Mapping[str, bool] = field(default_factory=dict)


_DEFAULTS = ContextSettings()


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes on the host for a context of n_ctx cells; `vram_bytes` is what GPUs take, `copied_bytes` the part
    of the weights that is no file page.
    """

    weights_bytes: int
    kv_bytes: int
    compute_bytes: int
    n_ctx: int
    vram_bytes: int = 0
    copied_bytes: int = 0

    @property
    def total(self) -> int:
        """Weights, cache and buffers on the host."""
        return self.weights_bytes + self.kv_bytes + self.compute_bytes

    @property
    def unreclaimable(self) -> int:
        """What cannot be dropped and read again."""
        return self.kv_bytes + self.compute_bytes + self.copied_bytes


def _round_cells(n_cells: int) -> int:
    return math.ceil(n_cells / CELL_STEP) * CELL_STEP


def kv_bytes(shape: KVShape, n_ctx: int, settings: ContextSettings = _DEFAULTS) -> int:
    """Bytes of a unified cache of n_ctx cells. KeyError for an unknown type."""
    return sum(_kv_per_layer(shape, n_ctx, settings)) + shape.state_bytes * settings.n_seq


def _kv_per_layer(shape: KVShape, n_ctx: int, settings: ContextSettings) -> list[int]:
    n_cells = _round_cells(n_ctx)
    n_window = _round_cells(min(n_cells, shape.window * settings.n_seq + settings.n_ubatch))
    return [
        (row_bytes(settings.type_k, k) + row_bytes(settings.type_v, v)) * (n_window if windowed else n_cells)
        for k, v, windowed in zip(shape.k_elements, shape.v_elements, shape.windowed, strict=True)
    ]


def estimate(header: GGUFHeader, n_ctx: int, settings: ContextSettings = _DEFAULTS) -> MemoryEstimate:
    """Host and GPU bytes of one context. Layers go to the GPU from the last one on, the output layer when
    n_gpu_layers exceeds the layers.
    """
    shape, layers = kv_shape(header), n_layer(header)
    per_layer = _kv_per_layer(shape, n_ctx, settings)
    n_gpu = min(layers, settings.n_gpu_layers)
    first_gpu, with_output = layers - n_gpu, settings.n_gpu_layers > layers
    on_gpu = [
        tensor
        for tensor in header.tensors
        if settings.moved.get(tensor.name, _is_on_gpu(tensor.name, first_gpu, with_output))
    ]
    gpu_weights = sum(tensor.size_bytes or 0 for tensor in on_gpu)
    copied = sum(map(_copied_bytes, header.tensors)) - sum(map(_copied_bytes, on_gpu))
    gpu_kv = sum(per_layer[first_gpu:])
    compute = _compute_bytes(header, _round_cells(n_ctx), settings)
    kv = sum(per_layer) + shape.state_bytes * settings.n_seq
    return MemoryEstimate(
        weights_bytes=header.weights_bytes - gpu_weights,
        kv_bytes=kv - gpu_kv,
        compute_bytes=compute,
        n_ctx=n_ctx,
        vram_bytes=gpu_weights + gpu_kv + (compute if n_gpu else 0),
        copied_bytes=copied,
    )


def _is_on_gpu(name: str, first_gpu: int, output: bool) -> bool:
    kind, _, rest = name.partition(".")
    if kind != "blk":
        return output and kind.startswith("output")
    number = rest.partition(".")[0]
    return number.isdecimal() and int(number) >= first_gpu


def _copied_bytes(tensor: TensorInfo) -> int:
    """Bytes of the tensor if it is one that llama.cpp repacks on a CPU: matrices of some types."""
    is_repacked = (
        tensor.type_name in _REPACKED and len(tensor.shape) > 1 and not tensor.name.startswith("token_embd")
    )
    return tensor.size_bytes or 0 if is_repacked else 0


def _compute_bytes(header: GGUFHeader, n_cells: int, settings: ContextSettings) -> int:
    """Graph buffers for one batch of n_ubatch tokens, and the logits handed out, a row for each sequence."""
    key, layers = header.arch_key, n_layer(header)
    n_vocab = header.array_length("tokenizer.ggml.tokens") or header.integer(key("vocab_size"))
    n_embd = header.integer(key("embedding_length"))
    n_head = max((*header.per_layer(key("attention.head_count"), layers), 0))
    n_used = header.integer(key("expert_used_count"))
    n_ff = max((*header.per_layer(key("feed_forward_length"), layers), 0))
    n_ff = max(n_ff, header.integer(key("expert_feed_forward_length"), n_ff) * n_used)
    n_wide = max(n_embd, n_head * header.integer(key("attention.key_length")))
    n_tokens = min(settings.n_ubatch, n_cells)
    floats = n_wide * _EMBD_ROWS + n_embd * n_used + n_ff * _FF_ROWS
    layer = n_tokens * (n_cells * _MASK_BYTES + floats * 4)
    n_rows = max(settings.n_seq, settings.n_outputs)
    logits = n_rows * (n_vocab + 2 * n_embd) * 4
    handed_out = n_rows * n_vocab * 4 + n_vocab * _CANDIDATE_BYTES
    return max(logits, layer) + handed_out + _FIXED_BYTES  # the two are never alive together


def require(needed: MemoryEstimate, free: Available, name: str, fitting: int = 0) -> tuple[str, ...]:
    """Notices about memory; raises OutOfMemory, with both sizes and what to change, when it would not fit.

    `fitting` is largest_n_ctx() for the hint, 0 when unknown.
    """
    spaces = [(needed.unreclaimable, free.ram_bytes, free.limited_by)]
    if free.address_space_bytes is not None:
        spaces.append((needed.total, free.address_space_bytes, "the address-space limit (ulimit -v)"))
    for wanted, left, limit in spaces:
        if wanted > left:
            raise OutOfMemory(
                f"{name}: a context of {needed.n_ctx:,} tokens needs {format_bytes(wanted)} of memory "
                f"(KV cache {format_bytes(needed.kv_bytes)}, weights {format_bytes(needed.weights_bytes)}, "
                f"buffers {format_bytes(needed.compute_bytes)}); {format_bytes(left)} left by {limit}",
                _options(fitting),
            )
    if needed.total > free.ram_bytes:
        left = max(0, free.ram_bytes - needed.unreclaimable)
        return (
            f"weights of {format_bytes(needed.weights_bytes)} exceed the {format_bytes(left)} left: "
            "they are read from disk time and again",
        )
    return ()


def require_gpu(needed: MemoryEstimate, free_bytes: int, name: str) -> None:
    """Raises OutOfMemory where a context takes more than the GPUs' free_bytes; 0: no GPU is known."""
    if needed.vram_bytes > free_bytes > 0:
        raise OutOfMemory(
            f"{name}: {format_bytes(needed.vram_bytes)} of GPU memory for a context of"
            f" {needed.n_ctx:,} tokens; {format_bytes(free_bytes)} free",
            "a smaller --ctx, fewer --gpu-layers, or --n-cpu-moe N where the model has experts",
        )


def _options(fitting: int) -> str:
    return f"--ctx {fitting} fits; or a smaller model" if fitting else "a smaller --ctx or a smaller model"


def largest_n_ctx(
    header: GGUFHeader, free: Available, settings: ContextSettings = _DEFAULTS, longest: int = 0
) -> int:
    """The most cells that fit, 0 when none do: a multiple of 256, or `longest` (default: the length the model
    was trained for).
    """

    def fits(n_ctx: int) -> bool:
        needed = estimate(header, n_ctx, settings)
        in_space = free.address_space_bytes is None or needed.total <= free.address_space_bytes
        return needed.unreclaimable <= free.ram_bytes and in_space

    longest = longest or header.integer(header.arch_key("context_length")) or _MAX_CTX
    low, high = 0, _round_cells(longest) // CELL_STEP
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle * CELL_STEP) else (low, middle - 1)
    return min(low * CELL_STEP, longest)
