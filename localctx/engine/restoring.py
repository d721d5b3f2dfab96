"""KV composed at new positions and put into the cells, slice by slice. Knows no plan and no layout.

A slice bounds the host memory that it takes, which is slow to get where it is page-locked; the next one is
composed in another thread while one is copied to the device.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localctx._native import Rope, Run, State, compose, state_size
from localctx.engine.llama_state import CellStates
from localctx.kv import RUN_TOKENS, KVPart, KVSource, RestoreTimes

__all__ = ["Composed", "KVSlice", "KVWriter", "rows_of", "slices_of"]

SLICE_BYTES = 64 << 20
"""Of one slice, about: large enough that copying it is as fast as it gets."""


@dataclass(frozen=True, slots=True, eq=False)
class KVSlice:
    """Rows of the parts, one after the other (their positions are ignored), for ascending `positions`."""

    parts: Sequence[KVPart]
    positions: NDArray[np.int32]


@dataclass(slots=True)
class Composed:
    """Slices on their way: `begun` in another thread, one at work and one waiting, and those left."""

    left: Iterator[KVSlice]
    begun: deque[tuple[KVSlice, Future[NDArray[np.uint8]]]]
    pool: ThreadPoolExecutor


class KVWriter:
    """Puts KV into sequences of one context. `times`: what was spent so far; the two overlap."""

    def __init__(
        self, cells: CellStates, like: State, rope: Rope, spare: int, times: RestoreTimes | None = None
    ) -> None:
        """`like`: any state of this context · `spare`: an empty sequence, left empty."""
        self._cells = cells
        self._like = like
        self._rope = rope
        self._spare = spare
        self.times = times or RestoreTimes()
        row_bytes = state_size(like, 2) - state_size(like, 1)
        self.slice_tokens = max(1, SLICE_BYTES // row_bytes // RUN_TOKENS) * RUN_TOKENS

    def write(self, sequence: int, slices: Iterable[KVSlice]) -> None:
        """Add the slices' rows to the cells of `sequence`, which holds none at their positions.

        Slices are asked for one by one, in this thread. Raises ModelError when llama.cpp refuses one,
        ValueError for layouts that differ, RunLost.
        """
        with ThreadPoolExecutor(1, thread_name_prefix="compose") as pool:
            self.put(sequence, self.compose(slices, pool))

    def compose(self, slices: Iterable[KVSlice], pool: ThreadPoolExecutor) -> Composed:
        """Begin with the first slices, in the pool's thread; put() goes on."""
        composed = Composed(iter(slices), deque(), pool)
        self._compose_next(composed)
        return composed

    def put(self, sequence: int, composed: Composed) -> None:
        """Add what was composed to the cells of `sequence`. Raises as write() does."""
        while composed.begun:
            self._compose_next(composed)
            self._put(sequence, *composed.begun.popleft())

    def _compose_next(self, composed: Composed) -> None:
        one = next(composed.left, None)
        if one is not None:
            composed.begun.append((one, composed.pool.submit(self._composed, one)))

    def _composed(self, one: KVSlice) -> NDArray[np.uint8]:
        asked = time.perf_counter()
        rows = [(here(part.source), part.first, part.n_tokens) for part in one.parts]
        started = time.perf_counter()
        self.times.wait_s += started - asked
        out = self._cells.buffers.lend(state_size(self._like, len(one.positions)))
        blob = compose(self._like, rows, one.positions, self._rope, out=out)
        self.times.compose_s += time.perf_counter() - started
        return blob

    def _put(self, sequence: int, one: KVSlice, begun: Future[NDArray[np.uint8]]) -> None:
        blob = begun.result()
        started = time.perf_counter()
        self._cells.restore(self._spare, blob)
        first, end = int(one.positions[0]), int(one.positions[-1]) + 1
        self._cells.copy(self._spare, sequence, first, end)
        self._cells.drop(self._spare)
        self.times.upload_s += time.perf_counter() - started


def here(source: KVSource) -> Run | State:
    """The run or state itself. Raises RunLost."""
    return source if isinstance(source, (Run, State)) else source.get()


def slices_of(parts: Sequence[KVPart], positions: NDArray[np.int32], n_tokens: int) -> Iterator[KVSlice]:
    """The parts' rows, n_tokens at a time, at `positions`."""
    for first in range(0, len(positions), n_tokens):
        at = positions[first : first + n_tokens]
        yield KVSlice(rows_of(parts, first, first + len(at)), at)


def rows_of(parts: Sequence[KVPart], first: int, end: int | None = None) -> list[KVPart]:
    """Parts of the rows [first, end) of all of them, one after the other; to the last row without `end`."""
    kept, at = [], 0
    for part in parts:
        start = max(first - at, 0)
        stop = part.n_tokens if end is None else min(end - at, part.n_tokens)
        if start < stop:
            kept.append(KVPart(part.source, part.first + start, stop - start, part.position))
        at += part.n_tokens
    return kept
