"""In which order passages are put before a question. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

__all__ = ["BEST_LAST_FROM", "best_last"]

T = TypeVar("T")

BEST_LAST_FROM = 6
"""Passages from which on the best one stands next to the question. Measured where they say the same of
different things (docs/eval.md, "Order and focus"): with 4 nothing is gained, with 6, 8 and 12 much.
"""


def best_last(passages: Sequence[T], best: int) -> list[T]:
    """The passages in their order, where they are many with number `best` last."""
    if len(passages) < BEST_LAST_FROM:
        return list(passages)
    return [*passages[:best], *passages[best + 1 :], passages[best]]
