"""Requests that come and go while others are decoded, in one cache: its sequences side by side.

Knows no llama.cpp: a Generation does the work; what is put back is a PartsStock's affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

import numpy as np

from localctx._native import State
from localctx.engine.generation import Generation, Stock, answering_at_once
from localctx.engine.plan import Work
from localctx.engine.schedule import Scheduler
from localctx.errors import LocalctxError
from localctx.kv import KVPart, Shared
from localctx.values import Piece, Request

__all__ = ["Host", "OpenBatch", "PartsStock"]


class PartsStock(Stock, Protocol):
    """A stock of parts of kept KV, by the numbers of requests."""

    def expect(self, request: int, parts: Sequence[KVPart], n_held: int) -> None:
        """The request's parts, in order; the first n_held tokens will probably be shared."""

    def forget(self, request: int) -> None:
        """The request is over."""

    def export(self, request: int, first: int, end: int) -> State:
        """The KV of the request's sequence at positions [first, end)."""

    def close(self) -> None:
        """Let go of everything."""


class Host(Protocol):
    """The context that a batch has for itself."""

    @property
    def n_batch(self) -> int:
        """Tokens of one step."""

    @property
    def is_stopped(self) -> bool:
        """Whether stop() was called, or Ctrl-C."""

    def check(self, request: Request) -> None:
        """Raises UsageError for a request that can never run."""

    def stepping(self) -> AbstractContextManager[None]:
        """What a step runs in, where Ctrl-C stops."""

    def stop(self) -> None:
        """Stop soon; from any thread."""

    def release(self) -> None:
        """The batch is closed."""


class OpenBatch:
    """A kv.Batch. The context is its own until it is closed; one thread calls it, but for stop()."""

    def __init__(
        self, generation: Generation, scheduler: Scheduler, host: Host, stock: PartsStock | None = None
    ) -> None:
        """The scheduler is the generation's."""
        self._generation = generation
        self._scheduler = scheduler
        self._host = host
        self._stock = stock
        self._finished: list[int] = []
        self._is_closed = False

    @property
    def n_ctx(self) -> int:
        """Cells that all of them share."""
        return self._scheduler.n_ctx

    @property
    def n_seq(self) -> int:
        """Requests that are decoded side by side."""
        return self._scheduler.n_seq

    @property
    def is_idle(self) -> bool:
        """See kv.Batch."""
        return self._scheduler.is_idle

    @property
    def n_waiting(self) -> int:
        """See kv.Batch."""
        return self._scheduler.n_waiting

    @property
    def is_hungry(self) -> bool:
        """See kv.Batch."""
        scheduler = self._scheduler
        n_free = self.n_seq - len(scheduler.running())
        return scheduler.n_waiting <= n_free and scheduler.n_pending < self._host.n_batch

    @property
    def is_stopped(self) -> bool:
        """See kv.Batch."""
        return self._host.is_stopped

    def submit(self, request: Request, parts: Sequence[KVPart] = (), shared: Shared | None = None) -> int:
        """See kv.Batch."""
        self._check_open()
        request = answering_at_once(request)
        self._host.check(request)
        ordered = sorted((part for part in parts if part.n_tokens), key=lambda part: part.position)
        if ordered and self._stock is None:
            raise ValueError("this context takes no kept KV")
        tokens = np.array(request.prompt.tokens, np.int32)
        work = Work(tokens, request.sampling.max_tokens, _ranges(ordered))
        if shared is not None:
            work = replace(work, made_of=shared.made_of, n_shareable=shared.n_tokens)
        n_held = self._scheduler.n_held_of(work)
        number = self._generation.add(request, work)
        if self._stock is not None:
            self._stock.expect(number, ordered, n_held)
        return number

    def step(self) -> list[Piece]:
        """See kv.Batch."""
        self._check_open()
        self._forget_finished()
        with self._host.stepping():
            if not self.is_stopped and not self.is_idle:
                self._generation.step()
            if self.is_stopped:
                self._generation.cancel_all()
        pieces = list(self._generation.hand_out())
        self._finished = [piece.request for piece in pieces if piece.finish_reason is not None]
        return pieces

    def cancel(self, number: int) -> None:
        """See kv.Batch."""
        if not self._is_closed:
            self._generation.cancel(number)
            self._finished.append(number)

    def stop(self) -> None:
        """See kv.Batch."""
        self._host.stop()

    def export(self, number: int, first: int, end: int) -> State:
        """See kv.Batch."""
        if self._stock is None:
            raise ValueError("this context takes no kept KV")
        return self._stock.export(number, first, end)

    def close(self) -> None:
        """See kv.Batch."""
        if not self._is_closed:
            self._is_closed = True
            self._generation.close()
            if self._stock is not None:
                self._stock.close()
            self._host.release()

    def _forget_finished(self) -> None:
        if self._stock is not None:
            for number in self._finished:
                self._stock.forget(number)
        self._finished = []

    def _check_open(self) -> None:
        if self._is_closed:
            raise LocalctxError("the batch is closed")


def _ranges(parts: Sequence[KVPart]) -> tuple[tuple[int, int], ...]:
    """The half-open ranges that the parts, in order, stand at, joined where they touch. Raises ValueError for
    parts that overlap, or take rows that their source does not have.
    """
    ranges: list[tuple[int, int]] = []
    for part in parts:
        if part.first < 0 or part.first + part.n_tokens > part.source.n_tokens:
            raise ValueError(f"rows [{part.first}, {part.first + part.n_tokens}) of {part.source.n_tokens}")
        start, end = part.position, part.position + part.n_tokens
        if ranges and start < ranges[-1][1]:
            raise ValueError(f"a part at [{start}, {end}), another up to {ranges[-1][1]}")
        if ranges and start == ranges[-1][1]:
            ranges[-1] = ranges[-1][0], end
        else:
            ranges.append((start, end))
    return tuple(ranges)
