"""Runs read from a store that stay valid for the questions to come, as many loads as may stay open.

They are read and checked in other threads, in the order in which they are asked for, so that what comes first
can be used while the rest is on its way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from localctx import _native
from localctx.batches import batches
from localctx.kv import KVSource, RunLost
from localctx.store import KVStore, StoredRun, StoreUnusable

__all__ = ["LoadedRuns"]

MAX_LOADS = 128
MAX_FILES = 256
"""Kept for the questions to come: each load holds a descriptor for each segment that it reads."""
BATCH_BYTES = 64 << 20
"""Read as one load: as much as is composed at a time, about."""
N_READERS = 2
"""Loads that are read at a time; the store reads several runs of each at once."""


@dataclass(frozen=True, slots=True)
class _Load:
    """Runs that hold on to `n_files` segments until `stack` is closed."""

    stack: ExitStack
    ids: tuple[bytes, ...]
    n_files: int


class _Coming:
    """A kv.ComingRun of a load that is being read."""

    __slots__ = ("_id", "_load", "_runs", "n_tokens")

    def __init__(self, run: StoredRun, load: Future[None], runs: dict[bytes, _native.Run]) -> None:
        self.n_tokens = run.n_tokens
        self._id = run.id
        self._load = load
        self._runs = runs

    @property
    def is_here(self) -> bool:
        return self._load.done()

    def get(self) -> _native.Run:
        """See kv.ComingRun."""
        try:
            self._load.result()
        except (StoreUnusable, CancelledError) as error:
            raise RunLost(str(error)) from error
        found = self._runs.get(self._id)
        if found is None:
            raise RunLost("stored KV is damaged")
        return found


class LoadedRuns:
    """Runs by id. Close it before the store."""

    def __init__(self) -> None:
        self._runs: dict[bytes, _native.Run] = {}
        self._coming: dict[bytes, _Coming] = {}
        self._names: dict[bytes, bytes] = {}
        self._loads: deque[_Load] = deque()
        self._readers: ThreadPoolExecutor | None = None
        self._reading: list[Future[None]] = []

    def begin(self, store: KVStore, ids: Sequence[bytes], codec: str | None) -> None:
        """Have runs read; source() has at once what the catalogue knows of. Raises StoreUnusable."""
        found = store.lookup(ids, codec)
        if self._readers is None:
            self._readers = ThreadPoolExecutor(N_READERS, thread_name_prefix="read")
        there = (found[run_id] for run_id in ids if run_id in found)
        for batch in batches(there, lambda run: run.size_bytes, BATCH_BYTES):
            load = self._readers.submit(self._read, store, [run.id for run in batch], codec)
            self._reading.append(load)
            self._coming.update((run.id, _Coming(run, load, self._runs)) for run in batch)
            self._names.update((run.id, f"{run.codec} {run.checksum.hex()}".encode()) for run in batch)

    def wait(self) -> None:
        """Until all that was begun is read. Raises StoreUnusable when the store fails."""
        reading, self._reading = self._reading, []
        problems = [load.exception() for load in reading]
        self._coming.clear()
        for problem in problems:
            if problem is not None:
                raise problem

    def add(self, runs: dict[bytes, _native.Run]) -> None:
        """Runs whose bytes the caller keeps valid."""
        self._runs.update(runs)

    def get(self, run_id: bytes) -> _native.Run | None:
        """The run, when it was read or is being read; waits for it. None for what is missing or damaged."""
        coming = self._coming.get(run_id)
        if coming is not None:
            try:
                return coming.get()
            except RunLost:
                return None
        return self._runs.get(run_id)

    def source(self, run_id: bytes) -> KVSource | None:
        """get() without waiting: the run, or one that is coming."""
        coming = self._coming.get(run_id)
        return self.get(run_id) if coming is None or coming.is_here else coming

    def name_of(self, run_id: bytes) -> bytes | None:
        """What tells the bytes of a run that was begun from any other encoding of it."""
        return self._names.get(run_id)

    def let_go_of_old(self) -> None:
        """Of all loads but the last few; what is still being read for an earlier question is not waited for
        longer than its load takes.
        """
        self._settle()
        n_files = 0
        for n_kept, load in enumerate(reversed(self._loads)):
            n_files += load.n_files
            if n_kept == MAX_LOADS or n_files > MAX_FILES:
                self._let_go(n_kept)
                break

    def close(self) -> None:
        """Let go of all runs."""
        self._settle()
        if self._readers is not None:
            self._readers.shutdown()
            self._readers = None
        self._let_go(0)
        self._runs.clear()

    def _settle(self) -> None:
        for load in self._reading:
            load.cancel()
        for load in self._reading:
            if not load.cancelled():
                load.exception()
        self._reading.clear()
        self._coming.clear()

    def _read(self, store: KVStore, ids: Sequence[bytes], codec: str | None) -> None:
        with ExitStack() as stack:
            views = stack.enter_context(store.reading(ids, codec))
            n_files = len({id(view.obj) for view in views.values()})
            self._runs.update({run_id: _native.Run(view) for run_id, view in views.items()})
            self._loads.append(_Load(stack.pop_all(), tuple(views), n_files))

    def _let_go(self, n_left: int) -> None:
        while len(self._loads) > n_left:
            load = self._loads.popleft()
            for run_id in load.ids:
                self._runs.pop(run_id, None)
                self._names.pop(run_id, None)
            load.stack.close()
