"""Which cells of a cache are free and how many hold each one; knows no tokens, no requests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cells"]


class Cells:
    """Cells 0 … n - 1, all free at first. A cell may have several owners; the last one frees it."""

    def __init__(self, n: int) -> None:
        self._n_owners = np.zeros(n, np.int32)
        self._free = np.arange(n, dtype=np.int32)[::-1].copy()  # a stack
        self.n_free = n

    def n_free_without(self, holdings: Sequence[NDArray[np.int32]]) -> int:
        """How many were free if each of these owners gave what is listed, one array an owner."""
        distinct, n_held = np.unique(np.concatenate(holdings), return_counts=True)
        return self.n_free + int(np.count_nonzero(self._n_owners[distinct] == n_held))

    def take(self, n: int) -> NDArray[np.int32]:
        """n free cells, owned once. Raises ValueError when there are fewer."""
        if n > self.n_free:
            raise ValueError(f"{n} cells wanted, {self.n_free} free")
        cells = self._free[self.n_free - n : self.n_free].copy()
        self.n_free -= n
        self._n_owners[cells] = 1
        return cells

    def share(self, cells: NDArray[np.int32]) -> None:
        """One more owner of each."""
        self._n_owners[cells] += 1

    def give(self, cells: NDArray[np.int32]) -> None:
        """One owner less of each."""
        self._n_owners[cells] -= 1
        freed = cells[self._n_owners[cells] == 0]
        self._free[self.n_free : self.n_free + len(freed)] = freed
        self.n_free += len(freed)
