"""What came of one request, on its way from the worker to the task that answers. Knows no HTTP.

Used in one event loop alone. Waiting costs one future and one timer, whatever comes meanwhile.
"""

from __future__ import annotations

import asyncio

from localctx.serve.tickets import Outcome

__all__ = ["Gone", "Inbox"]


class Gone(Exception):
    """Nobody waits for the answer any more."""


class Inbox:
    """One request's; put() and leave() may come before anyone takes."""

    def __init__(self) -> None:
        self._ready: list[Outcome] = []
        self._waiter: asyncio.Future[None] | None = None
        self._is_gone = False

    def put(self, outcome: Outcome) -> None:
        """The next outcome."""
        self._ready.append(outcome)
        self._wake()

    def leave(self) -> None:
        """Who asked is gone: take() raises from now on."""
        self._is_gone = True
        self._wake()

    async def take(self, seconds: float) -> list[Outcome]:
        """All that is ready, in order; nothing when nothing came in so many seconds. Raises Gone."""
        if not self._ready and not self._is_gone and seconds > 0:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = loop.call_later(seconds, self._wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        if self._is_gone:
            raise Gone
        ready, self._ready = self._ready, []
        return ready

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
