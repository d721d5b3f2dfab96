"""A KV cache of llama.cpp and its sampler chains, as generation.Decoder wants it. Is handed llama_cpp.

One place fills llama.cpp's batches (NumPy arrays it only looks at) and one frees its sequences.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localctx._native import AbortFlag
from localctx.engine.grammar_sampler import GrammarSampler
from localctx.engine.llama_vocab import LlamaVocab
from localctx.engine.schedule import Slice
from localctx.engine.thread_choice import ThreadChoice
from localctx.errors import ModelError
from localctx.values import Sampling

__all__ = ["LlamaDecoder"]

_N_FIRST_GPU_STEP = 512  # tokens; grows where steps turn out to be short
_LONG_STEP_S, _SHORT_STEP_S = 0.7, 0.25
_ABORTED = 2


class LlamaDecoder:
    """The cache, its batch arrays and one sampler chain per running sequence."""

    def __init__(
        self,
        lib: Any,
        handle: int,
        vocab: LlamaVocab,
        stop: AbortFlag,
        n_batch: int,
        threads: ThreadChoice | None = None,
    ) -> None:
        """Owns the context `handle`; `stop` is the flag whose address it was given; `threads`: how many a
        step takes, None as many as it was made with, and on a GPU: what is not waited for says nothing.
        """
        self._lib = lib
        self._handle = handle
        self._memory = self._lib.llama_get_memory(handle)
        self._vocab = vocab
        self._stop = stop  # llama.cpp holds its address
        self._samplers: dict[int, int] = {}
        self._grammars: dict[int, GrammarSampler] = {}
        self._threads, self._n_threads = threads, 0
        self._greedy: set[int] = set()  # the likeliest token needs no chain, which sorts out the vocabulary
        self._pace = _Pace(n_batch, adapts=bool(self._lib.llama_supports_gpu_offload()))
        self._tokens = np.zeros(n_batch, np.int32)
        self._positions = np.zeros(n_batch, np.int32)
        self._sequences = np.zeros(n_batch, np.int32)
        self._wanted = np.zeros(n_batch, np.int8)
        self._batch = self._new_batch(n_batch)

    def _new_batch(self, n_batch: int) -> Any:
        """llama.cpp's view of the arrays: one sequence id per token."""
        self._n_sequences = np.ones(n_batch, np.int32)
        item = ctypes.POINTER(ctypes.c_int32)
        first, step = self._sequences.ctypes.data, self._sequences.itemsize
        addresses = (ctypes.c_void_p * n_batch)(*range(first, first + n_batch * step, step))
        self._sequence_pointers = addresses
        return self._lib.llama_batch(
            n_tokens=0,
            token=self._tokens.ctypes.data_as(item),
            embd=None,
            pos=self._positions.ctypes.data_as(item),
            n_seq_id=self._n_sequences.ctypes.data_as(item),
            seq_id=ctypes.cast(addresses, ctypes.POINTER(item)),
            logits=self._wanted.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
        )

    @property
    def n_batch(self) -> int:
        return self._pace.n_batch

    def evaluate(self, batch: Sequence[Slice], *, every_row: bool = False) -> bool:
        """See generation.Decoder; `every_row` asks for the logits of all tokens (all_logits()).

        Where no logits are asked for, a GPU may still be at work: the next step's masks are made meanwhile.
        """
        n = 0
        for part in batch:
            end = n + len(part.tokens)
            self._tokens[n:end] = part.tokens
            self._positions[n:end] = np.arange(part.start, part.start + len(part.tokens))
            self._sequences[n:end] = part.sequence
            self._wanted[n:end] = every_row
            self._wanted[end - 1] = part.sample or every_row
            n = end
        self._batch.n_tokens = n
        with self._pace.step(n):
            status = self._decode(n)
            if self._pace.is_changing or self._wanted[:n].any():
                self.wait()
        if status == 0:
            return True
        for part in batch:  # what was processed before the stop stays in the cache otherwise
            self.drop(part.sequence, part.start)
        if status == _ABORTED:
            return False
        reason = "no room in the KV cache" if status == 1 else f"llama_decode gave {status}"
        raise ModelError(f"evaluating {n} tokens failed: {reason}", "localctx doctor tries the model alone")

    @property
    def n_unwaited(self) -> int:
        """Tokens of the last step, where it was not waited for: a GPU may still be at work on it."""
        return self._pace.n_unwaited

    def wait(self) -> None:
        """Until all that was evaluated is done."""
        self._lib.llama_synchronize(self._handle)
        self._pace.waited()

    def _decode(self, n_tokens: int) -> int:
        """llama.cpp's status. A step takes as many threads as are chosen for it, and tells of its time."""
        if self._threads is None:
            return int(self._lib.llama_decode(self._handle, self._batch))
        n_threads = self._threads.n_threads(n_tokens)
        if n_threads != self._n_threads:
            self._lib.llama_set_n_threads(self._handle, n_threads, n_threads)
            self._n_threads = n_threads
        started = time.monotonic()
        status = int(self._lib.llama_decode(self._handle, self._batch))
        if status == 0:
            self._threads.took(n_tokens, time.monotonic() - started)
        return status

    def copy(self, source: int, sequence: int, n_tokens: int) -> None:
        self._lib.llama_memory_seq_cp(self._memory, source, sequence, 0, n_tokens)

    def drop(self, sequence: int, start: int) -> None:
        if not self._lib.llama_memory_seq_rm(self._memory, sequence, start, -1):
            self._lib.llama_memory_seq_rm(self._memory, sequence, -1, -1)

    def begin(self, sequence: int, sampling: Sampling) -> None:
        self.end(sequence)
        if sampling.temperature <= 0 and not sampling.grammar:
            self._greedy.add(sequence)
            return
        if sampling.grammar:
            self._grammars[sequence] = self._vocab.grammar_sampler(sampling.grammar)
        chain = self._lib.llama_sampler_chain_init(self._lib.llama_sampler_chain_default_params())
        for part in _sampler_parts(self._lib, sampling):
            self._lib.llama_sampler_chain_add(chain, part)
        self._samplers[sequence] = chain

    def end(self, sequence: int) -> None:
        self._greedy.discard(sequence)
        chain = self._samplers.pop(sequence, None)
        if chain is not None:
            self._lib.llama_sampler_free(chain)
        grammar = self._grammars.pop(sequence, None)
        if grammar is not None:
            grammar.close()

    def sample(self, sequence: int, row: int) -> int | None:
        if sequence in self._greedy:
            token = _likeliest(self._row(row))
            return None if self._vocab.is_end(token) else token
        chain = self._samplers[sequence]
        token = int(self._lib.llama_sampler_sample(chain, self._handle, row))
        if sequence in self._grammars:
            token = self._grammars[sequence].sample(chain, self.logits(row), token)
        return None if self._vocab.is_end(token) else token

    def logits(self, row: int) -> NDArray[np.float32]:
        """A copy of the logits at a row that asked for them, float32 [n_vocab]."""
        return self._row(row).copy()

    def _row(self, row: int) -> NDArray[np.float32]:
        """The logits at a row as llama.cpp holds them, until the next batch."""
        values = self._lib.llama_get_logits_ith(self._handle, row)
        return np.ctypeslib.as_array(values, (self._vocab.n_tokens,))

    def all_logits(self, n_rows: int) -> NDArray[np.float32]:
        """A copy of the logits of the last batch, all of whose n_rows tokens asked for them."""
        values = self._lib.llama_get_logits(self._handle)
        return np.ctypeslib.as_array(values, (n_rows, self._vocab.n_tokens)).copy()

    def piece(self, token: int) -> bytes:
        data = self._vocab.piece(token)
        if self._vocab.is_control(token):
            return data if token in self._vocab.shown_controls else b""
        return data

    def close(self) -> None:
        for sequence in list(self._samplers):
            self.end(sequence)
        self.wait()
        self._lib.llama_free(self._handle)


