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
VOCABULARY_BYTES = 200
"""A token of the vocabulary that is loaded with the weights."""
RUNNING_BYTES = 28 << 20
"""What a run takes beside all this: modules that a plan has no use for, threads' arenas; measured."""
CHUNKS_HELD = N_WAITING + 2
"""Chunks of exported KV: those that wait to be encoded, the one at work, the one that comes."""


def held_outside(n_loaded: int, n_prefilled: int, n_batch: int, kv_bytes_per_token: int) -> int:
    """Bytes of KV outside the context: n_loaded tokens as read from the store, the slice of them that is put
    back at a time, and what a prefill of n_prefilled tokens has under way.
    """
    loaded = n_loaded * kv_bytes_per_token
    under_way = min(n_prefilled, CHUNKS_HELD * n_batch) * kv_bytes_per_token
    return loaded + min(loaded, SLICE_BYTES) + under_way


def footprint(
    fit: Fitting, n_ctx: int, counted: Measured | None, program_bytes: int, held_bytes: int
) -> Footprint:
    """A context's bytes. counted: by llama.cpp, None or with an error: the header's estimate has to do ·
    program_bytes: of the program, with its documents, before weights are loaded · held_bytes: KV that is held
    outside the context.
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
    ram = program_bytes + RUNNING_BYTES + vocabulary + needed.weights_bytes + kv - gpu_kv + host
    return Footprint(
        weights_bytes=host_only.weights_bytes,
        kv_bytes=kv,
        compute_bytes=host + device,
        vram_bytes=gpu_weights + gpu_kv + device + GPU_OWN_BYTES if n_gpu else 0,
        ram_bytes=ram + held_bytes,
        gpu_layers=min(n_gpu, n_layer(fit.header) + 1),
    )
