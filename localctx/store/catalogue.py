"""The catalogue: which run lies where, in SQLite. Every change is one transaction. Knows no files but its
own.

Safe for threads of one process, and for processes side by side.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, Self

from localctx.store.errors import StoreBusy, StoreUnusable
from localctx.store.folder import StoreFolder, os_error_text
from localctx.store.locks import holding
from localctx.store.records import StoredRun
from localctx.store.schema import bring_up_to_date, check_header, connect, create, wal_or_delete

__all__ = ["Catalogue", "catalogue_errors", "insert_runs", "insert_segment"]

BATCH = 500
"""Values of one IN (...) list."""
COUNTING = """
PRAGMA temp_store = MEMORY;
CREATE TEMP TABLE runs_changed (n INTEGER NOT NULL);
INSERT INTO runs_changed VALUES (0);
CREATE TEMP TRIGGER run_entered AFTER INSERT ON main.runs BEGIN UPDATE runs_changed SET n = n + 1; END;
CREATE TEMP TRIGGER run_left AFTER DELETE ON main.runs BEGIN UPDATE runs_changed SET n = n + 1; END;
"""
"""How often this connection entered or removed runs; what others do shows in SQLite's data_version."""
REMEMBERED = 16
"""Lists of ids of which it is known which are kept."""
HEADER_BYTES_OF_AN_ENTRY = 240
DAMAGED = (
    sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_CONSTRAINT,
)  # fmt: skip
"""Codes of a file that is none, or holds other tables than were made: trying again changes nothing."""
NO_SPACE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
RUN_COLUMNS = (
    "id, codec, name, offset, runs.size_bytes, n_tokens, checksum, key_error, value_error "
    "FROM runs JOIN segments USING (segment)"
)


class Catalogue:
    """An open catalogue. Raises StoreUnusable from every method when SQLite cannot go on."""

    def __init__(self, connection: sqlite3.Connection, *, is_read_only: bool) -> None:
        self.is_read_only = is_read_only
        self._connection = connection
        self._lock = threading.RLock()
        with catalogue_errors():
            connection.executescript(COUNTING)
        self._kept_ids: dict[bytes, tuple[tuple[int, int], frozenset[bytes]]] = {}

    @classmethod
    def open(cls, folder: StoreFolder) -> Self:
        """Open the folder's catalogue, making it first where there is none.

        On a full disk, where SQLite cannot even make its log, what is there is opened for reading.
        """
        with catalogue_errors():
            if folder.is_read_only:
                return cls(_opened(folder, is_read_only=True), is_read_only=True)
            with holding(folder.store_lock):
                is_there = check_header(folder.catalogue)
                if not is_there:
                    create(folder.catalogue)
                try:
                    return cls(_opened(folder, is_read_only=False), is_read_only=False)
                except sqlite3.OperationalError as error:
                    if not (is_there and is_out_of_space(error)):
                        raise
                    return cls(_opened(folder, is_read_only=True), is_read_only=True)

    def close(self) -> None:
        """Close; further calls raise StoreUnusable."""
        with self._lock:
            self._connection.close()

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a SELECT."""
        with catalogue_errors(), self._lock:
            return self._connection.execute(sql, values).fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction, committed at the end of the block, rolled back when it raises."""
        with catalogue_errors(), self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def find_runs(self, ids: Sequence[bytes], codec: str | None) -> dict[bytes, StoredRun]:
        """Where the runs lie that are kept; of several encodings `codec`, or the one with the least error."""
        found: dict[bytes, StoredRun] = {}
        for start in range(0, len(ids), BATCH):
            some = ids[start : start + BATCH]
            sql = f"SELECT {RUN_COLUMNS} WHERE id IN ({_marks(some)})"
            for row in self.query(sql, some):
                run = stored_run(row)
                if codec is None and (other := found.get(run.id)) is not None:
                    run = min(run, other, key=_error_then_size)
                if codec in (None, run.codec):
                    found[run.id] = run
        return found

    def kept_ids(self, ids: Sequence[bytes], codec: str | None) -> frozenset[bytes]:
        """Those of the ids that are kept, in `codec` or in any; known when asked again, while nothing
        changes.
        """
        name = blake2b(b"".join(ids), key=(codec or "").encode()).digest()
        with catalogue_errors(), self._lock:
            (others,) = self._connection.execute("PRAGMA data_version").fetchone()
            (own,) = self._connection.execute("SELECT n FROM runs_changed").fetchone()
            version = (others, own)
            if name not in self._kept_ids or self._kept_ids[name][0] != version:
                self._kept_ids[name] = version, self._find_ids(ids, codec)
                while len(self._kept_ids) > REMEMBERED:
                    del self._kept_ids[next(iter(self._kept_ids))]
            return self._kept_ids[name][1]

    def _find_ids(self, ids: Sequence[bytes], codec: str | None) -> frozenset[bytes]:
        found: set[bytes] = set()
        for start in range(0, len(ids), BATCH):
            some = ids[start : start + BATCH]
            sql = f"SELECT id FROM runs WHERE id IN ({_marks(some)}) AND codec = coalesce(?, codec)"  # noqa: S608  # only "?"
            found.update(row[0] for row in self.query(sql, [*some, codec]))
        return frozenset(found)

    def n_leading(self, ids: Sequence[bytes], codec: str | None) -> int:
        """How many of the first ids are kept without a gap."""
        for start in range(0, len(ids), BATCH):
            some = ids[start : start + BATCH]
            sql = f"SELECT id FROM runs WHERE id IN ({_marks(some)}) AND codec = coalesce(?, codec)"  # noqa: S608  # only "?"
            kept = {row[0] for row in self.query(sql, [*some, codec])}
            for ordinal, run_id in enumerate(some, start):
                if run_id not in kept:
                    return ordinal
        return len(ids)

    def runs_of_segment(self, name: str) -> list[StoredRun]:
        """The runs that lie in a segment, in file order."""
        rows = self.query(f"SELECT {RUN_COLUMNS} WHERE name = ? ORDER BY offset", [name])
        return [stored_run(row) for row in rows]

    def segments(self) -> list[tuple[str, int, int]]:
        """(name, bytes of the file, bytes of it that are still wanted) of every segment.

        Each entry's part of the header is reckoned among what is wanted.
        """
        wanted = f"coalesce(sum(size_bytes + {HEADER_BYTES_OF_AN_ENTRY}), 0)"
        return self.query(
            "SELECT name, size_bytes,"  # noqa: S608  # a constant
            f" (SELECT {wanted} FROM runs WHERE runs.segment = segments.segment) +"
            f" (SELECT {wanted} FROM artifacts WHERE artifacts.segment = segments.segment)"
            " FROM segments ORDER BY segment"
        )

    def has_segment(self, name: str) -> bool:
        """Whether the segment has its row."""
        return bool(self.query("SELECT 1 FROM segments WHERE name = ?", [name]))

    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return int(self.query("SELECT coalesce(sum(size_bytes), 0) FROM segments")[0][0])

    def drop_runs(self, runs: Iterable[StoredRun]) -> None:
        """Forget runs where they lie now; an encoding that was written anew elsewhere stays."""
        rows = [(run.id, run.codec, run.offset, run.segment) for run in runs]
        with self.transaction() as connection:
            connection.executemany(
                "DELETE FROM runs WHERE id = ? AND codec = ? AND offset = ?"
                " AND segment = (SELECT segment FROM segments WHERE name = ?)",
                rows,
            )

    def model_facts(self, fingerprint: str) -> dict[str, Any]:
        """All that is kept of a model."""
        rows = self.query("SELECT name, value FROM models WHERE fingerprint = ?", [fingerprint])
        return {name: json.loads(value) for name, value in rows}

    def set_model_fact(self, fingerprint: str, name: str, value: Any) -> None:
        """Keep one JSON value of a model."""
        with self.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO models VALUES (?, ?, ?)", (fingerprint, name, json.dumps(value))
            )