def _likeliest(logits: NDArray[np.float32]) -> int:
    """Of what is a number. Raises ModelError where nothing is."""
    token = int(logits.argmax())  # of the first NaN, if there is one
    if not np.isnan(logits[token]):
        return token
    if np.isnan(logits).all():
        raise ModelError(
            "the model gives no numbers for the next token",
            "try --gpu-layers 0, or --kv type_k=f16,type_v=f16; localctx doctor tries the model alone",
        )
    return int(np.nanargmax(logits))


def _sampler_parts(lib: Any, sampling: Sampling) -> Iterator[int]:
    """The links of a sampler chain, in llama.cpp's usual order; a grammar comes before it."""
    if sampling.temperature <= 0:
        yield lib.llama_sampler_init_greedy()
        return
    if sampling.top_k > 0:
        yield lib.llama_sampler_init_top_k(sampling.top_k)
    if sampling.top_p < 1:
        yield lib.llama_sampler_init_top_p(sampling.top_p, 1)
    if sampling.min_p > 0:
        yield lib.llama_sampler_init_min_p(sampling.min_p, 1)
    yield lib.llama_sampler_init_temp(sampling.temperature)
    yield lib.llama_sampler_init_dist(sampling.seed & 0xFFFFFFFF)


class _Pace:
    """Tokens of the next step: on a GPU, where a step cannot be stopped, one is kept under a second."""

    def __init__(self, n_batch: int, adapts: bool) -> None:
        self._limit = n_batch
        self._adapts = adapts
        self.n_unwaited = 0
        self.n_batch = min(n_batch, _N_FIRST_GPU_STEP) if adapts else n_batch

    @property
    def is_changing(self) -> bool:
        """Whether steps are to be waited for, one by one, so that their time is known."""
        return self.n_batch < self._limit

    def waited(self) -> None:
        """All that was begun is done."""
        self.n_unwaited = 0

    @contextmanager
    def step(self, n_tokens: int) -> Iterator[None]:
        """Times one step of n_tokens; one that is not waited for has the time of the one before it, one that
        is waited for its share of the time of both.
        """
        n_before, self.n_unwaited = self.n_unwaited, n_tokens
        started = time.monotonic()
        yield
        if self._adapts and n_tokens >= self.n_batch:
            took_s = time.monotonic() - started
            if not self.n_unwaited:
                took_s *= n_tokens / (n_before + n_tokens)
            if took_s > _LONG_STEP_S:
                self.n_batch = max(32, self.n_batch // 2)
            elif took_s < _SHORT_STEP_S:
                self.n_batch = min(self._limit, self.n_batch * 2)
