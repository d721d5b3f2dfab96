"""The places of a cache: one a sequence id, with the tokens it holds; knows no plan and no llama.cpp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALL", "Place", "common_prefix", "least_used"]

ALL = 1 << 31
"""More tokens than any sequence has."""


def common_prefix(a: NDArray[np.int32], b: NDArray[np.int32]) -> int:
    """Length of the common beginning of two token arrays."""
    n = min(len(a), len(b))
    differs = np.flatnonzero(a[:n] != b[:n])
    return int(differs[0]) if len(differs) else n


@dataclass(slots=True, eq=False)
class Place:
    """A sequence id: the tokens in the cache and their cells, and the request that runs here, if any.

    `is_adopted`: the tokens were put there from outside and nothing has run here since · `restored`: ranges
    of the prompt that are put back, not evaluated · `made_of`, `n_shareable`: see plan.Work.
    """

    sequence: int
    tokens: NDArray[np.int32]
    cells: NDArray[np.int32]
    n_filled: int = 0
    request: int | None = None
    prompt: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    pending: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    n_target: int = 0
    last_used: int = 0
    last_served: int = 0
    is_adopted: bool = False
    restored: tuple[tuple[int, int], ...] = ()
    made_of: bytes = b""
    n_shareable: int = ALL

    @property
    def filled(self) -> NDArray[np.int32]:
        """The tokens in the cache."""
        return self.tokens[: self.n_filled]

    @property
    def n_promised(self) -> int:
        """Cells this place may still take."""
        return self.n_target - self.n_filled if self.request is not None else 0

    @property
    def next_restored(self) -> tuple[int, int] | None:
        """What of the prompt is put back next, from n_filled on; None where tokens are evaluated first."""
        for start, end in self.restored:
            if start <= self.n_filled < end:
                return self.n_filled, end
        return None

    @property
    def n_ahead(self) -> int:
        """Tokens of the prompt that are still to be evaluated."""
        restored = sum(end - max(start, self.n_filled) for start, end in self.restored if end > self.n_filled)
        return max(0, len(self.prompt) - self.n_filled - restored)

    def go_on(self) -> None:
        """What is evaluated next of the prompt: up to what is put back, or its end."""
        ahead = [start for start, _ in self.restored if start > self.n_filled]
        end = min(ahead, default=len(self.prompt))
        self.pending = self.prompt[self.n_filled : self.n_filled if self.next_restored else end]

    def reserve(self, n_tokens: int) -> None:
        """Room in the arrays for n_tokens."""
        if len(self.tokens) < n_tokens:
            self.tokens = np.concatenate([self.filled, np.empty(n_tokens - self.n_filled, np.int32)])
            self.cells = np.concatenate(
                [self.cells[: self.n_filled], np.empty(n_tokens - self.n_filled, np.int32)]
            )


def least_used(places: Sequence[Place]) -> Place:
    """An empty place if there is one, else the one used longest ago."""
    return min(places, key=lambda place: (place.n_filled > 0, place.last_used))
