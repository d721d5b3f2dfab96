"""Continuous batching: requests in, pieces of text out. Knows no llama.cpp: a Decoder does the work.

One step reads schedule → evaluate → sample → emit; the plan is schedule.py's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from localctx._native import AbortFlag
from localctx.engine.plan import Copy, Drop, Slice, Start, Work
from localctx.engine.schedule import Scheduler
from localctx.engine.stopping import TextStream
from localctx.engine.thinking import ThinkingSplitter
from localctx.values import FinishReason, Piece, Progress, Request, Sampling

__all__ = ["Decoder", "Generation", "NewSplitter", "Stock", "answering_at_once"]

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


class Stock(Protocol):
    """KV of requests that are put together from kept KV, beside the sequences they run in."""

    def put(self, start: Start) -> None:
        """Lay what is restored of the request beside its sequence."""

    def attach(self, sequence: int, start: int, end: int) -> None:
        """Let the sequence have what lies beside it at positions [start, end)."""

    def end(self, sequence: int) -> None:
        """Free what lies beside the sequence and was not taken."""


@dataclass(slots=True)
class _Answer:
    """The output of one request so far."""

    request: Request
    limit: int
    stream: TextStream
    splitter: ThinkingSplitter
    n_evaluated: int = 0
    n_generated: int = 0


def answering_at_once(request: Request) -> Request:
    """Under a grammar nothing is thought first: an open thinking block is closed."""
    prompt = request.prompt
    if not (request.sampling.grammar and prompt.thinking_open):
        return request
    closed = replace(prompt, tokens=(*prompt.tokens, *prompt.closing), thinking_open=False)
    return replace(request, prompt=closed)


class Generation:
    """Requests on their way to answers: run() for one generate() call, or add(), step() and cancel() as they
    come. close() in any case, it leaves the cache usable.

    After close(), hand_out() gives the pieces that run() had still to give: every request gets its last one.
    """

    def __init__(
        self,
        decoder: Decoder,
        scheduler: Scheduler,
        requests: Sequence[Request],
        new_splitter: NewSplitter,
        stock: Stock | None = None,
    ) -> None:
        """The requests have been checked. `stock`: of those that are added with something restored."""
        self._decoder = decoder
        self._scheduler = scheduler
        self._new_splitter = new_splitter
        self._stock = stock
        self._answers: dict[int, _Answer] = {}
        self._n_added = 0
        self._open: set[int] = set()  # sequences that have a sampler
        self._in_flight = False
        self._ready: deque[Piece] = deque()
        scheduler.abandon()  # an interruption may have left requests behind
        for request in requests:
            self.add(request, Work(np.array(request.prompt.tokens, np.int32), request.sampling.max_tokens))

    def add(self, request: Request, work: Work) -> int:
        """One more request, which has been checked; its number, counted from 0. `work` is it in tokens."""
        number, self._n_added = self._n_added, self._n_added + 1
        limit = min(work.max_tokens, self._scheduler.n_ctx - len(work.tokens))
        stream = TextStream(request.sampling.stop)
        splitter = self._new_splitter(request.prompt.thinking_open)
        self._scheduler.submit(number, replace(work, max_tokens=limit))
        self._answers[number] = _Answer(request, limit, stream, splitter)
        return number

    def cancel(self, number: int) -> None:
        """Forget a request; no piece of it comes any more."""
        sequence = self._scheduler.cancel(number)
        if sequence is not None:
            self._end(sequence)
        self._answers.pop(number, None)
        self._ready = deque(piece for piece in self._ready if piece.request != number)

    def run(self, stop: AbortFlag, on_prefill: Progress | None = None) -> Iterator[Piece]:
        """Pieces until every request has its finish_reason, "cancelled" once `stop` is set."""
        n_prompt = sum(len(answer.request.prompt.tokens) for answer in self._answers.values())
        n_done = 0
        while not self._scheduler.is_idle and not stop.is_set:
            n_more = self.step()
            if n_more is None:
                break
            n_done += n_more
            if on_prefill is not None and n_more:
                on_prefill(n_done, n_prompt)
            yield from self.hand_out()
        self.cancel_all()
        yield from self.hand_out()

    def step(self) -> int | None:
        """Start what has room, evaluate one batch and sample: tokens of prompts that are done now; None when
        it was stopped.
        """
        n_done = self._start()
        self._attach()
        batch = self._scheduler.next_batch(self._decoder.n_batch)
        if not self._evaluate(batch):
            return None
        n_done += self._count_prompt_tokens(batch)
        self._collect(batch)
        return n_done

    def cancel_all(self) -> None:
        """Every open request ends with "cancelled"."""
        for number, sequence in self._scheduler.running():
            self._finish(number, sequence, "cancelled", "")
        self._cancel_rest()

    def hand_out(self) -> Iterator[Piece]:
        """The pieces that are ready, each once."""
        while self._ready:
            yield self._ready.popleft()

    def close(self) -> None:
        """End what is still open. After an interruption in mid-step the whole cache is emptied."""
        self._cancel_rest()
        for sequence in list(self._open):
            self._end(sequence)
        if self._in_flight:
            for sequence in range(self._scheduler.n_seq):
                self._decoder.drop(sequence, 0)
            self._scheduler.reset()
            self._in_flight = False

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
            if self._stock is not None:
                self._stock.put(start)
            self._decoder.begin(start.sequence, self._answers[start.request].request.sampling)
            n_reused += start.n_reused
        self._in_flight = False
        return n_reused

    def _attach(self) -> None:
        self._in_flight = True
        for one in self._scheduler.attach():
            if self._stock is not None:
                self._stock.attach(one.sequence, one.start, one.end)
        self._in_flight = False

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

    def _collect(self, batch: Sequence[Slice]) -> None:
        """Sample every sequence whose last token is evaluated, and make its text ready."""
        request_of = {sequence: request for request, sequence in self._scheduler.running()}
        row = -1
        for part in batch:
            row += len(part.tokens)
            if part.sample:
                token = self._decoder.sample(part.sequence, row)
                self._take(request_of[part.sequence], part.sequence, token)

    def _take(self, number: int, sequence: int, token: int | None) -> None:
        """Account for the sampled token."""
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
        if shown or thought:
            self._ready.append(Piece(number, shown, thought, None, answer.n_evaluated, answer.n_generated))
        return None

    def _finish(self, number: int, sequence: int | None, reason: FinishReason, text: str) -> None:
        """Close one answer: what the streams held back comes out."""
        answer = self._answers.pop(number)
        if sequence is not None:
            self._end(sequence)
            self._scheduler.finish(sequence)
        text += answer.stream.finish()
        shown, thought = answer.splitter.feed(text)
        last_shown, last_thought = answer.splitter.finish()
        self._ready.append(
            Piece(
                number,
                shown + last_shown,
                thought + last_thought,
                reason,
                answer.n_evaluated,
                answer.n_generated,
            )
        )

    def _cancel_rest(self) -> None:
        """The last pieces of the requests that never got one, whatever the scheduler thinks of them."""
        self._scheduler.abandon()
        for number in list(self._answers):
            self._finish(number, None, "cancelled", "")

    def _end(self, sequence: int) -> None:
        self._open.discard(sequence)
        self._decoder.end(sequence)
        if self._stock is not None:
            self._stock.end(sequence)
