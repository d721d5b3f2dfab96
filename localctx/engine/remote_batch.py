"""Requests to another server as kv.Batch: each is sent by a thread of its own, as many at a time as may be.

Knows no HTTP: a function sends one request and gives its pieces.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from localctx._native import State
from localctx.engine.batch_context import check_requests
from localctx.kv import KVPart, Shared
from localctx.values import Piece, Request

__all__ = ["RemoteBatch", "Send"]

Send = Callable[[Request], Iterator[Piece]]
"""Sends a request; its pieces, whatever number they bear. Raises BackendError."""
WAIT_S = 0.1
"""How long a step waits for something to arrive."""


class RemoteBatch:
    """One thread calls it, but for stop()."""

    def __init__(self, send: Send, n_ctx: int, n_seq: int) -> None:
        self.n_ctx, self.n_seq = n_ctx, n_seq
        self._send = send
        self._waiting: deque[tuple[int, Request]] = deque()
        self._running: set[int] = set()
        self._arrived: queue.Queue[tuple[int, Piece | Exception]] = queue.Queue()
        self._stop = threading.Event()
        self._n_submitted = 0

    @property
    def is_idle(self) -> bool:
        """See kv.Batch."""
        return not (self._waiting or self._running)

    @property
    def n_waiting(self) -> int:
        """See kv.Batch."""
        return len(self._waiting)

    @property
    def is_hungry(self) -> bool:
        """See kv.Batch."""
        return len(self._waiting) + len(self._running) < self.n_seq

    @property
    def is_stopped(self) -> bool:
        """See kv.Batch."""
        return self._stop.is_set()

    def submit(self, request: Request, parts: Sequence[KVPart] = (), shared: Shared | None = None) -> int:
        """See kv.Batch; nothing is shared here."""
        if parts:
            raise ValueError("another server takes no kept KV")
        check_requests([request], self.n_ctx)
        number, self._n_submitted = self._n_submitted, self._n_submitted + 1
        self._waiting.append((number, request))
        self._start()
        return number

    def step(self) -> list[Piece]:
        """See kv.Batch. Raises BackendError, after which that request is not open any more."""
        if self.is_stopped:
            open_ones = sorted({*self._running, *(number for number, _ in self._waiting)})
            self._waiting.clear()
            self._running.clear()
            return [Piece(number, "", finish_reason="cancelled") for number in open_ones]
        pieces: list[Piece] = []
        while not self.is_idle:
            try:
                number, piece = self._arrived.get(timeout=0 if pieces else WAIT_S)
            except queue.Empty:
                break
            if number not in self._running:
                continue
            if isinstance(piece, Exception):
                self._over(number)
                raise piece
            pieces.append(replace(piece, request=number))
            if piece.finish_reason is not None:
                self._over(number)
        return pieces

    def cancel(self, number: int) -> None:
        """See kv.Batch; its thread ends with the next piece."""
        self._waiting = deque(item for item in self._waiting if item[0] != number)
        self._over(number)

    def stop(self) -> None:
        """See kv.Batch."""
        self._stop.set()

    def export(self, number: int, first: int, end: int) -> State:
        """See kv.Batch."""
        raise ValueError("another server gives no KV")

    def close(self) -> None:
        """See kv.Batch."""
        self._stop.set()
        self._waiting.clear()
        self._running.clear()

    def _over(self, number: int) -> None:
        self._running.discard(number)
        self._start()

    def _start(self) -> None:
        """A thread for each request that may be sent now."""
        while self._waiting and len(self._running) < self.n_seq:
            number, request = self._waiting.popleft()
            self._running.add(number)
            threading.Thread(target=self._bring, args=(number, request), daemon=True).start()

    def _bring(self, number: int, request: Request) -> None:
        try:
            for piece in self._send(request):
                if self.is_stopped or number not in self._running:
                    return
                self._arrived.put((number, piece))
        except Exception as error:  # noqa: BLE001  # raised by the step that waits for it
            self._arrived.put((number, error))
