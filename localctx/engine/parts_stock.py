"""KV that requests of a batch are put together from, beside the sequences they run in, on llama.cpp.

Every sequence has a second id, its stock: what is restored lies there until the sequence comes to it. Rows
are composed in another thread while others are decoded. Knows no plan and no policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localctx._native import State
from localctx.engine.llama_state import CellStates
from localctx.engine.plan import Start
from localctx.engine.restoring import Composed, KVWriter, rows_of, slices_of
from localctx.kv import KVPart

__all__ = ["KVStock"]


@dataclass(slots=True)
class _Expected:
    """A request's parts that are not put back yet, their rows' positions, and how far that has begun: rows
    from the composed_from-th on."""

    parts: Sequence[KVPart]
    positions: NDArray[np.int32]
    composed_from: int = 0
    composed: Composed | None = None


class KVStock:
    """An open_batch.PartsStock."""

    def __init__(self, cells: CellStates, writer: KVWriter, spare: int, first_id: int) -> None:
        """writer: its spare sequence is `spare` · sequence s has its stock under the id first_id + s."""
        self._cells = cells
        self._writer = writer
        self._spare = spare
        self._first_id = first_id
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="compose")
        self._expected: dict[int, _Expected] = {}
        self._sequences: dict[int, int] = {}

    def expect(self, request: int, parts: Sequence[KVPart], n_held: int) -> None:
        """See open_batch.PartsStock."""
        if not parts:
            return
        spans = [np.arange(part.position, part.position + part.n_tokens) for part in parts]
        expected = _Expected(parts, np.concatenate(spans).astype(np.int32))
        self._expected[request] = expected
        expected.composed_from = int(np.searchsorted(expected.positions, n_held))
        expected.composed = self._begun(expected, expected.composed_from, len(expected.positions))

    def put(self, start: Start) -> None:
        """See generation.Stock."""
        self._sequences[start.request] = start.sequence
        expected = self._expected.pop(start.request, None)
        if expected is None:
            return
        stock, n_held = self._first_id + start.sequence, start.n_reused
        first = int(np.searchsorted(expected.positions, n_held))
        if first < expected.composed_from:  # what was to be shared is gone
            self._put(stock, self._begun(expected, first, expected.composed_from))
        self._put(stock, expected.composed)
        if n_held:
            self._cells.drop(stock, 0, n_held)

    def attach(self, sequence: int, start: int, end: int) -> None:
        """See generation.Stock."""
        self._cells.copy(self._first_id + sequence, sequence, start, end)
        self._cells.drop(self._first_id + sequence, start, end)

    def end(self, sequence: int) -> None:
        """See generation.Stock."""
        self._cells.drop(self._first_id + sequence)

    def forget(self, request: int) -> None:
        """See open_batch.PartsStock."""
        self._expected.pop(request, None)
        self._sequences.pop(request, None)

    def export(self, request: int, first: int, end: int) -> State:
        """See open_batch.PartsStock. Raises ModelError when they cannot be taken out."""
        self._cells.copy(self._sequences[request], self._spare, first, end)
        try:
            return State(self._cells.export(self._spare))
        finally:
            self._cells.drop(self._spare)

    def close(self) -> None:
        """See open_batch.PartsStock."""
        self._expected.clear()
        self._pool.shutdown(cancel_futures=True)

    def _begun(self, expected: _Expected, first: int, end: int) -> Composed | None:
        if first >= end:
            return None
        parts, positions = rows_of(expected.parts, first, end), expected.positions[first:end]
        return self._writer.compose(slices_of(parts, positions, self._writer.slice_tokens), self._pool)

    def _put(self, stock: int, composed: Composed | None) -> None:
        if composed is not None:
            self._writer.put(stock, composed)
