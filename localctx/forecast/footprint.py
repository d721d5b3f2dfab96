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


def held_outside(loaded_bytes: int, f16_bytes: int, under_way_bytes: int, chunk_bytes: int) -> int:
    """Bytes of KV outside the context: what was read from the store, the slice of it (f16_bytes in the
    context) that is put back at a time, and the chunks of a prefill that are under way.
    """
    return loaded_bytes + min(f16_bytes, SLICE_BYTES) + min(under_way_bytes, CHUNKS_HELD * chunk_bytes)


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
