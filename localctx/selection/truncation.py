"""Which sentences of a text stay within a token budget: anchors, then the best-scored. Pure; knows no text.

The head and the tail are kept whole up to their share of the budget, near copies are kept once, and what
says next to nothing is no anchor. What is chosen stays in its order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localctx.errors import UsageError

__all__ = ["Shares", "TextUnits", "choose_units", "ranking_of"]

MOST_ANCHORED = 0.8
"""Head and tail together may not take more of the budget: the rest is chosen."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of the budget that go to the first and the last sentences, in [0, 1]."""

    head: float = 0.03
    tail: float = 0.05

    def __post_init__(self) -> None:
        if not (self.head >= 0 and self.tail >= 0 and self.head + self.tail <= MOST_ANCHORED):
            raise UsageError(
                f"head {self.head:.0%} and tail {self.tail:.0%} of the budget are out of range",
                f"from 0%, together at most {MOST_ANCHORED:.0%}",
            )


@dataclass(frozen=True, slots=True)
class TextUnits:
    """What is known of a text's sentences, one row each, in order.

    starts, ends: code points (int64), each end the next start · n_tokens: int32 · keys: uint64, equal for
    near copies · breaks: bool, whether a paragraph or section begins there · information: float32 in [0, 1],
    how much it says · says_something: bool, whether it is worth its tokens.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    n_tokens: NDArray[np.int32]
    keys: NDArray[np.uint64]
    breaks: NDArray[np.bool_]
    information: NDArray[np.float32]
    says_something: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def total_tokens(self) -> int:
        """Tokens of all."""
        return int(self.n_tokens.sum(dtype=np.int64))


def ranking_of(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Rows by descending score; equal ones in order. Rows without a score (0 or less) are left out."""
    order = np.argsort(-scores, kind="stable").astype(np.int64)
    return order[scores[order] > 0]


def choose_units(
    units: TextUnits, rankings: Iterable[NDArray[np.int64]], budget_tokens: int, shares: Shares
) -> NDArray[np.int64]:
    """Rows that stay, in order, of at most `budget_tokens` in sum.

    Each ranking holds rows, best first; a later one fills what the earlier ones left. A row too large for
    what is left is passed over. The anchors come first: whole sentences only.
    """
    taken = _Taken(units, budget_tokens)
    n_rows = len(units)
    taken.anchor(range(n_rows), shares.head)
    taken.anchor(range(n_rows - 1, -1, -1), shares.tail)
    for ranking in rankings:
        taken.fill(ranking)
    return np.flatnonzero(taken.is_kept).astype(np.int64)


class _Taken:
    """What was chosen so far."""

    def __init__(self, units: TextUnits, budget_tokens: int) -> None:
        self._tokens = units.n_tokens
        self._keys = units.keys
        self._is_worth = units.says_something
        self._budget = budget_tokens
        self._room = budget_tokens
        self._seen: set[int] = set()
        self._least = int(units.n_tokens.min()) if len(units) else 0
        self.is_kept = np.zeros(len(units), np.bool_)

    def anchor(self, rows: Iterable[int], share: float) -> None:
        """Take the rows that say something as they come while they fit the share."""
        room = int(share * self._budget)
        for row in rows:
            if not self._is_worth[row]:
                continue
            room -= int(self._tokens[row])
            if room < 0 or self.is_kept[row]:
                return
            self._take(row)

    def fill(self, ranking: NDArray[np.int64]) -> None:
        """Take the rows that fit, best first, copies of what is taken left out."""
        for row in ranking.tolist():
            if self._room < self._least:
                return
            if (
                not self.is_kept[row]
                and self._tokens[row] <= self._room
                and self._keys[row] not in self._seen
            ):
                self._take(row)

    def _take(self, row: int) -> None:
        self.is_kept[row] = True
        self._room -= int(self._tokens[row])
        self._seen.add(int(self._keys[row]))
