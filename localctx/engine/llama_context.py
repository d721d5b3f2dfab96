"""One context of llama.cpp: made from an open model, freed whatever fails. Is handed llama_cpp and the model.

A context holds its model, which closes it first. What needs KV that can be cut is kv_context.py's.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from localctx._native import AbortFlag
from localctx.engine.batch_context import BatchContext, Stopped
from localctx.engine.composable import try_restoring
from localctx.engine.host_buffers import HostBuffers
from localctx.engine.llama_decoder import LlamaDecoder
from localctx.engine.llama_state import CellStates, library_id
from localctx.engine.llama_vocab import LlamaVocab
from localctx.engine.new_context import ContextSizes, ModelHandle, freed_on_error, new_context, rope_in_force
from localctx.engine.schedule import Scheduler, Slice
from localctx.engine.thinking import ThinkingSplitter, ThinkingTags
from localctx.engine.thread_choice import ThreadChoice
from localctx.errors import ModelError, UsageError
from localctx.values import Progress

__all__ = ["LlamaContext", "OnRows", "Owner"]

_N_TRIED = 33
"""Tokens decoded to find out what a context can do."""
OnRows: TypeAlias = Callable[[int, NDArray[np.float32]], None]
"""Called with (first, logits [n, n_vocab]): the logits after the tokens [first, first + n)."""


class Owner(ModelHandle, Protocol):
    """The model as a context sees it."""

    vocab: LlamaVocab

    @property
    def thinking(self) -> ThinkingTags:
        """What marks thinking in its output."""

    @property
    def can_reuse(self) -> bool:
        """Whether cached tokens can be cut at any position and shared."""

    @property
    def is_offloaded(self) -> bool:
        """Whether a GPU computes it."""

    @property
    def buffers(self) -> HostBuffers:
        """Memory for exported KV."""

    def forget(self, context: LlamaContext) -> None:
        """The context was closed."""


class LlamaContext(BatchContext):
    """A values.Context on llama.cpp. n_ctx_effective: cells as it rounded them; rope: in force; log: its."""

    def __init__(self, lib: Any, model: Owner, sizes: ContextSizes, notices: tuple[str, ...] = ()) -> None:
        """Raises ModelError with llama.cpp's reason."""
        stop, tags = AbortFlag(), model.thinking
        handle, log = new_context(lib, model, sizes, stop)
        with freed_on_error(lib.llama_free, handle):
            self._model = model
            self._lib, self._handle = lib, handle
            self.sizes = sizes
            self.n_ctx_effective = int(lib.llama_n_ctx(handle))
            self.rope = rope_in_force(lib, model, sizes.n_reach, log.text)
            self.log = log.text
            self.cells = CellStates(lib, handle, model.buffers)
            threads = None if model.is_offloaded else ThreadChoice.of(model.options)
            self.decoder = LlamaDecoder(lib, handle, model.vocab, stop, model.n_batch, threads)
            super().__init__(
                self.decoder,
                Scheduler(
                    min(sizes.n_ctx, self.n_ctx_effective),
                    sizes.n_seq,
                    reuse=model.can_reuse,
                    apart=not model.is_offloaded,
                ),
                stop,
                lambda is_open: ThinkingSplitter(tags.open, tags.close, is_open, tags.dropped),
                notices,
            )

    # --- the cache as a whole -------------------------------------------------------------------------

    @property
    def state_space(self) -> str:
        """What a snapshot depends on beside the model's file and the tokens, in one canonical line."""
        options, rope = self._model.options, self.rope
        types = f"{options.type_k}/{options.type_v}"
        facts = [f"llama.cpp {library_id(self._lib)}", types, f"batch {self._model.n_batch}"]
        facts += [f"sequences {self.sizes.n_ids}", rope.type, rope.scaling, f"{rope.freq_base:.9g}"]
        facts += [f"{rope.freq_scale:.9g}", f"told {self._model.rope_for(self.sizes.n_reach).line}"]
        if types != "f16/f16":
            facts.append(f"unrotated {os.environ.get('LLAMA_ATTN_ROT_DISABLE', '')}")
        if rope.scaling == "longrope":  # which factors are taken depends on it
            facts.append(f"cells {self.n_ctx_effective}")
        return " ".join(facts)

    def check_snapshots(self) -> None:
        """Try whether a state that was saved and restored goes on as it was; the cache is empty afterwards.

        Raises NotComposable, in words that follow the model's name, when it does not; ModelError when a step
        fails.
        """
        with suppress(Stopped), self._emptied():
            try_restoring(self, self.trial_tokens())
            self._empty()

    def snapshot(
        self,
        tokens: Sequence[int],
        on_progress: Progress | None = None,
        is_wanted: Callable[[int], bool] = lambda n_bytes: True,
    ) -> NDArray[np.uint8] | None:
        """Evaluate `tokens` in an empty cache and return its whole state, for restore_snapshot() of a like
        context; None when cancelled. The cache then holds the tokens: a prompt that begins with them
        evaluates only the rest.

        is_wanted: asked with the state's bytes before it is copied; False: an empty array is returned. Raises
        UsageError when the tokens do not fit, ModelError when a step fails.
        """
        try:
            with self._refilled(tokens) as wanted:
                self.run_tokens(0, 0, wanted, on_progress)
                if not is_wanted(self.cells.export_size(0)):
                    return np.empty(0, np.uint8)
                return self.cells.export(0)
        except Stopped:
            return None

    def restore_snapshot(self, tokens: Sequence[int], blob: NDArray[np.uint8]) -> None:
        """Make the cache hold `tokens` as snapshot() left them. Raises ModelError for a blob that this
        context does not take, UsageError when the tokens do not fit.
        """
        with self._refilled(tokens):
            self.cells.restore(0, blob)

    def score(self, tokens: Sequence[int], on_rows: OnRows) -> int:
        """Evaluate `tokens` behind what sequence 0 holds and hand out the logits after each of them, a few
        rows at a time (ContextSizes.n_rows); they are forgotten afterwards, with all of the cache where it
        cannot be cut. Returns the number of tokens evaluated, fewer when cancelled.

        Raises UsageError when they do not fit, ModelError when a step fails.
        """
        wanted, n_done = np.array(tokens, np.int32), 0
        self._check_fit(self.n_held + len(wanted))
        with self.appending() as n_held:
            while n_done < len(wanted) and not self._stop.is_set:
                n = min(self.sizes.n_rows, self.decoder.n_batch, len(wanted) - n_done)
                part = wanted[n_done : n_done + n]
                batch = [Slice(0, n_held + n_done, part, sample=True)]
                if not self.decoder.evaluate(batch, every_row=True):
                    break
                on_rows(n_done, self.decoder.all_logits(n))
                n_done += n
        return n_done

    # --- llama.cpp's own files ------------------------------------------------------------------------

    def save_file(self, path: Path, tokens: Sequence[int]) -> int:
        """Write sequence 0, which holds `tokens`, with llama_state_seq_save_file(); its bytes.

        The file is not forced to the disk. Raises ModelError when llama.cpp cannot write it.
        """
        array = (ctypes.c_int32 * len(tokens))(*tokens)
        save = self._lib.llama_state_seq_save_file
        n_bytes = int(save(self._handle, os.fsencode(path), 0, array, len(tokens)))
        if not n_bytes:
            raise ModelError(f"llama.cpp cannot write its state to {path.name}", "look at the free space")
        return n_bytes

    def load_file(self, path: Path, tokens: Sequence[int]) -> None:
        """Hold what save_file() wrote for `tokens`, and nothing else.

        Only for files that this process wrote: a cut one makes llama.cpp abort. Raises ModelError for a file
        that llama.cpp does not take or that holds other tokens, UsageError when they do not fit.
        """
        array, n_tokens = (ctypes.c_int32 * len(tokens))(), ctypes.c_size_t()
        load, most = self._lib.llama_state_seq_load_file, len(tokens)
        with self._refilled(tokens):
            n_bytes = load(self._handle, os.fsencode(path), 0, array, most, ctypes.byref(n_tokens))
            if not n_bytes or list(array[: n_tokens.value]) != list(tokens):
                raise ModelError(f"llama.cpp does not take back its state from {path.name}")

    # --- what it is, and holds ------------------------------------------------------------------------

    @property
    def origin(self) -> tuple[Any, Owner]:
        """llama_cpp and the model: what another context on the same weights is made from."""
        return self._lib, self._model

    @property
    def kv_types(self) -> tuple[str, str]:
        """ggml types of the cells' keys and values."""
        return self._model.options.type_k, self._model.options.type_v

    @property
    def n_held(self) -> int:
        """Tokens that sequence 0 holds."""
        return len(self._scheduler.held)

    def trial_tokens(self) -> NDArray[np.int32]:
        """A few tokens of no meaning, to find out what the context can do."""
        numbers = np.arange(1, min(_N_TRIED, self.n_ctx) + 1, dtype=np.int64)
        return (numbers * 7919 % self.n_vocab).astype(np.int32)

    def close(self) -> None:
        """Free the cache; again is harmless."""
        if not self._closed:
            super().close()
            self._model.forget(self)

    @property
    def n_vocab(self) -> int:
        """Tokens of the vocabulary."""
        return self._model.vocab.n_tokens

    def last_logits(self) -> NDArray[np.float32]:
        """The logits after the last batch, whose first and only token asked for them."""
        return self.decoder.logits(0)

    @contextmanager
    def appending(self) -> Iterator[int]:
        """The body has the cache for itself and evaluates tokens behind the n_held that it is given; they are
        forgotten afterwards, with all of the cache where it cannot be cut.
        """
        held = self._scheduler.held.copy()
        with self.taken():
            self._scheduler.adopt(held)
            for sequence in range(1, self.sizes.n_ids):
                self.cells.drop(sequence)
            try:
                yield len(held)
            finally:
                if self._model.can_reuse:
                    self.cells.drop(0, len(held))
                else:
                    self._empty()

    # --- for those who have taken it ------------------------------------------------------------------

    def run_batch(self, batch: Sequence[Slice]) -> None:
        """See working_set.Evaluator. Raises Stopped, ModelError."""
        if self._stop.is_set or not self.decoder.evaluate(batch):
            raise Stopped

    def run_tokens(
        self,
        sequence: int,
        position: int,
        tokens: NDArray[np.int32],
        on_progress: Progress | None = None,
    ) -> None:
        """See working_set.Evaluator. Raises Stopped, ModelError."""
        n_done = 0
        while n_done < len(tokens):
            part = tokens[n_done : n_done + self.decoder.n_batch]
            self.run_batch([Slice(sequence, position + n_done, part, sample=False)])
            n_done += len(part)
            if on_progress is not None:
                on_progress(n_done, len(tokens))

    # --- inside ---------------------------------------------------------------------------------------

    def _check_fit(self, n_tokens: int) -> None:
        if n_tokens + 1 > self.n_ctx:
            raise UsageError(
                f"{n_tokens:,} tokens, context of {self.n_ctx:,}: they do not fit",
                f"--ctx {n_tokens + 1} or more",
            )

    def _empty(self) -> None:
        self.cells.clear()
        self._scheduler.reset()

    @contextmanager
    def _emptied(self) -> Iterator[None]:
        """The body has the cache for itself, empty; it is emptied again when the body fails."""
        with self.taken():
            self._empty()
            try:
                yield
            except BaseException:
                self._empty()
                raise

    @contextmanager
    def _refilled(self, tokens: Sequence[int]) -> Iterator[NDArray[np.int32]]:
        """The body puts `tokens` into sequence 0 of the empty cache."""
        self._check_fit(len(tokens))
        wanted = np.array(tokens, np.int32)
        with self._emptied():
            yield wanted
            self.decoder.wait()
            self._scheduler.adopt(wanted)
