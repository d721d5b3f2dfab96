"""Runs read from a store that stay valid for the questions to come, as many loads as may stay open."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack

from localctx import _native
from localctx.store import KVStore

__all__ = ["LoadedRuns"]

MAX_LOADS = 32
"""Kept for the questions to come: each holds descriptors, two for each segment that it reads."""


class LoadedRuns:
    """`runs`: by id. Close it before the store."""

    def __init__(self) -> None:
        self.runs: dict[bytes, _native.Run] = {}
        self._loads: deque[tuple[ExitStack, tuple[bytes, ...]]] = deque()

    def read(self, store: KVStore, ids: Sequence[bytes], codec: str | None) -> None:
        """Read runs; what is missing or damaged is not among them then. Raises StoreUnusable."""
        with ExitStack() as stack:
            views = stack.enter_context(store.reading(ids, codec))
            self.runs.update({run_id: _native.Run(view) for run_id, view in views.items()})
            self._loads.append((stack.pop_all(), tuple(views)))

    def let_go_of_old(self) -> None:
        """Of all loads but the last few."""
        self._let_go(MAX_LOADS)

    def close(self) -> None:
        """Let go of all runs."""
        self._let_go(0)
        self.runs.clear()

    def _let_go(self, n_left: int) -> None:
        while len(self._loads) > n_left:
            reading, ids = self._loads.popleft()
            for run_id in ids:
                self.runs.pop(run_id, None)
            reading.close()
