"""A document's lexical index and token stream kept between runs: one SQLite file, sealed. Knows no models.

The file holds named byte strings and, for a document that was searched alone, the FTS5 table beside them; it
is opened in place and never changed, so SQLite reads of it only what a question touches.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from localctx.index.lexical import CACHE_KIB, LexicalIndex
from localctx.store import StoreUnusable
from localctx.store.derived import DerivedFiles

__all__ = ["load", "save"]

APPLICATION_ID = 0x4C435849
"""'LCXI', in the file's header."""
FILE_VERSION = 1
PART_BYTES = 16 << 20
"""Of a longer byte string each row holds so much: SQLite limits one value to 1 GB."""
LEXICAL = "lexical"
"""The part that says how many blocks the FTS5 table has; absent without a table."""


def save(
    files: DerivedFiles, text_hash: str, key: str, parts: Mapping[str, bytes], index: LexicalIndex | None
) -> None:
    """Keep the parts, and the index where there is one. Raises StoreUnusable."""

    def fill(path: Path) -> None:
        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                if index is not None:
                    index.copy_to(connection)
                _write(connection, parts, index)
        except sqlite3.Error as error:
            raise StoreUnusable(str(error)) from None

    files.write(text_hash, key, fill, least_bytes=sum(map(len, parts.values())))


def load(
    files: DerivedFiles, text_hash: str, key: str
) -> tuple[dict[str, bytes], LexicalIndex | None] | None:
    """What save() kept; None where there is none of this version, or it was damaged. Close the index."""
    path = files.find(text_hash, key)
    if path is None:
        return None
    try:
        connection = _connect(path)
    except sqlite3.Error:  # removed meanwhile, or of another making: it is made again
        return None
    try:
        parts = _read(connection)
    except sqlite3.Error:
        connection.close()
        return None
    n_blocks = parts.pop(LEXICAL, None)
    if n_blocks is None:
        connection.close()
        return parts, None
    return parts, LexicalIndex(connection, int(n_blocks))


def _write(connection: sqlite3.Connection, parts: Mapping[str, bytes], index: LexicalIndex | None) -> None:
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")  # the whole is synced when it is sealed
    connection.execute("BEGIN")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FILE_VERSION}")
    connection.execute(
        "CREATE TABLE parts (name TEXT, number INTEGER, value BLOB, PRIMARY KEY (name, number))"
    )
    named = dict(parts)
    if index is not None:
        named[LEXICAL] = str(index.n_blocks).encode()
    for name, value in named.items():
        view = memoryview(value)
        rows = [
            (name, number, view[start : start + PART_BYTES])
            for number, start in enumerate(range(0, max(1, len(view)), PART_BYTES))
        ]
        connection.executemany("INSERT INTO parts VALUES (?, ?, ?)", rows)
    connection.execute("COMMIT")


def _connect(path: Path) -> sqlite3.Connection:
    """The file, that nothing changes any more. Raises sqlite3.Error."""
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode=ro&immutable=1", isolation_level=None, uri=True
    )
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        found = [
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        ]
        if found != [APPLICATION_ID, FILE_VERSION]:
            raise sqlite3.DatabaseError("not an index of this version")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _read(connection: sqlite3.Connection) -> dict[str, bytes]:
    found: dict[str, bytearray] = {}
    for name, value in connection.execute("SELECT name, value FROM parts ORDER BY name, number"):
        found.setdefault(name, bytearray()).extend(value)
    return {name: bytes(value) for name, value in found.items()}
