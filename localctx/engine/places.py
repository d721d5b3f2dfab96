"""The places of a cache: one a sequence id, with the tokens it holds; knows no plan and no llama.cpp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Place", "common_prefix", "least_used"]


def common_prefix(a: NDArray[np.int32], b: NDArray[np.int32]) -> int:
    """Length of the common beginning of two token arrays."""
    n = min(len(a), len(b))
    differs = np.flatnonzero(a[:n] != b[:n])
    return int(differs[0]) if len(differs) else n


@dataclass(slots=True, eq=False)
class Place:
    """A sequence id: the tokens in the cache and their cells, and the request that runs here, if any.

    `is_adopted`: the tokens were put there from outside and nothing has run here since · `realm`: of the
    request that the tokens are from.
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
    realm: str = ""

    @property
    def filled(self) -> NDArray[np.int32]:
        """The tokens in the cache."""
        return self.tokens[: self.n_filled]

    @property
    def n_promised(self) -> int:
        """Cells this place may still take."""
        return self.n_target - self.n_filled if self.request is not None else 0

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
