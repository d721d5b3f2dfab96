"""Where questions among others are decoded: one context, whose places they take by turns as they come.

As many places as were asked for, or as memory holds; every question has its own tokens there, but for what it
shares with others. Knows no strategy.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from localctx.engine.shape import n_worth
from localctx.engine.uninterrupted import wait_whatever_comes
from localctx.errors import LocalctxError, ModelError, NotComposable, OutOfMemory
from localctx.kv import Batch, BatchingContext, KVPart, Shared
from localctx.session.cache import KVModel, why_no_cache
from localctx.session.events import WAITING, Event
from localctx.session.one_context import OpenContext
from localctx.session.opening import timed
from localctx.session.run import Run
from localctx.session.strategy import round_n_ctx
from localctx.values import Context, Model, Piece, Request

__all__ = ["Need", "Seats", "Taker"]


@dataclass(frozen=True, slots=True)
class Need:
    """Tokens of a request and its answer: those that all questions on the same share, and its own."""

    n_shared: int
    n_own: int

    @property
    def n_tokens(self) -> int:
        return self.n_shared + self.n_own


class Taker(Protocol):
    """Whoever waits for the pieces of an answer."""

    @property
    def pieces(self) -> deque[Piece]:
        """Those that were not told yet."""


@dataclass
class Seats:
    """`n_wanted`: places asked for · preparing: the context in which missing KV is made, closed before theirs
    is opened, so that one of the two at a time is new.
    """

    model: Model
    n_wanted: int
    preparing: OpenContext
    is_stopped: bool = False
    context: Context | None = None
    batch: Batch | None = None
    _takes_kv: bool = False
    _is_refused: bool = False
    _pool: ThreadPoolExecutor | None = None
    _evaluating: Future[list[Piece]] | None = None
    _taken: dict[int, Taker] = field(default_factory=dict)

    @property
    def n_places(self) -> int:
        """Questions that are decoded side by side."""
        return self.n_wanted if self.batch is None else self.batch.n_seq

    @property
    def is_hungry(self) -> bool:
        """Whether one more question should be made ready."""
        return self.batch is None or self.batch.is_hungry

    @property
    def n_waiting(self) -> int:
        """Requests that were made ready and have no place yet."""
        return 0 if self.batch is None else self.batch.n_waiting

    @property
    def is_busy(self) -> bool:
        """Whether the model has something to do."""
        return self.batch is not None and not self.batch.is_idle

    @cached_property
    def overlaps(self) -> bool:
        """Whether this thread can work while the model does; on a CPU it would take the model's cores."""
        return isinstance(self.model, KVModel) and self.model.is_offloaded

    def step(self, meanwhile: Callable[[Callable[[], bool]], None] | None = None) -> list[Taker]:
        """Evaluate one batch; those who got pieces. Raises ModelError.

        meanwhile(is_done): what this thread does until then, while another one evaluates; it touches neither
        the batch nor the context.
        """
        found: dict[int, Taker] = {}
        batch = self.batch
        if batch is None:
            return []
        for piece in batch.step() if meanwhile is None else self._step_beside(batch, meanwhile):
            seat = self._taken.get(piece.request)
            if seat is not None:
                seat.pieces.append(piece)
                found[piece.request] = seat
        self.is_stopped = self.is_stopped or batch.is_stopped
        return list(found.values())

    @property
    def is_evaluating(self) -> bool:
        """Whether a batch is being evaluated in another thread."""
        return self._evaluating is not None

    def settle(self) -> None:
        """Wait until the batch that is evaluated is done; a Ctrl-C goes on then, not before."""
        if self._evaluating is not None:
            done = threading.Event()
            self._evaluating.add_done_callback(lambda _: done.set())
            if (interrupt := wait_whatever_comes(done)) is not None:
                raise interrupt

    def stop(self) -> None:
        """End all answers soon; from any thread."""
        self.is_stopped = True
        if (batch := self.batch) is not None:
            batch.stop()
        self.preparing.cancel()

    def take(self, seat: Taker, request: Request, parts: Sequence[KVPart], shared: Shared | None) -> int:
        """The request waits for a place; its number."""
        if self.batch is None:
            raise LocalctxError("no context is open")
        number = self.batch.submit(request, parts, shared)
        self._taken[number] = seat
        return number

    def leave(self, number: int) -> None:
        """The request needs its place no more."""
        if self._taken.pop(number, None) is not None and self.batch is not None:
            self.batch.cancel(number)

    def open_for(self, run: Run, need: Need, *, with_kv: bool) -> Iterator[Event]:
        """Have a context open that serves the request; a smaller one is given up when nothing runs in it.

        Raises NotComposable, OutOfMemory for a single request, ModelError.
        """
        while not self._serves(need, with_kv=with_kv):
            if self.is_busy:
                yield WAITING
                continue
            self.close()
            self.preparing.close()
            with timed(run.timings, "load_ms"):
                self._open(run, need, with_kv=with_kv)
            yield from run.unheard()

    def close(self) -> None:
        """Free the context, once nothing evaluates in it; again is harmless."""
        with ExitStack() as then:
            then.callback(self._free)
            if self._pool is not None:
                then.callback(self._pool.shutdown)
            self.settle()

    def _free(self) -> None:
        if self.batch is not None:
            self.batch.close()
        if self.context is not None:
            self.context.close()
        self.batch = self.context = self._pool = None
        self._taken.clear()

    def _step_beside(self, batch: Batch, meanwhile: Callable[[Callable[[], bool]], None]) -> list[Piece]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="evaluate")
        evaluating = self._evaluating = self._pool.submit(batch.step)
        try:
            try:
                meanwhile(evaluating.done)
            finally:
                self.settle()
        finally:
            if evaluating.done():
                self._evaluating = None
        return evaluating.result()

    def _serves(self, need: Need, *, with_kv: bool) -> bool:
        return (
            self.batch is not None and need.n_tokens <= self.batch.n_ctx and (self._takes_kv or not with_kv)
        )

    def _open(self, run: Run, need: Need, *, with_kv: bool) -> None:
        """As many places as are worth it, and as there is memory for."""
        n_seq, reason = self._n_worth(need), ""
        if n_seq < self.n_wanted:
            reason = "on a processor more gain nothing"
        while True:
            try:
                context = self._context(run, need, n_seq, with_kv=with_kv)
                break
            except (OutOfMemory, ModelError) as error:
                if n_seq == 1 or isinstance(error, NotComposable):
                    raise
                n_seq, reason = n_seq // 2, error.message
        if reason:
            run.note(f"{n_seq} questions side by side, not {self.n_wanted}: {reason}")
        run.warnings.extend(context.notices)
        self.context = context
        if not isinstance(context, BatchingContext):
            raise LocalctxError(f"{self.model.info.name} answers one question at a time")
        self.batch = context.open_batch()

    def _n_worth(self, need: Need) -> int:
        model = self.model
        if not isinstance(model, KVModel) or model.is_offloaded:
            return self.n_wanted
        return min(self.n_wanted, n_worth(model.shape, need.n_own))

    def _context(self, run: Run, need: Need, n_seq: int, *, with_kv: bool) -> Context:
        n_ctx = round_n_ctx(need.n_shared + n_seq * need.n_own)
        n_longest = min(round_n_ctx(need.n_tokens), max(run.limit, need.n_tokens))
        model, self._takes_kv = self.model, False
        if (
            isinstance(model, KVModel)
            and why_no_cache(model) is None
            and not (self._is_refused and not with_kv)
        ):
            try:
                context = model.open_kv_context(n_ctx, n_seq, n_longest=n_longest)
            except NotComposable:
                self._is_refused = True
                if with_kv:
                    raise
            else:
                self._takes_kv = True
                return context
        return model.open_context(n_ctx, n_seq, n_longest=n_longest)
