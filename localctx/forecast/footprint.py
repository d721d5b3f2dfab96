"""Bytes of a context where they lie: weights and cache by the split of layers, buffers as llama.cpp counts
them. Knows no documents.
"""

from __future__ import annotations

from localctx.engine.model_facts import n_layer
from localctx.engine.no_alloc import Measured
from localctx.engine.restoring import SLICE_BYTES
from localctx.forecast.fitting import Fitting
from localctx.forecast.plan import Footprint
from localctx.session.encoding import N_WAITING

__all__ = ["GPU_OWN_BYTES", "footprint", "held_outside"]

GPU_OWN_BYTES = 512 << 20
"""What a GPU's own library takes of its memory for a process that computes on it."""
GPU_HOST_BYTES = 200 << 20
"""What that library takes of the process's memory: its own pages, and those of its libraries that it uses."""
VOCABULARY_BYTES = 200
"""A token of the vocabulary that is loaded with the weights."""
RUNNING_BYTES = 36 << 20
"""What a run takes beside all this: modules that a plan has no use for, threads' arenas; measured."""
CHUNKS_HELD = N_WAITING + 2
"""Chunks of exported KV: those that wait to be encoded, the one at work, the one that comes."""

SLICES_HELD = 2
"""Slices of KV that is put back: one is composed while one is copied."""


def held_outside(loaded_bytes: int, f16_bytes: int, under_way_bytes: int, chunk_bytes: int) -> int:
    """Most bytes of KV outside the context at a time: first the chunks of a prefill that are under way, then
    what was read from the store, with the slices of it (f16_bytes in the context) that are put back.
    """
    put_back = min(f16_bytes, SLICES_HELD * SLICE_BYTES)
    return max(min(under_way_bytes, CHUNKS_HELD * chunk_bytes), loaded_bytes + put_back)


def footprint(
    fit: Fitting, n_ctx: int, counted: Measured | None, program_bytes: int, held_bytes: int
) -> Footprint:
    """A context's bytes. counted: by llama.cpp, None or with an error: the header's estimate has to do ·
    program_bytes: of the program, with its documents, before weights are loaded · held_bytes: KV that is held
    outside the context.

    ram_bytes is the most at a time: while weights go to a GPU, all of the file is mapped, as pages that the
    system drops where others need the memory; afterwards what runs.
    """
    n_gpu = fit.layers(n_ctx)
    needed, host_only = fit.needed(n_ctx, n_gpu), fit.needed(n_ctx, 0)
    gpu_weights = host_only.weights_bytes - needed.weights_bytes
    gpu_share = 1 - needed.kv_bytes / max(1, host_only.kv_bytes)
    host, device, kv = needed.compute_bytes, needed.compute_bytes if n_gpu else 0, host_only.kv_bytes
    if counted is not None and not counted.error:
        kv = counted.kv_bytes or kv
        host = counted.host_bytes
        if counted.device_bytes or not n_gpu:
            device = counted.device_bytes
    gpu_kv = round(kv * gpu_share)
    vocabulary = fit.header.array_length("tokenizer.ggml.tokens") * VOCABULARY_BYTES
    program = program_bytes + RUNNING_BYTES + vocabulary + (GPU_HOST_BYTES if n_gpu else 0)
    running = needed.weights_bytes + kv - gpu_kv + host + held_bytes
    return Footprint(
        weights_bytes=host_only.weights_bytes,
        kv_bytes=kv,
        compute_bytes=host + device,
        vram_bytes=gpu_weights + gpu_kv + device + GPU_OWN_BYTES if n_gpu else 0,
        ram_bytes=program + max(running, host_only.weights_bytes),
        gpu_layers=min(n_gpu, n_layer(fit.header) + 1),
    )
