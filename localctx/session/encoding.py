"""Chunks of KV → encoded runs, on another thread, while the next chunk is computed.

The queue between the two is short: where encoding or writing is slower than computing, computing waits.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from localctx import _native
from localctx.kv import KVChunk
from localctx.session.token_stream import TokenStream

__all__ = ["Encoder", "Encoding"]

N_WAITING = 2
"""Chunks that may wait for the encoder."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How runs are written: see kv_settings.KVSettings."""

    codec: str
    head_group: int = 1
    error_bound: float | None = None


class Encoder:
    """Hand `on_chunk` to a prefill, inside `with`; leaving it waits until all that came is handed on.

    `keep(number of the run, bytes)` is called on the encoder's thread, in order. What it raises comes out of
    the next on_chunk(), or on leaving.
    """

    def __init__(self, stream: TokenStream, encoding: Encoding, keep: Callable[[int, bytes], None]) -> None:
        self._stream = stream
        self._encoding = encoding
        self._keep = keep
        self._queue: queue.Queue[KVChunk | None] = queue.Queue(N_WAITING)
        self._failure: BaseException | None = None
        self._ended_by: BaseException | None = None
        self._n_handed_on = 0
        self._handed_on = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="localctx-encoder", daemon=True)

    def on_chunk(self, chunk: KVChunk) -> None:
        """Take the KV of some runs of the stream."""
        self._raise_failure()
        self._queue.put(chunk)

    def wait_for(self, number: int) -> None:
        """Wait until the run with this number, which came before, was handed on.

        Raises what on_chunk() does.
        """
        with self._handed_on:
            self._handed_on.wait_for(lambda: self._n_handed_on > number or self._ended_by is not None)
            if self._n_handed_on <= number and self._ended_by is not None:
                raise self._ended_by  # whether or not it came out elsewhere meanwhile

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.put(None)
        self._thread.join()
        if error is None:
            self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _work(self) -> None:
        """Encode what comes until None comes; after a failure only take it away."""
        has_failed = False
        while (chunk := self._queue.get()) is not None:
            if has_failed:
                continue
            try:
                self._encode(chunk)
            except BaseException as error:  # noqa: BLE001  # handed to the thread that computes
                self._failure, has_failed = error, True
                with self._handed_on:
                    self._ended_by = error
                    self._handed_on.notify_all()

    def _encode(self, chunk: KVChunk) -> None:
        encoding = self._encoding
        for number in self._stream.runs_of(chunk.first, chunk.first + chunk.n_tokens):
            first, end = self._stream.spans[number]
            data = _native.encode(
                chunk.state,
                first - chunk.first,
                end - first,
                chunk.rope,
                encoding.codec,
                head_group=encoding.head_group,
                error_bound=encoding.error_bound,
            )
            self._keep(number, data)
            with self._handed_on:
                self._n_handed_on = number + 1
                self._handed_on.notify_all()
