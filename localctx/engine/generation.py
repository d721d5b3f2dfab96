"""Continuous batching: requests in, pieces of text out. Knows no llama.cpp: a Decoder does the work.

One step reads schedule → evaluate → sample → emit; the plan is schedule.py's.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

import numpy as np

from localctx._native import AbortFlag
from localctx.engine.schedule import Copy, Drop, Scheduler, Slice, Work
from localctx.engine.stopping import TextStream
from localctx.engine.thinking import ThinkingSplitter
from localctx.errors import LocalctxError, UsageError
from localctx.values import FinishReason, Piece, Progress, Request, Sampling

__all__ = ["BatchContext", "Decoder", "Generation", "NewSplitter", "check_requests"]

NewSplitter = Callable[[bool], ThinkingSplitter]
"""Makes the splitter of one answer; the argument says that the prompt left a thinking block open."""


class Decoder(Protocol):
    """What a cache and its model can do, one batch at a time."""

    @property
    def n_batch(self) -> int:
        """Tokens the next batch may have."""

    def evaluate(self, batch: Sequence[Slice]) -> bool:
        """Evaluate the tokens; False when stopped, with nothing of the batch left in the cache."""

    def copy(self, source: int, sequence: int, n_tokens: int) -> None:
        """Let the first n_tokens cells of `source` belong to `sequence` too."""

    def drop(self, sequence: int, start: int) -> None:
        """Free the sequence's cells from position `start` on."""

    def begin(self, sequence: int, sampling: Sampling) -> None:
        """Make the sequence's sampler."""

    def end(self, sequence: int) -> None:
        """Free the sequence's sampler."""

    def sample(self, sequence: int, row: int) -> int | None:
        """The next token of a sequence whose last token stood at `row` of the batch; None ends the answer."""

    def piece(self, token: int) -> bytes:
        """The token's text, incomplete UTF-8 perhaps; empty for control tokens."""

    def close(self) -> None:
        """Free the cache."""


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


@dataclass(slots=True)
class _Answer:
    """The output of one request so far."""

    request: Request
    limit: int
    stream: TextStream
    splitter: ThinkingSplitter
    n_evaluated: int = 0
    n_generated: int = 0


class Generation:
    """One generate() call. Iterate run(); close() in any case, it leaves the cache usable."""

    def __init__(
        self,
        decoder: Decoder,
        scheduler: Scheduler,
        requests: Sequence[Request],
        new_splitter: NewSplitter,
    ) -> None:
        """The requests have been checked."""
        self._decoder = decoder
        self._scheduler = scheduler
        self._answers: list[_Answer] = []
        self._open: set[int] = set()  # sequences that have a sampler
        self._in_flight = False
        scheduler.abandon()  # an interruption may have left requests behind
        for number, request in enumerate(requests):
            tokens = np.array(request.prompt.tokens, np.int32)
            limit = min(request.sampling.max_tokens, scheduler.n_ctx - len(tokens))
            stream = TextStream(request.sampling.stop)
            splitter = new_splitter(request.prompt.thinking_open)
            self._answers.append(_Answer(request, limit, stream, splitter))
            scheduler.submit(number, Work(tokens, limit))

    def run(self, stop: AbortFlag, on_prefill: Progress | None = None) -> Iterator[Piece]:
        """Pieces until every request has its finish_reason, "cancelled" once `stop` is set."""
        n_prompt = sum(len(answer.request.prompt.tokens) for answer in self._answers)
        n_done = 0
        while not self._scheduler.is_idle and not stop.is_set:
            n_done += self._start()
            batch = self._scheduler.next_batch(self._decoder.n_batch)
            before = n_done
            if not self._evaluate(batch):
                break
            n_done += self._count_prompt_tokens(batch)
            if on_prefill is not None and n_done != before:
                on_prefill(n_done, n_prompt)
            yield from self._collect(batch)
        yield from self._cancel_rest()

    def close(self) -> None:
        """End what is still open. After an interruption in mid-step the whole cache is emptied."""
        for sequence in list(self._open):
            self._end(sequence)
        if self._in_flight:
            for sequence in range(self._scheduler.n_seq):
                self._decoder.drop(sequence, 0)
            self._scheduler.reset()
            self._in_flight = False
        self._scheduler.abandon()

    # --- the steps ---------------------------------------------------------------------------------

    def _start(self) -> int:
        """Begin the requests that have room; returns the prompt tokens that need no evaluation."""
        n_reused = 0
        self._in_flight = True
        for start in self._scheduler.start():
            for edit in start.edits:
                match edit:
                    case Drop(sequence, position):
                        self._decoder.drop(sequence, position)
                    case Copy(source, sequence, n_tokens):
                        self._decoder.copy(source, sequence, n_tokens)
            self._open.add(start.sequence)
            self._decoder.begin(start.sequence, self._answers[start.request].request.sampling)
            n_reused += start.n_reused
        self._in_flight = False
        return n_reused

    def _evaluate(self, batch: Sequence[Slice]) -> bool:
        self._in_flight = True
        done = self._decoder.evaluate(batch)
        if done:
            self._scheduler.advance(batch)
        self._in_flight = False
        return done

    def _count_prompt_tokens(self, batch: Sequence[Slice]) -> int:
        """Add the batch's prompt tokens to their requests; returns how many there were."""
        n = 0
        request_of = {sequence: request for request, sequence in self._scheduler.running()}
        for piece in batch:
            answer = self._answers[request_of[piece.sequence]]
            if piece.start < len(answer.request.prompt.tokens):
                answer.n_evaluated += len(piece.tokens)
                n += len(piece.tokens)
        return n

    def _collect(self, batch: Sequence[Slice]) -> Iterator[Piece]:
        """Sample every sequence whose last token is evaluated, and emit its text."""
        request_of = {sequence: request for request, sequence in self._scheduler.running()}
        row = -1
        pieces: list[Piece] = []
        for part in batch:
            row += len(part.tokens)
            if not part.sample:
                continue
            number = request_of[part.sequence]
            piece = self._next_piece(number, part.sequence, self._decoder.sample(part.sequence, row))
            if piece is not None:
                pieces.append(piece)
        yield from pieces  # sampled first: the caller may take its time, or never come back

    def _next_piece(self, number: int, sequence: int, token: int | None) -> Piece | None:
        """Account for the sampled token; None when it gives nothing to show yet."""
        answer = self._answers[number]
        if token is None:
            return self._finish(number, sequence, "stop", "")
        answer.n_generated += 1
        text = answer.stream.feed(self._decoder.piece(token))
        if answer.stream.stopped:
            return self._finish(number, sequence, "stop", text)
        if answer.n_generated >= answer.limit:
            return self._finish(number, sequence, "length", text)
        self._scheduler.sampled(sequence, token)
        shown, thought = answer.splitter.feed(text)
        if not shown and not thought:
            return None
        return Piece(number, shown, thought, None, answer.n_evaluated, answer.n_generated)

    def _finish(self, number: int, sequence: int | None, reason: FinishReason, text: str) -> Piece:
        """Close one answer: what the streams held back comes out."""
        answer = self._answers[number]
        if sequence is not None:
            self._end(sequence)
            self._scheduler.finish(sequence)
        text += answer.stream.finish()
        shown, thought = answer.splitter.feed(text)
        last_shown, last_thought = answer.splitter.finish()
        return Piece(
            number,
            shown + last_shown,
            thought + last_thought,
            reason,
            answer.n_evaluated,
            answer.n_generated,
        )

    def _cancel_rest(self) -> Iterator[Piece]:
        running = self._scheduler.running()
        pieces = [self._finish(number, sequence, "cancelled", "") for number, sequence in running]
        pieces += [self._finish(number, None, "cancelled", "") for number in self._scheduler.abandon()]
        yield from pieces

    def _end(self, sequence: int) -> None:
        self._open.discard(sequence)
        self._decoder.end(sequence)


