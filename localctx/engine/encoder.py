"""A model of llama.cpp that encodes texts side by side: its special tokens, one step. Is handed llama_cpp.

embedder.py and reranker.py say what the numbers mean. Nothing is remembered from step to step.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localctx.engine.gguf import GGUFHeader, display
from localctx.engine.limits import usable_cpus
from localctx.engine.llama_log import logged
from localctx.engine.llama_vocab import LlamaVocab
from localctx.engine.new_context import freed_on_error
from localctx.engine.options import EngineOptions
from localctx.engine.placing import n_gpu_layers
from localctx.errors import LocalctxError, ModelError

__all__ = ["N_BATCH", "N_SEQUENCES", "Encoder", "Piece", "steps"]

N_BATCH = 512
"""Tokens of one step: each attends to all of them, so more is slower (measured: 12.6 passages a CPU second,
11.1 with 1,024, 7.8 with 2,048).
"""
N_SEQUENCES = 64


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens that are evaluated as one sequence, special ones among them: of the text with this number."""

    text: int
    tokens: tuple[int, ...]


def steps(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """The pieces in steps of at most N_BATCH tokens and N_SEQUENCES pieces, in order."""
    step: list[Piece] = []
    n_tokens = 0
    for piece in pieces:
        if step and (n_tokens + len(piece.tokens) > N_BATCH or len(step) == N_SEQUENCES):
            yield step
            step, n_tokens = [], 0
        step.append(piece)
        n_tokens += len(piece.tokens)
    if step:
        yield step


class Encoder:
    """The model and its one context. n_ctx: the longest sequence, in tokens, special ones among them ·
    opening, closing: the special tokens round a text · separator: what comes between two texts, behind
    `closing`.
    """

    def __init__(self, lib: Any, header: GGUFHeader, name: str, options: EngineOptions, pooling: int) -> None:
        """pooling: llama.cpp's number. Raises ModelError with llama.cpp's reason."""
        self._lib = lib
        self._name = name
        can_offload = bool(lib.llama_supports_gpu_offload())
        self._model = _loaded(lib, header.path, n_gpu_layers(options, (), can_offload=can_offload))
        with freed_on_error(lib.llama_model_free, self._model):
            self.n_dim = int(lib.llama_model_n_embd(self._model))
            self._vocab = LlamaVocab(lib, lib.llama_model_get_vocab(self._model), adds_space=False)
            self.opening, self.closing = self._surrounding()
            separator = int(lib.llama_vocab_sep(lib.llama_model_get_vocab(self._model)))
            # Where a text ends with the separator, one stands between two texts; else both marks do.
            self.separator = () if separator < 0 or separator in self.closing else (separator,)
            n_train = int(lib.llama_model_n_ctx_train(self._model))
            self.n_ctx = min(n_train or N_BATCH, N_BATCH)
            self._context = self._new_context(options.n_threads or usable_cpus(), pooling)
        self._memory = lib.llama_get_memory(self._context)
        self._is_open = True

    def encode(self, text: str) -> list[int]:
        """The text's tokens, without special ones."""
        self.check_open()
        return self._vocab.encode_plain(text)

    def rows(self, sequences: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """The vectors of all tokens, one sequence after the other, [n_tokens, n_dim]. Raises ModelError."""
        n = self._evaluate(sequences)
        values = self._lib.llama_get_embeddings(self._context)
        return np.ctypeslib.as_array(values, (n, self.n_dim)).copy()

    def first_values(self, sequences: Sequence[Sequence[int]]) -> list[float]:
        """The first pooled number of each sequence: its score, where the model ranks. Raises ModelError."""
        self._evaluate(sequences)
        get = self._lib.llama_get_embeddings_seq
        return [float(get(self._context, number)[0]) for number in range(len(sequences))]

    def check_open(self) -> None:
        """Raises LocalctxError when closed."""
        if not self._is_open:
            raise LocalctxError(f"{self._name} is closed")

    def close(self) -> None:
        """Free everything; again is harmless."""
        if self._is_open:
            self._is_open = False
            self._lib.llama_free(self._context)
            self._lib.llama_model_free(self._model)

    # --- inside ---------------------------------------------------------------------------------------

    def _new_context(self, n_threads: int, pooling: int) -> int:
        lib = self._lib
        parameters = lib.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = N_BATCH
        parameters.n_seq_max = N_SEQUENCES
        parameters.n_outputs_max = N_BATCH
        parameters.n_threads = parameters.n_threads_batch = n_threads
        parameters.kv_unified = True
        parameters.embeddings = True
        parameters.pooling_type = pooling
        handle, log = logged(
            lib, lambda _: lib.llama_init_from_model(self._model, parameters), lib.llama_free
        )
        if not handle:
            raise ModelError(f"{self._name}: llama.cpp cannot make a context: {log.error()}")
        return handle

    def _surrounding(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The special tokens before and after a text."""
        lib, data = self._lib, b"a"
        buffer = (ctypes.c_int32 * 16)()
        vocab = lib.llama_model_get_vocab(self._model)
        n_whole = lib.llama_tokenize(vocab, data, len(data), buffer, len(buffer), True, False)
        whole, bare = list(buffer[: max(0, n_whole)]), self._vocab.encode_plain("a")
        for at in range(len(whole) - len(bare) + 1):
            if bare and whole[at : at + len(bare)] == bare:
                return tuple(whole[:at]), tuple(whole[at + len(bare) :])
        raise ModelError(f"{self._name}: its tokenizer is not understood")

    def _evaluate(self, sequences: Sequence[Sequence[int]]) -> int:
        """One step; the number of its tokens. Raises ModelError."""
        self.check_open()
        lib, n = self._lib, sum(map(len, sequences))
        batch = lib.llama_batch_init(n, 0, 1)
        try:
            at = 0
            for number, tokens in enumerate(sequences):
                for position, token in enumerate(tokens):
                    batch.token[at], batch.pos[at], batch.logits[at] = token, position, 1
                    batch.n_seq_id[at], batch.seq_id[at][0] = 1, number
                    at += 1
            batch.n_tokens = n
            if self._memory:  # of a model that also generates
                lib.llama_memory_clear(self._memory, True)
            if lib.llama_decode(self._context, batch) != 0:
                raise ModelError(f"{self._name}: evaluating {n} tokens failed", "localctx doctor")
        finally:
            lib.llama_batch_free(batch)
        return n


def _loaded(lib: Any, path: Path, n_layers: int) -> int:
    """The model. Raises ModelError with llama.cpp's reason."""
    parameters = lib.llama_model_default_params()
    parameters.n_gpu_layers = n_layers
    model, log = logged(
        lib,
        lambda _: lib.llama_model_load_from_file(os.fsencode(path), parameters),
        lib.llama_model_free,
    )
    if not model:
        raise ModelError(f"{display(path)}: llama.cpp cannot load it: {log.error()}")
    return model
