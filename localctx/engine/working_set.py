"""The cells of a streaming prefill: [prefix | sinks | put back | local tokens].

Positions grow; prefix and sinks follow, or all is taken back. Sequence 0 holds it all; spare sequences lend
their ids to what is exported. Tokens are counted from the stream's start, token t stands at base + t. Knows
no policy: plans come from prefill.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from localctx._native import State
from localctx.engine.llama_state import CellStates
from localctx.engine.restoring import KVSlice, KVWriter, slices_of
from localctx.engine.schedule import Slice
from localctx.kv import KVPart

__all__ = ["Evaluator", "WorkingSet"]


class Evaluator(Protocol):
    """What computes; both raise when stopped."""

    def run_batch(self, batch: Sequence[Slice]) -> None:
        """Evaluate slices that fit one batch."""

    def run_tokens(self, sequence: int, position: int, tokens: NDArray[np.int32]) -> None:
        """Evaluate tokens of one sequence from `position` on, in as many batches as it takes."""


_MAIN = 0


class WorkingSet:
    """One stream's cells. The sequences it uses must be empty before, and are dropped by the caller after."""

    def __init__(
        self,
        cells: CellStates,
        evaluator: Evaluator,
        writer: KVWriter,
        spares: Sequence[int],
    ) -> None:
        """`writer`: of this context, its spare sequence the first of `spares`, of which there are two at
        least.
        """
        self._cells = cells
        self._evaluator = evaluator
        self._writer = writer
        self._spares = spares
        self._n_prefix = self._n_fixed = 0
        self._start = self._end = 0  # the local tokens held
        self._base = self._lift = 0  # of token 0, of the prefix
        self._fixed: State | None = None  # prefix and sinks as they were evaluated
        self._recalled = (0, 0)  # positions of what was put back before the local tokens
        self.n_evaluated = 0

    def begin(self, prefix: NDArray[np.int32]) -> None:
        """Evaluate the prefix at positions 0, 1 …"""
        self._evaluator.run_tokens(_MAIN, 0, prefix)
        self.n_evaluated += len(prefix)
        self._n_prefix = self._n_fixed = self._base = len(prefix)
        self._fixed = None

    def pin(self, n_sinks: int) -> None:
        """The first n_sinks local tokens, which stand right behind the prefix, become sinks."""
        if n_sinks:
            self._n_fixed = self._n_prefix + n_sinks
            self._start += n_sinks
            self._fixed = None

    def begin_anew(self, token: int, base: int) -> None:
        """Forget the local tokens; the next one is `token`, token t stands behind the prefix at base + t."""
        if self._end > self._start:
            self._cells.drop(_MAIN, self._lift + self._n_fixed)
        self._start = self._end = token
        self._base = self._lift + self._n_prefix + base

    @property
    def standing(self) -> tuple[tuple[int, int], int, int]:
        """(positions of prefix and sinks, where token 0 would stand, the first local token that is held)."""
        return (self._lift, self._lift + self._n_fixed), self._base, self._start

    def moves(self, base: int, lift: int) -> bool:
        """Whether move() would change anything."""
        return (lift, lift + self._n_prefix + base) != (self._lift, self._base)

    def move(self, base: int, lift: int = 0) -> None:
        """Let prefix and sinks stand from `lift` on, and tokens, those that are held too, behind the prefix
        at base + t.
        """
        before, self._base = self._base, lift + self._n_prefix + base
        held = self._lift, self._lift + self._n_fixed
        fixed = None
        if lift != self._lift and self._n_fixed:
            fixed = self._fixed = self._fixed or self._taken(*held)
            self._cells.drop(_MAIN, *held)
        if self._base != before and self._end > self._start:
            moved, end = self._spares[1], self._base + self._end
            self._writer.write(moved, self._lowered(before))
            self._cells.copy(moved, _MAIN, self._base + self._start, end)
            self._cells.drop(moved)
        self._lift = lift
        if fixed is not None:
            positions = np.arange(lift, lift + self._n_fixed, dtype=np.int32)
            parts = [KVPart(fixed, 0, self._n_fixed, 0)]
            self._writer.write(_MAIN, slices_of(parts, positions, self._writer.slice_tokens))

    def _lowered(self, before: int) -> Iterator[KVSlice]:
        """The local tokens, which stand at before + t and are taken out, for where they shall stand."""
        for start in range(self._start, self._end, self._writer.slice_tokens):
            end = min(start + self._writer.slice_tokens, self._end)
            state = self._taken(before + start, before + end)
            self._cells.drop(_MAIN, before + start, before + end)
            positions = np.arange(self._base + start, self._base + end, dtype=np.int32)
            yield KVSlice([KVPart(state, 0, end - start, 0)], positions)

    def keep_from(self, token: int) -> None:
        """Evict the local tokens before `token`; positions stay as they are."""
        if token > self._start:
            self._cells.drop(_MAIN, self._base + self._start, self._base + min(token, self._end))
            self._start = token

    def recall(self, parts: Sequence[KVPart]) -> None:
        """Put stored KV of evicted tokens right before the local ones, until forget_recalled().

        Raises ValueError where there is no room for it.
        """
        end = self._base + self._start
        first = end - sum(part.n_tokens for part in parts)
        room = end - self._lift - self._n_fixed
        if end - first > room:
            raise ValueError(f"{end - first} tokens put back, there is room for {room}")
        if parts:
            positions = np.arange(first, end, dtype=np.int32)
            self._writer.write(_MAIN, slices_of(parts, positions, self._writer.slice_tokens))
            self._recalled = (first, end)

    def forget_recalled(self) -> None:
        """Take out what recall() put there."""
        first, end = self._recalled
        if end > first:
            self._cells.drop(_MAIN, first, end)
        self._recalled = (0, 0)

    def append(self, parts: Sequence[KVPart]) -> None:
        """Put stored KV of the next tokens behind what is held."""
        first = self._base + self._end
        n_tokens = sum(part.n_tokens for part in parts)
        positions = np.arange(first, first + n_tokens, dtype=np.int32)
        self._writer.write(_MAIN, slices_of(parts, positions, self._writer.slice_tokens))
        self._end += n_tokens

    def evaluate(self, tokens: NDArray[np.int32]) -> None:
        """Evaluate the next tokens."""
        self._evaluator.run_tokens(_MAIN, self._base + self._end, tokens)
        self.n_evaluated += len(tokens)
        self._end += len(tokens)

    def export(self, start: int, end: int) -> State:
        """The KV of tokens [start, end), which are held."""
        return self._taken(self._base + start, self._base + end)

    def _taken(self, first: int, end: int) -> State:
        """The KV at positions [first, end)."""
        spare = self._spares[0]
        self._cells.copy(_MAIN, spare, first, end)
        try:
            return State(self._cells.export(spare))
        finally:
            self._cells.drop(spare)

    def evaluate_units(self, units: Sequence[NDArray[np.int32]]) -> list[State]:
        """Evaluate several units in one batch, each behind the prefix alone."""
        used = self._spares[: len(units)]
        slices = []
        for sequence, unit in zip(used, units, strict=True):
            self._cells.copy(_MAIN, sequence, 0, self._n_prefix)
            slices.append(Slice(sequence, self._n_prefix, unit, sample=False))
        try:
            self._evaluator.run_batch(slices)
            self.n_evaluated += sum(len(unit) for unit in units)
            states = []
            for sequence in used:
                self._cells.drop(sequence, 0, self._n_prefix)
                states.append(State(self._cells.export(sequence)))
            return states
        finally:
            for sequence in used:
                self._cells.drop(sequence)
