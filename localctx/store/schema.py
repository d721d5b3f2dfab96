"""The catalogue's file: its tables, its version, how it is opened. Knows no segments.

The file is recognised by its first bytes before SQLite touches it, so that a foreign or newer file is refused
by name and never changed.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from localctx.names import display_name
from localctx.private_files import open_regular, sync_folder
from localctx.store.errors import StoreUnusable

__all__ = [
    "APPLICATION_ID",
    "SCHEMA_VERSION",
    "SIDE_FILES",
    "bring_up_to_date",
    "check_header",
    "connect",
    "create",
    "wal_or_delete",
]

APPLICATION_ID = 0x4C435458
"""'LCTX', in the file's header."""
SCHEMA_VERSION = 1
BUSY_SECONDS = 30.0
SQLITE_MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
TEMPORARY_PREFIX = "tmp-catalogue-"
SIDE_FILES = ("", "-wal", "-shm", "-journal")

TABLES = """
CREATE TABLE segments (
    segment INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size_bytes INTEGER NOT NULL, created REAL NOT
    NULL);
CREATE TABLE runs (
    id BLOB NOT NULL, codec TEXT NOT NULL, segment INTEGER NOT NULL REFERENCES segments,
    offset INTEGER NOT NULL, size_bytes INTEGER NOT NULL, n_tokens INTEGER NOT NULL, checksum BLOB NOT NULL,
    key_error REAL NOT NULL, value_error REAL NOT NULL, PRIMARY KEY (id, codec)) WITHOUT ROWID;
CREATE INDEX runs_by_segment ON runs (segment);
CREATE TABLE documents (
    document INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL, path TEXT NOT NULL,
    text_hash TEXT NOT NULL, n_bytes INTEGER NOT NULL, n_tokens INTEGER NOT NULL, model TEXT NOT NULL,
    space TEXT NOT NULL, policy TEXT NOT NULL, state TEXT NOT NULL, created REAL NOT NULL,
    last_used REAL NOT NULL);
CREATE TABLE document_runs (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE, ordinal INTEGER NOT NULL, id BLOB NOT
    NULL, PRIMARY KEY (document, ordinal)) WITHOUT ROWID;
CREATE INDEX document_runs_by_id ON document_runs (id);
CREATE TABLE artifacts (
    kind TEXT NOT NULL, key TEXT NOT NULL, document INTEGER REFERENCES documents ON DELETE CASCADE,
    segment INTEGER NOT NULL REFERENCES segments, offset INTEGER NOT NULL, size_bytes INTEGER NOT NULL,
    checksum BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE INDEX artifacts_by_segment ON artifacts (segment);
CREATE INDEX artifacts_by_document ON artifacts (document);
CREATE TABLE models (
    fingerprint TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (fingerprint, name))
    WITHOUT ROWID;
"""
MIGRATIONS: dict[int, str] = {}
"""SQL that takes a catalogue of the version to the next one; a version without an entry is refused."""


def check_header(path: Path) -> bool:
    """Whether there is a catalogue; False also for an empty file.

    Raises StoreUnusable for a file that is none, OSError where it cannot be read.
    """
    for suffix in SIDE_FILES:
        side = path.with_name(path.name + suffix)
        if side.is_symlink() or (side.exists() and not side.is_file()):
            raise StoreUnusable(f"{display_name(side)} is not a regular file", "remove it")
    try:
        with open_regular(path) as file:
            head = file.read(HEADER_BYTES)
    except FileNotFoundError:
        return False
    is_ours = head.startswith(SQLITE_MAGIC) and head[68:72] == APPLICATION_ID.to_bytes(4)
    if head and not is_ours:
        raise StoreUnusable(
            f"{display_name(path)} was not made by localctx",
            "move it away, or name another folder with --store",
        )
    return bool(head)


def connect(path: Path, *, is_read_only: bool) -> sqlite3.Connection:
    """A connection whose busy timeout stands before the first statement.

    Where nothing can be written beside the file, it is read as unchanging, unless a write-ahead log says
    otherwise.
    """
    query = "mode=rw"
    if is_read_only:
        log = path.with_name(path.name + "-wal")
        query = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
    uri = f"file:{quote(os.fsencode(path))}?{query}"
    connection = sqlite3.connect(
        uri, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def create(path: Path) -> None:
    """Make an empty catalogue, whole or not at all; the store's lock is held. Raises OSError."""
    for old in path.parent.glob(f"{TEMPORARY_PREFIX}*"):
        old.unlink()
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    with closing(connect(temporary, is_read_only=False)) as connection:
        connection.executescript(
            f"BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; {TABLES}"
            f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
        )
    temporary.rename(path)
    sync_folder(path.parent)


def bring_up_to_date(connection: sqlite3.Connection, path: Path) -> None:
    """Take an older version to this one, step by step; the store's lock is held, or nothing may be written.

    Raises StoreUnusable for a version that this program can neither read nor bring up to date.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    check_version(version, path)
    while version < SCHEMA_VERSION:
        connection.executescript(
            f"BEGIN IMMEDIATE; {MIGRATIONS[version]} PRAGMA user_version = {version + 1}; COMMIT;"
        )
        version += 1


def check_version(version: int, path: Path) -> None:
    """Raises StoreUnusable for a version that this program can neither read nor bring up to date."""
    if version > SCHEMA_VERSION:
        raise StoreUnusable(
            f"the store in {display_name(path.parent)} was made by a newer localctx "
            f"(version {version}, here {SCHEMA_VERSION})",
            "update localctx, or name another folder with --store",
        )
    if any(older not in MIGRATIONS for older in range(version, SCHEMA_VERSION)):
        raise StoreUnusable(
            f"the store in {display_name(path.parent)} was made by an older localctx "
            f"(version {version}, here {SCHEMA_VERSION})",
            "localctx store rm --all starts anew",
        )


def wal_or_delete(connection: sqlite3.Connection) -> str:
    """Switch to a write-ahead log; where the file system has no shared memory for one, a rollback journal."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    return str(mode)
