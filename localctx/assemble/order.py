"""In which order passages are put before a question. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

__all__ = ["BEST_LAST_FROM", "best_last"]

T = TypeVar("T")

BEST_LAST_FROM = 6
"""Passages from which on the best one stands next to the question. Measured where they say the same of
different things (docs/eval.md, "Order and focus"): with 4 nothing is gained, with 6, 8 and 12 much.
"""


def best_last(stretches: Sequence[Sequence[T]], best: int, first: Collection[int] = ()) -> list[T]:
    """The passages of the stretches in their order, where they are many with stretch number `best` last: what
    follows each other in a document stays together. first: numbers of stretches before all others.
    """
    ordered = sorted(range(len(stretches)), key=lambda number: number not in first)
    if sum(map(len, stretches)) >= BEST_LAST_FROM:
        ordered.remove(best)
        ordered.append(best)
    return [passage for number in ordered for passage in stretches[number]]
