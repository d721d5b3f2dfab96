"""One thread that owns the model: it takes what is next by weight, steps what is open, tells what came of it.

Whoever asks pushes a Ticket from any thread; outcomes go through `post`, a batch at a time. Knows no HTTP.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from localctx.errors import LocalctxError
from localctx.serve.fairness import FairQueue, QueueFull
from localctx.serve.keys import Tenant
from localctx.serve.quota import TokenBucket
from localctx.serve.tickets import Busy, End, Lane, Outcome, Quota, Stopping, Ticket
from localctx.session.events import Text
from localctx.values import Piece

__all__ = ["Outcomes", "Post", "Worker"]

Outcomes: TypeAlias = Sequence[tuple[Ticket, Outcome]]
Post: TypeAlias = Callable[[Outcomes], None]
ENDED = LocalctxError("the server is shutting down", "ask again in a moment")
BUSY_RETRY_S = 1.0
"""Least time after which a full queue is worth trying again."""


class Worker:
    """Start it once, close it once. Lanes by the kind of job; each has a queue of its own."""

    def __init__(
        self, lanes: Mapping[type, Lane], tenants: Sequence[Tenant], post: Post, *, max_queue: int = 256
    ) -> None:
        """`post` is called from the worker's thread."""
        now = time.monotonic()
        self._lanes = dict(lanes)
        self._queues = {kind: FairQueue[Ticket](max_queue, len(tenants)) for kind in lanes}
        self._buckets = {one.name: TokenBucket(one.max_tokens_per_sec, now) for one in tenants}
        self._post = post
        self._running: set[Ticket] = set()
        self._cancelled: set[Ticket] = set()
        self._changed = threading.Condition()
        self._is_draining = self._is_ending = self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="localctx-decode", daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    # --- for those who ask, from any thread -----------------------------------------------------------

    def push(self, ticket: Ticket) -> None:
        """Have a ticket done when its turn comes. Raises Quota, Busy, Stopping."""
        queue, now = self._queues[type(ticket.job)], time.monotonic()
        with self._changed:
            if self._is_draining or self.failure is not None:
                raise Stopping
            bucket = self._buckets[ticket.tenant.name]
            wait_s = bucket.wait_s(now)
            if wait_s > 0:
                raise Quota(wait_s)
            try:
                queue.push(ticket.tenant, ticket, now)
            except QueueFull:
                raise Busy(BUSY_RETRY_S) from None
            bucket.take(ticket.job.n_tokens, now)
            self._changed.notify()

    def cancel(self, ticket: Ticket) -> None:
        """Nobody waits for it any more; one that is over is no error."""
        with self._changed:
            was_waiting = self._queues[type(ticket.job)].remove(ticket.tenant, ticket)
            if was_waiting:
                self._give_back(ticket)
            elif ticket in self._running:
                self._cancelled.add(ticket)
                self._changed.notify()
        if was_waiting:
            ticket.over()

    @property
    def is_alive(self) -> bool:
        """Whether it takes requests."""
        return self._thread.is_alive() and not self._is_draining and self.failure is None

    @property
    def is_draining(self) -> bool:
        """Whether drain() was called."""
        return self._is_draining

    @property
    def n_waiting(self) -> int:
        """Requests in line."""
        with self._changed:
            return sum(len(queue) for queue in self._queues.values())

    @property
    def n_running(self) -> int:
        """Requests that are being answered."""
        return len(self._running)

    def drain(self) -> None:
        """Take nothing more, and end what has not begun."""
        with self._changed:
            self._is_draining = True
            waiting = [ticket for queue in self._queues.values() for ticket in queue.drain()]
            self._changed.notify()
        for ticket in waiting:
            ticket.over()
        if waiting:
            self._post([(ticket, End(ENDED)) for ticket in waiting])

    def end(self) -> None:
        """Take nothing more, and end what is running too: it is told so."""
        self.drain()
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        for lane in self._lanes.values():
            lane.stop()

    def close(self) -> None:
        """End what is open, stop the thread, free the lanes."""
        self.drain()
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        for lane in self._lanes.values():
            lane.stop()
        if self._thread.ident is not None:
            self._thread.join()
        for lane in self._lanes.values():
            lane.close()

    # --- the thread -----------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while self._wait():
                outcomes: list[tuple[Ticket, Outcome]] = []
                for kind, lane in self._lanes.items():
                    outcomes += self._started(kind, lane)
                    outcomes += lane.step()
                self._note_first(outcomes)
                for ticket, outcome in outcomes:
                    if isinstance(outcome, End):
                        self._over(ticket)  # first: who has the answer finds it counted, and its place free
                if outcomes:
                    self._post(outcomes)
        except BaseException as error:
            self._fail(error)
            raise

    def _wait(self) -> bool:
        """Sleep while there is nothing to do; end what is cancelled; False at the end.

        The lock is not taken while nothing but steps is to be done: steps that are quick would keep it from
        those who ask.
        """
        if self._running and not (self._cancelled or self._is_ending or self._is_closing):
            return True
        with self._changed:
            while not (self._is_closing or self._running or any(self._queues.values())):
                self._changed.wait()
            cancelled, self._cancelled = self._cancelled, set()
            is_ending, is_closing = self._is_ending, self._is_closing
        for ticket in list(self._running) if is_ending or is_closing else cancelled:
            if ticket in self._running:
                self._lanes[type(ticket.job)].cancel(ticket)
                if is_ending:
                    self._post([(ticket, End(ENDED))])
                self._over(ticket)
        return not is_closing

    def _started(self, kind: type, lane: Lane) -> list[tuple[Ticket, Outcome]]:
        """Begin what has its turn and room; those that cannot be."""
        failed: list[tuple[Ticket, Outcome]] = []
        while len(self._queues[kind]) and lane.has_room:
            with self._changed:
                entry = self._queues[kind].pop()
                if entry is None:
                    return failed
                tenant, ticket = entry
                self._running.add(ticket)
                for queue in self._queues.values():
                    queue.charge(tenant, ticket.job.n_tokens)
            ticket.started_at = time.monotonic()
            try:
                lane.start(ticket)
            except LocalctxError as error:
                failed.append((ticket, End(error)))
        return failed

    def _note_first(self, outcomes: Outcomes) -> None:
        now = time.monotonic()
        for ticket, outcome in outcomes:
            if ticket.first_at is None and isinstance(outcome, (Piece, Text)):
                ticket.first_at = now

    def _over(self, ticket: Ticket) -> None:
        with self._changed:
            self._running.discard(ticket)
            self._queues[type(ticket.job)].finished(ticket.tenant)
            for queue in self._queues.values():
                queue.charge(ticket.tenant, ticket.n_used - ticket.job.n_tokens)
            self._give_back(ticket)
        ticket.over()

    def _give_back(self, ticket: Ticket) -> None:
        """What was reserved and not used."""
        unused = ticket.job.n_tokens - ticket.n_used
        self._buckets[ticket.tenant.name].take(-unused, time.monotonic())

    def _fail(self, error: BaseException) -> None:
        """A bug: nobody is left waiting for an answer that cannot come."""
        with self._changed:
            self.failure = error
            waiting = [ticket for queue in self._queues.values() for ticket in queue.drain()]
            everyone = [*self._running, *waiting]
            self._running.clear()
        for ticket in everyone:
            ticket.over()
        told = LocalctxError("the decoding thread ended unexpectedly", "restart the server")
        self._post([(ticket, End(told)) for ticket in everyone])