def insert_segment(connection: sqlite3.Connection, name: str, size_bytes: int) -> int:
    """Enter a new file, inside a transaction; its row number."""
    cursor = connection.execute(
        "INSERT INTO segments (name, size_bytes, created) VALUES (?, ?, ?)", (name, size_bytes, time.time())
    )
    return int(cursor.lastrowid or 0)


def insert_runs(connection: sqlite3.Connection, segment: int, runs: Iterable[tuple[StoredRun, int]]) -> None:
    """Enter runs and their offsets, inside a transaction; equal encodings of an id are replaced."""
    connection.executemany(
        "INSERT OR REPLACE INTO runs (segment, id, codec, offset, size_bytes, n_tokens, checksum, key_error,"
        " value_error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (segment, run.id, run.codec, offset, run.size_bytes, run.n_tokens, run.checksum, *run.max_error)
            for run, offset in runs
        ],
    )


@contextlib.contextmanager
def catalogue_errors() -> Iterator[None]:
    """Turns what SQLite and the disk say into StoreUnusable."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        kind = StoreBusy if _code(error) == sqlite3.SQLITE_BUSY else StoreUnusable
        raise kind(f"the store's catalogue cannot be used: {error}", _way_out(error)) from None
    except sqlite3.Error as error:
        raise StoreUnusable(f"the store's catalogue cannot be used: {error}", "open it again") from None
    except OSError as error:
        raise StoreUnusable(f"the store's catalogue cannot be used: {os_error_text(error)}") from None


def _opened(folder: StoreFolder, *, is_read_only: bool) -> sqlite3.Connection:
    """A connection to a catalogue of this version. Raises sqlite3.Error, StoreUnusable."""
    check_header(folder.catalogue)
    connection = connect(folder.catalogue, is_read_only=is_read_only)
    try:
        bring_up_to_date(connection, folder.catalogue)
        if not is_read_only:
            wal_or_delete(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _way_out(error: sqlite3.DatabaseError) -> str:
    """What a user can do."""
    if is_out_of_space(error):
        return "free some space; localctx store rm --all needs none"
    is_damaged = type(error) is sqlite3.DatabaseError or _code(error) in DAMAGED
    return "localctx store rm --all starts anew" if is_damaged else "try again"


def is_out_of_space(error: sqlite3.DatabaseError) -> bool:
    """Whether a full disk may be the reason; SQLite has several words for it."""
    return _code(error) in NO_SPACE


def _code(error: sqlite3.DatabaseError) -> int:
    """SQLite's primary error code; 0 for errors of Python's own module."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def stored_run(row: tuple[Any, ...]) -> StoredRun:
    """A run from RUN_COLUMNS."""
    run_id, codec, segment, offset, size_bytes, n_tokens, checksum, *errors = row
    return StoredRun(
        run_id, codec, segment, offset, size_bytes, n_tokens, checksum, max_error=(errors[0], errors[1])
    )


def _error_then_size(run: StoredRun) -> tuple[float, int]:
    return max(run.max_error), run.size_bytes


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