class BatchContext:
    """A values.Context on a Decoder: the limits, cancelling and closing that all engines share."""

    def __init__(
        self, decoder: Decoder, scheduler: Scheduler, stop: AbortFlag, new_splitter: NewSplitter
    ) -> None:
        """`stop` is the flag that the decoder's evaluate() obeys too."""
        self._decoder = decoder
        self._scheduler = scheduler
        self._stop = stop
        self._new_splitter = new_splitter
        self._current: weakref.ref[Generator[Piece, None, None]] | None = None
        self._closed = False

    @property
    def n_ctx(self) -> int:
        """Cells of the cache that may be used."""
        return self._scheduler.n_ctx

    @property
    def n_seq(self) -> int:
        """Sequences decoded side by side."""
        return self._scheduler.n_seq

    def generate(self, requests: Sequence[Request], on_prefill: Progress | None = None) -> Iterator[Piece]:
        """See values.Context. Errors are raised here, before the first piece is asked for; an earlier
        generate() that was left half-way is ended. Ctrl-C stops it soon: KeyboardInterrupt comes out, or,
        where the program's own handler does not raise, the pieces end with "cancelled".
        """
        if self._closed:
            raise LocalctxError("the context is closed")
        check_requests(requests, self.n_ctx)
        self._end_current()
        self._stop.clear()
        generator = self._run(requests, on_prefill)
        self._current = weakref.ref(generator)
        return generator

    def _run(self, requests: Sequence[Request], on_prefill: Progress | None) -> Generator[Piece, None, None]:
        generation = Generation(self._decoder, self._scheduler, requests, self._new_splitter)
        with _watching_sigint(self._stop):
            try:
                yield from generation.run(self._stop, on_prefill)
            finally:
                generation.close()

    def _end_current(self) -> None:
        current = self._current() if self._current is not None else None
        if current is None:
            return
        if inspect.getgeneratorstate(current) == inspect.GEN_RUNNING:
            raise LocalctxError("the context is generating in another thread", "wait, or cancel() it first")
        current.close()

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


@contextmanager
def _watching_sigint(flag: AbortFlag) -> Iterator[None]:
    """Let Ctrl-C set the flag at once; only one context at a time can have that, the first one keeps it."""
    try:
        flag.watch_sigint()
    except RuntimeError:  # another context watches: this one still ends by KeyboardInterrupt between batches
        yield
        return
    try:
        yield
    finally:
        flag.unwatch_sigint()
