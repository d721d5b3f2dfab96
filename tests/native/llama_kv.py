"""llama.cpp itself as the oracle of KV: decode at chosen positions, export and restore a sequence's state."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from localctx._native import Rope, ignore_log_address


class Decoder:
    """A context with a unified f16 cache and flash attention; close() frees it."""

    def __init__(
        self, path: Path, *, n_ctx: int = 256, kv_type: int = 1, flash: int = 1, unified: bool = True
    ) -> None:
        llama_cpp.llama_log_set(llama_cpp.llama_log_callback(ignore_log_address), ctypes.c_void_p())
        llama_cpp.llama_backend_init()
        model_settings = llama_cpp.llama_model_default_params()
        model_settings.use_extra_bufts = False
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), model_settings)
        assert self.model
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = settings.n_batch = settings.n_ubatch = n_ctx
        settings.n_seq_max, settings.kv_unified, settings.flash_attn_type = 4, unified, flash
        settings.type_k = settings.type_v = kv_type
        settings.n_threads = settings.n_threads_batch = 1
        self.context = llama_cpp.llama_init_from_model(self.model, settings)
        assert self.context
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))

    def close(self) -> None:
        llama_cpp.llama_free(self.context)
        llama_cpp.llama_model_free(self.model)

    def decode(self, tokens: Sequence[int], position: int, sequence: int = 0) -> NDArray[np.float32]:
        """Logits [n_tokens, n_vocab] of the tokens at `position` and after."""
        n = len(tokens)
        batch = llama_cpp.llama_batch_init(n, 0, 1)
        batch.n_tokens = n
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, position + i, 1
            batch.seq_id[i][0], batch.logits[i] = sequence, 1
        status = llama_cpp.llama_decode(self.context, batch)
        llama_cpp.llama_batch_free(batch)
        assert status == 0
        return np.ctypeslib.as_array(llama_cpp.llama_get_logits(self.context), (n, self.n_vocab)).copy()

    def remove(self, sequence: int = 0, first: int = -1, last: int = -1) -> None:
        assert llama_cpp.llama_memory_seq_rm(self.memory, sequence, first, last)

    def export(self, sequence: int = 0) -> bytes:
        size = llama_cpp.llama_state_seq_get_size(self.context, sequence)
        data = (ctypes.c_uint8 * size)()
        assert llama_cpp.llama_state_seq_get_data(self.context, data, size, sequence) == size
        return bytes(data)

    def restore(self, blob: bytes | NDArray[np.uint8], sequence: int = 0) -> int:
        """Bytes read; 0 when llama.cpp refuses the blob."""
        data = (ctypes.c_uint8 * len(blob)).from_buffer_copy(blob)
        return int(llama_cpp.llama_state_seq_set_data(self.context, data, len(blob), sequence))


def frequencies(
    head_dim: int, base: float, factors: NDArray[np.float32] | None = None
) -> NDArray[np.float64]:
    """base^(-2i / head_dim), divided by the factors of a rope_freqs tensor."""
    plain = base ** (-np.arange(0, head_dim, 2) / head_dim)
    return plain if factors is None else plain / factors


def rope(head_dim: int, base: float, *, neox: bool, factors: NDArray[np.float32] | None = None) -> Rope:
    return Rope(frequencies(head_dim, base, factors), head_dim, neox=neox)
