"""Runs on their way to disk: gathered, then a segment and its rows at a time. Threads may add side by side.

What was committed stays, whatever happens after: a kill, a full disk, an error of the caller.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localctx.store.catalogue import catalogue_errors, insert_runs, insert_segment
from localctx.store.compaction import run_facts
from localctx.store.documents import enter_document, has_document, mark_state
from localctx.store.errors import StoreUnusable
from localctx.store.folder import os_error_text
from localctx.store.identity import ID_BYTES
from localctx.store.records import DocumentIdentity, StoredRun
from localctx.store.segments import MAX_SEGMENT_BYTES, Written, checksum_of, new_segment
from localctx.store.upkeep import make_room, sweep

if TYPE_CHECKING:
    from localctx.store.store import KVStore

__all__ = ["RunWriter"]

FULL_BYTES = 64 << 20
"""So much waiting is committed at once."""
GROUP_BYTES = 1 << 19
OLD_SECONDS = 5.0
"""So old a group of at least GROUP_BYTES is committed: a kill loses no more work than that."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    ordinal: int
    run: StoredRun
    data: bytes | memoryview


class RunWriter:
    """Takes the runs of one document. Made by KVStore.writing(), which holds the document's lock."""

    def __init__(self, store: KVStore, document: DocumentIdentity, run_ids: Sequence[bytes]) -> None:
        self._store = store
        self._document = document
        self._run_ids = tuple(run_ids)
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._waiting_bytes = 0
        self._waiting_since = 0.0
        self.failure: StoreUnusable | None = None
        """Why nothing more is taken, once something went wrong."""
        self.untaken: dict[bytes, bytes | memoryview] = {}
        """What waited when it went wrong, by run id: encoded runs that are not on disk."""
        self._taken: set[tuple[bytes, str]] = set()
        self._is_entered = False
        self.n_committed = 0
        """Runs on disk so far."""

    def add(
        self,
        ordinal: int,
        run_id: bytes,
        data: bytes | memoryview,
        *,
        n_tokens: int,
        codec: str,
        max_error: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """Take an encoded run, which is the document's run number `ordinal`; `data` must not change any more.

        max_error: of keys and values. Commits what waits when it is much or old. Raises StoreUnusable when
        the disk is full, cannot be written, or the limit is reached, then and at every later call.
        """
        if len(run_id) != ID_BYTES or not 0 < len(data) < MAX_SEGMENT_BYTES:
            raise ValueError(f"a run id of {len(run_id)} bytes, or a run of {len(data):,} bytes")
        run = StoredRun(run_id, codec, "", 0, len(data), n_tokens, checksum_of(data), max_error)
        with self._lock:
            self._raise_failure()
            if (run_id, codec) in self._taken and run_id in self._run_ids[ordinal : ordinal + 1]:
                return  # equal units of a document are one run
            self._taken.add((run_id, codec))
            if not self._waiting:
                self._waiting_since = time.monotonic()
            self._waiting.append(_Waiting(ordinal, run, data))
            self._waiting_bytes += len(data)
            is_old = time.monotonic() - self._waiting_since >= OLD_SECONDS
            if self._waiting_bytes >= FULL_BYTES or (is_old and self._waiting_bytes >= GROUP_BYTES):
                self._commit()

    def commit(self) -> None:
        """Bring what waits to disk. Raises StoreUnusable."""
        with self._lock:
            self._raise_failure()
            self._commit()

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _commit(self) -> None:
        """Write a segment and its rows; even without new runs the document is entered."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        try:
            if waiting:
                self._make_room(sum(len(item.data) for item in waiting))
                self._write(waiting)
            elif self._store.catalogue.find_runs(self._run_ids, None):
                self._enter(())
        except StoreUnusable as error:
            self.failure = error
            self.untaken = {item.run.id: item.data for item in waiting}
            raise
        self.n_committed += len(waiting)

    def _make_room(self, n_bytes: int) -> None:
        store = self._store
        evicted = make_room(
            store.folder, store.catalogue, n_bytes, store.limit_bytes, keep=self._document.key
        )
        if evicted:
            store.warn(f"the store was full: the KV of {', '.join(evicted)} was removed")

    def _write(self, waiting: Sequence[_Waiting]) -> None:
        """One segment, then its rows; a file whose rows could not be committed is removed again."""
        entries = [
            (
                run_facts(item.run.id, item.run.codec, item.run.n_tokens, item.run.max_error),
                item.run.checksum,
                item.data,
            )
            for item in waiting
        ]
        store = self._store
        try:
            with new_segment(store.folder.segments, {}, entries) as written:
                self._enter(waiting, written)
        except OSError as error:
            raise StoreUnusable(
                f"KV cannot be kept: {os_error_text(error)}", "free some space, or --store off"
            ) from None
        except BaseException:
            with contextlib.suppress(StoreUnusable):
                sweep(store.folder, store.catalogue)
            raise

    def _enter(self, waiting: Sequence[_Waiting], written: Written | None = None) -> None:
        """The rows of a segment and of the document, in one transaction."""
        with catalogue_errors(), self._store.catalogue.transaction() as connection:
            runs = [(item.ordinal, item.run.id) for item in waiting]
            if not (self._is_entered and has_document(connection, self._document.key)):
                runs = [*enumerate(self._run_ids), *runs]
            number = enter_document(connection, self._document, runs)
            if written is not None:
                segment = insert_segment(connection, written.name, written.size_bytes)
                placed = zip((item.run for item in waiting), written.offsets, strict=True)
                insert_runs(connection, segment, placed)
            mark_state(connection, number)
        self._is_entered = True
