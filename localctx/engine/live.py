"""Continuous batching of requests that come and go while others run. Knows no llama.cpp and no queue."""

from __future__ import annotations

from collections.abc import Callable

from localctx._native import AbortFlag
from localctx.engine.generation import Generation
from localctx.engine.schedule import Scheduler
from localctx.values import Piece, Request

__all__ = ["Live"]


class Live:
    """Used by one thread; BatchContext.live() makes and ends it."""

    def __init__(
        self,
        generation: Generation,
        scheduler: Scheduler,
        stop: AbortFlag,
        check: Callable[[Request], None],
    ) -> None:
        """`check` raises UsageError for a request that cannot run."""
        self._generation = generation
        self._scheduler = scheduler
        self._stop = stop
        self._check = check
        self._n_submitted = 0

    @property
    def is_idle(self) -> bool:
        """Nothing waits and nothing runs."""
        return self._scheduler.is_idle

    def submit(self, request: Request) -> int:
        """The number that its pieces will bear. Raises UsageError when it does not fit the cache."""
        self._check(request)
        number = self._n_submitted
        self._n_submitted += 1
        self._generation.submit(number, request)
        return number

    def cancel(self, number: int) -> None:
        """End a request at once; no piece of it comes afterwards. One that is over is no error."""
        self._generation.withdraw(number)

    def step(self) -> list[Piece]:
        """At most one evaluation; the pieces it gave. Once the context is cancelled, all that is open ends
        with "cancelled". Raises ModelError when evaluating fails: then nothing is open any more.
        """
        if self._scheduler.is_idle:
            return []
        if self._stop.is_set or self._generation.step() is None:
            self._generation.cancel_all()
        return list(self._generation.hand_out())
