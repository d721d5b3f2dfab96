"""Which sentences say most of what a text says: greedy coverage of its weighted words. Pure; knows no text.

A word counts once, so what repeats gains nothing: a submodular objective (Lin and Bilmes, 2011).
The text is taken in stretches of some thousand sentences with budgets by their tokens, and what earlier
stretches cover counts in later ones: memory does not grow with the text.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["TERM_BUCKETS", "CoveredTerms", "cover", "term_weights"]

TERM_BUCKETS = 1 << 18
"""Words are known by a hash of so many values."""
SPARE = 256
"""Sentences of a stretch that are given beyond its budget."""


class CoveredTerms:
    """How much of each word's weight is still uncovered; `weights`: float32 (TERM_BUCKETS,)."""

    def __init__(self, weights: NDArray[np.float32]) -> None:
        self._weights = weights
        self._left = weights.copy()

    def gain(self, terms: Sequence[int]) -> float:
        """What a sentence of these different words would add."""
        return float(self._left[terms].sum()) if len(terms) else 0.0

    def add(self, terms: Sequence[int]) -> None:
        """Count a sentence in."""
        self._left[terms] = 0

    def share(self) -> float:
        """Weight of the words that were said at least once, of all, in [0, 1]."""
        total = float(self._weights.sum(dtype=np.float64))
        said = float(self._weights[self._left < self._weights].sum(dtype=np.float64))
        return said / total if total else 1.0


def term_weights(frequencies: NDArray[np.int32], n_sentences: int) -> NDArray[np.float32]:
    """The weight of each word by the number of sentences that hold it: those that come up again and again,
    yet not everywhere, weigh most; 0 for words that do not occur.
    """
    counts = frequencies.astype(np.float64)
    rarity = np.log(1 + n_sentences / np.maximum(counts, 1))
    return np.asarray(np.where(counts > 0, np.sqrt(counts) * rarity, 0), np.float32)


def cover(
    terms: Sequence[Sequence[int]],
    costs: NDArray[np.int32],
    quality: NDArray[np.float32],
    covered: CoveredTerms,
    budget_tokens: int,
) -> list[int]:
    """Sentences of one stretch in the order in which they add most for their cost, up to the budget, and some
    more that may fill what is left of it.

    terms: each one's different words · costs: their tokens · quality: factors in [0, 1]. What is chosen is
    counted in `covered`.
    """
    price = np.maximum(costs, 1).astype(np.float64)  # a lower power of it covers less: docs/truncate.md
    heap = [(-covered.gain(words) * float(quality[row]) / price[row], row) for row, words in enumerate(terms)]
    heapq.heapify(heap)
    chosen: list[int] = []
    room = budget_tokens
    least = int(costs.min()) if len(costs) else 0
    while heap and room >= least:
        _, row = heapq.heappop(heap)
        if costs[row] > room:
            continue
        # Gains only fall, so a value that is still the best is the true one.
        value = -covered.gain(terms[row]) * float(quality[row]) / price[row]
        if heap and value > heap[0][0]:
            heapq.heappush(heap, (value, row))
            continue
        if value >= 0:
            break
        covered.add(terms[row])
        chosen.append(row)
        room -= int(costs[row])
    return [*chosen, *(row for value, row in heapq.nsmallest(SPARE, heap) if value < 0)]
