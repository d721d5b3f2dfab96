"""One question's place among others: its prompt put together, its answer taken in pieces (ask.Decoding)."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol, runtime_checkable

from localctx._native import Rope, State
from localctx.assemble import Layout, parts_of
from localctx.errors import LocalctxError
from localctx.kv import KVContext, KVPart, Shared
from localctx.session.cache import Cache, run_at, run_finder
from localctx.session.decoding import Decoded, one_answer
from localctx.session.events import Event
from localctx.session.opening import timed
from localctx.session.placing import CANCELLED, Placed
from localctx.session.prefill import ensure_prefix
from localctx.session.run import Run
from localctx.session.seats import Need, Seats
from localctx.session.supply import largest_answer_n_ctx
from localctx.values import Piece, Request

__all__ = ["Seat"]

LONGER = 64
"""Tokens by which the next questions may be longer than the first, where only they are of their own."""


@runtime_checkable
class _Cuttable(Protocol):
    """A model that says whether its cache can be cut, so that sequences may share a beginning."""

    @property
    def can_reuse(self) -> bool:
        """Whether it can."""


@dataclass(slots=True, eq=False)
class Seat:
    """One question's place among the others: an ask.Decoding. `pieces`: of its answer, not told yet."""

    seats: Seats
    pieces: deque[Piece] = field(default_factory=deque)
    number: int | None = None

    @property
    def n_ctx(self) -> int:
        """Cells that all questions share."""
        return 0 if self.seats.context is None else self.seats.context.n_ctx

    @property
    def shares_beginnings(self) -> bool:
        """See ask.Decoding."""
        model = self.seats.model
        return not isinstance(model, _Cuttable) or model.can_reuse

    def request(self, run: Run, request: Request) -> Generator[Event, None, Decoded]:
        """See ask.Decoding."""
        need = Need(0, len(request.prompt.tokens) + request.sampling.max_tokens)
        yield from self.seats.open_for(run, need, with_kv=False)
        return (yield from self._decoded(run, request))

    def placed(self, cache: Cache, placed: Placed) -> Generator[Event, None, Decoded]:
        """See ask.Decoding."""
        run, max_tokens = cache.run, cache.run.settings.max_tokens
        if placed.is_cancelled:
            return CANCELLED
        need = _need(cache, placed, max_tokens)
        if not _complete(cache, placed, need.n_tokens):
            return CANCELLED
        yield from self.seats.open_for(run, need, with_kv=True)
        with timed(run.timings, "read_ms"):
            cache.kept.wait()  # while the next question is made ready, nothing is read for this one
        with timed(run.timings, "assemble_ms"):
            layout = placed.arrange(self._kv_context)
            fresh = placed.refreshed.restore(layout) if placed.refreshed is not None else []
            find = run_finder(cache, placed.streams)
            parts = [part for stretch in layout.restored for part in parts_of(stretch, find)]
            shared = Shared(_made_of(cache, placed, layout), len(layout.tokens))
        request = run.request_of(cache.frame.prompt(layout.tokens[len(cache.prefix) :]), max_tokens)
        yield from run.unheard()
        decoded = yield from self._decoded(run, request, [*parts, *fresh], shared)
        if decoded.finish_reason == "cancelled":
            return decoded
        run.n_restored += len(request.prompt.tokens) - decoded.n_evaluated
        if placed.refreshed is not None:
            placed.refreshed.keep(self)
        return decoded

    @property
    def rope_table(self) -> Rope:
        """See refreshed.Holding."""
        return self._kv_context.rope_table

    def export(self, first: int, end: int) -> State:
        """See refreshed.Holding: as long as the next step has not begun."""
        if self.seats.batch is None or self.number is None:
            raise LocalctxError("the question has no place")
        return self.seats.batch.export(self.number, first, end)

    @property
    def _kv_context(self) -> KVContext:
        context = self.seats.context
        if not isinstance(context, KVContext):
            raise LocalctxError("no context for kept KV is open")
        return context

    def _decoded(
        self, run: Run, request: Request, parts: Sequence[KVPart] = (), shared: Shared | None = None
    ) -> Generator[Event, None, Decoded]:
        if self.seats.is_stopped:
            return CANCELLED
        self.number = self.seats.take(self, request, parts, shared)
        return (yield from one_answer(self._told(self.number), run.timings, run.started))

    def _told(self, number: int) -> Iterator[Piece | None]:
        """The pieces of its answer, None while there is none; gives the place back in the end."""
        try:
            while True:
                yield self.pieces.popleft() if self.pieces else None
        finally:
            self.seats.leave(number)


def _need(cache: Cache, placed: Placed, max_tokens: int) -> Need:
    """A document that is attended whole is there once for all its questions; room for longer ones where there
    is any.
    """
    n_own = len(cache.frame.suffix) + max_tokens
    if not placed.passages:
        n_left = max(0, cache.run.limit - placed.n_tokens - n_own)
        return Need(placed.n_tokens, n_own + min(LONGER, n_left))
    return Need(0, max(placed.n_tokens + n_own, largest_answer_n_ctx(cache)))


def _complete(cache: Cache, placed: Placed, n_tokens: int) -> bool:
    """Make what KV and speed are missing, in a context beside the others'; False when it was cancelled."""
    run = cache.run
    needs_rate = placed.refreshed is not None and cache.known_rate() is None
    if cache.kept.load_prefix(cache.prefix_stream()) and placed.prefill is None and not needs_rate:
        return True
    with cache.context(n_tokens) as context:
        with timed(run.timings, "prefill_ms"):
            run.n_evaluated += ensure_prefix(cache, context)
            if needs_rate:
                cache.rate(context)
        return cache.has_prefix and (placed.prefill is None or placed.prefill(context))


def _made_of(cache: Cache, placed: Placed, layout: Layout) -> bytes:
    """A name of what the layout's tokens are put back from: all runs, and what stands where."""
    hasher = blake2b(digest_size=16, person=b"layout")
    for stretch in layout.restored:
        hasher.update(f"{stretch.position} {stretch.first} {stretch.n_tokens}\n".encode())
        at, end = stretch.first, stretch.first + stretch.n_tokens
        while stretch.document is not None and at < end:
            run_id, run, row = run_at(cache, placed.streams[stretch.document], at)
            hasher.update(run_id + cache.kept.encoding_of(run_id))
            at += run.n_tokens - row
    return hasher.digest()
