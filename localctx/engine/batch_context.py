"""A cache for one caller at a time: checks requests, ends what was left half-way, cancels, closes.

Knows no llama.cpp: a Decoder and a Scheduler are handed in, generation.py runs them.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Self

from localctx._native import AbortFlag
from localctx.end_signals import ending_signals
from localctx.engine.generation import Decoder, Generation, NewSplitter, answering_at_once
from localctx.engine.open_batch import OpenBatch, PartsStock
from localctx.engine.schedule import Scheduler
from localctx.errors import LocalctxError, UsageError
from localctx.values import Piece, Progress, Request

__all__ = ["BatchContext", "Stopped", "check_requests"]


class Stopped(Exception):
    """Work on the cache was cancelled; caught where it began."""


def check_requests(requests: Sequence[Request], n_ctx: int) -> None:
    """Raises UsageError for a request that can never run in n_ctx cells."""
    for number, request in enumerate(requests):
        n_prompt = len(request.prompt.tokens)
        if n_prompt + 1 > n_ctx:
            raise UsageError(
                f"prompt of {n_prompt:,} tokens, context of {n_ctx:,}: it does not fit (request {number})",
                f"--ctx {n_prompt + request.sampling.max_tokens} or more, or fewer tokens of text",
            )
        if n_prompt < 1:
            raise UsageError(f"empty prompt (request {number})")
        if request.sampling.max_tokens < 1:
            raise UsageError(f"max_tokens = {request.sampling.max_tokens} (request {number})", "at least 1")


class _Stream(Iterator[Piece]):
    """The pieces of one generate() call. `end()` frees its part of the cache at once; what it was still to
    give, and "cancelled" for what was open, stays for whoever asks.
    """

    def __init__(self, generation: Generation, steps: Generator[Piece, None, None]) -> None:
        """`steps` runs the generation and closes it."""
        self._generation = generation
        self._steps = steps
        self._left: Iterator[Piece] | None = None

    def __next__(self) -> Piece:
        return next(self._steps if self._left is None else self._left)

    @property
    def is_running(self) -> bool:
        """Whether another thread waits for the next piece."""
        return inspect.getgeneratorstate(self._steps) == inspect.GEN_RUNNING

    def end(self) -> None:
        """Stop for good; harmless after the last piece."""
        if inspect.getgeneratorstate(self._steps) != inspect.GEN_CLOSED:
            self._steps.close()
            self._generation.close()  # a generator that never ran does not
            self._left = self._generation.hand_out()


class BatchContext:
    """A values.Context on a Decoder: the limits, cancelling and closing that all engines share."""

    def __init__(
        self,
        decoder: Decoder,
        scheduler: Scheduler,
        stop: AbortFlag,
        new_splitter: NewSplitter,
        notices: tuple[str, ...] = (),
    ) -> None:
        """`stop` is the flag that the decoder's evaluate() obeys too; `notices` are values.Context's."""
        self._notices = notices
        self._decoder = decoder
        self._scheduler = scheduler
        self._stop = stop
        self._new_splitter = new_splitter
        self._current: weakref.ref[_Stream] | None = None
        self._is_taken = False
        self._closed = False

    @property
    def n_ctx(self) -> int:
        """Cells of the cache that may be used."""
        return self._scheduler.n_ctx

    @property
    def n_seq(self) -> int:
        """Sequences decoded side by side."""
        return self._scheduler.n_seq

    @property
    def notices(self) -> tuple[str, ...]:
        """See values.Context."""
        return self._notices

    def generate(self, requests: Sequence[Request], on_prefill: Progress | None = None) -> Iterator[Piece]:
        """See values.Context. Errors are raised here, before the first piece is asked for; an earlier
        generate() that was left half-way is ended. Ctrl-C stops it soon: KeyboardInterrupt comes out, or,
        where the program's own handler does not raise, the pieces end with "cancelled".
        """
        self._check_open()
        requests = [answering_at_once(request) for request in requests]
        check_requests(requests, self.n_ctx)
        self._end_current()
        self._stop.clear()
        generation = Generation(self._decoder, self._scheduler, requests, self._new_splitter)
        stream = _Stream(generation, _steps(generation, self._stop, on_prefill))
        self._current = weakref.ref(stream)
        return stream

    @contextmanager
    def taken(self) -> Iterator[None]:
        """The body has the cache for itself, Ctrl-C and cancel() set the flag that it looks at; an earlier
        generate() is ended. Raises LocalctxError when the cache is at work or closed.
        """
        self._check_open()
        self._end_current()
        self._stop.clear()
        self._is_taken = True
        try:
            with _watching_signals(self._stop):
                yield
        finally:
            self._is_taken = False

    def open_batch(self) -> OpenBatch:
        """See kv.BatchingContext."""
        return self._opened_batch(None)

    def _opened_batch(self, stock: PartsStock | None) -> OpenBatch:
        self._check_open()
        self._end_current()
        self._stop.clear()
        self._is_taken = True
        for sequence in range(self.n_seq):
            self._decoder.drop(sequence, 0)
        self._scheduler.reset()
        generation = Generation(self._decoder, self._scheduler, (), self._new_splitter, stock)
        return OpenBatch(generation, self._scheduler, _BatchHost(self), stock)

    def _check_open(self) -> None:
        if self._closed:
            raise LocalctxError("the context is closed")

    def _end_current(self) -> None:
        if self._is_taken:
            raise LocalctxError("the context is at work", "wait, or cancel() it first")
        current = self._current() if self._current is not None else None
        if current is None:
            return
        if current.is_running:
            raise LocalctxError("the context is generating in another thread", "wait, or cancel() it first")
        current.end()

    def cancel(self) -> None:
        """End every open request with finish_reason "cancelled"; safe from any thread."""
        self._stop.set()

    def close(self) -> None:
        """Free the cache; again is harmless. Raises LocalctxError while another thread generates."""
        if not self._closed:
            self._end_current()
            self._closed = True
            self._decoder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class _BatchHost:
    """An open_batch.Host: what of a context its batch may touch."""

    def __init__(self, context: BatchContext) -> None:
        self._context = context

    @property
    def n_batch(self) -> int:
        return self._context._decoder.n_batch

    @property
    def is_stopped(self) -> bool:
        return self._context._stop.is_set

    def check(self, request: Request) -> None:
        check_requests([request], self._context.n_ctx)

    def stepping(self) -> AbstractContextManager[None]:
        return _watching_signals(self._context._stop)

    def stop(self) -> None:
        self._context.cancel()

    def release(self) -> None:
        self._context._is_taken = False


def _steps(
    generation: Generation, stop: AbortFlag, on_prefill: Progress | None
) -> Generator[Piece, None, None]:
    """Run it, with Ctrl-C watched, and close it."""
    with _watching_signals(stop):
        try:
            yield from generation.run(stop, on_prefill)
        finally:
            generation.close()


@contextmanager
def _watching_signals(flag: AbortFlag) -> Iterator[None]:
    """Let Ctrl-C, and what else ends the program, set the flag at once; only one context at a time can have
    that, the first one keeps it.
    """
    try:
        flag.watch(ending_signals())
    except RuntimeError:  # another context watches: this one still ends by KeyboardInterrupt between batches
        yield
        return
    try:
        yield
    finally:
        flag.unwatch()
