"""Segments of which little is wanted, and many small ones, are written anew together.

The old rows point to the new file in one transaction; a row that changed meanwhile stays as it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from localctx.private_files import open_regular
from localctx.store.catalogue import Catalogue, catalogue_errors, insert_segment
from localctx.store.documents import remove_empty_segments
from localctx.store.folder import StoreFolder
from localctx.store.segments import SUFFIX, Written, new_segment, read_exactly

__all__ = ["Piece", "pieces_of", "rewrite_sparse"]

LEAST_WANTED_SHARE = 0.5
"""A segment of which less is wanted is written anew."""
SMALL_BYTES, MOST_SMALL = 1 << 20, 16
"""More segments so small are put together."""
GROUP_BYTES = 64 << 20
"""Held in memory while it is moved."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A row of runs or artifacts and where its bytes lie. names: (id, codec) or (kind, key)."""

    table: str
    names: tuple[Any, Any]
    segment: int
    offset: int
    size_bytes: int
    checksum: bytes
    facts: dict[str, Any]


def pieces_of(catalogue: Catalogue, name: str) -> list[Piece]:
    """Everything that lies in a segment, in file order."""
    runs = catalogue.query(
        "SELECT id, codec, segment, offset, runs.size_bytes, checksum, n_tokens, key_error, value_error"
        " FROM runs JOIN segments USING (segment) WHERE name = ?",
        [name],
    )
    artifacts = catalogue.query(
        "SELECT kind, key, segment, offset, artifacts.size_bytes, checksum"
        " FROM artifacts JOIN segments USING (segment) WHERE name = ?",
        [name],
    )
    pieces = [
        Piece("runs", row[:2], row[2], row[3], row[4], row[5], run_facts(row[0], row[1], row[6], row[7:9]))
        for row in runs
    ]
    pieces += [
        Piece("artifacts", row[:2], row[2], row[3], row[4], row[5], artifact_facts(*row[:2]))
        for row in artifacts
    ]
    return sorted(pieces, key=lambda piece: piece.offset)


def run_facts(run_id: bytes, codec: str, n_tokens: int, max_error: tuple[float, float]) -> dict[str, Any]:
    """What a file's header says of a run."""
    return {"id": run_id.hex(), "codec": codec, "n_tokens": n_tokens, "max_error": list(max_error)}


def artifact_facts(kind: str, key: str) -> dict[str, Any]:
    """What a file's header says of something derived."""
    return {"kind": kind, "key": key}


def rewrite_sparse(folder: StoreFolder, catalogue: Catalogue) -> tuple[int, list[str]]:
    """Move what is wanted out of mostly unwanted and many small segments; their number, names of empty ones.

    Raises StoreUnusable when the disk is full; nothing has changed then.
    """
    segments = [segment for segment in catalogue.segments() if segment[2]]
    sparse = [name for name, size, wanted in segments if wanted < LEAST_WANTED_SHARE * size]
    small = [name for name, size, _ in segments if size < SMALL_BYTES and name not in sparse]
    sparse += small if len(small) > MOST_SMALL else []
    for group in _groups(folder, catalogue, sparse):
        entries = [(piece.facts, piece.checksum, data) for piece, data in group]
        with (
            catalogue_errors(),
            new_segment(folder.segments, {}, entries) as written,
            catalogue.transaction() as connection,
        ):
            _move(connection, [piece for piece, _ in group], written)
    with catalogue.transaction() as connection:
        return len(sparse), remove_empty_segments(connection)


def _groups(
    folder: StoreFolder, catalogue: Catalogue, names: list[str]
) -> Iterator[list[tuple[Piece, bytearray]]]:
    """The pieces of the segments with their bytes, as much at a time as one new segment takes."""
    group: list[tuple[Piece, bytearray]] = []
    n_bytes = 0
    for name in names:
        for piece in pieces_of(catalogue, name):
            data = _bytes_of(folder, name, piece)
            if data is None:  # whoever reads it drops it
                continue
            if group and n_bytes + len(data) > GROUP_BYTES:
                yield group
                group, n_bytes = [], 0
            group.append((piece, data))
            n_bytes += len(data)
    if group:
        yield group


def _bytes_of(folder: StoreFolder, name: str, piece: Piece) -> bytearray | None:
    """A piece's bytes, None where they are gone; its checksum moves along, so damage stays visible."""
    data = bytearray(piece.size_bytes)
    try:
        with open_regular(folder.segments / (name + SUFFIX)) as file:
            is_whole = read_exactly(file.fileno(), memoryview(data), piece.offset)
    except OSError:
        return None
    return data if is_whole else None


def _move(connection: sqlite3.Connection, pieces: list[Piece], written: Written) -> None:
    """Let the rows point into the new segment, in a transaction."""
    segment = insert_segment(connection, written.name, written.size_bytes)
    for piece, offset in zip(pieces, written.offsets, strict=True):
        names = "id = ? AND codec = ?" if piece.table == "runs" else "kind = ? AND key = ?"
        connection.execute(
            f"UPDATE {piece.table} SET segment = ?, offset = ? WHERE {names} AND segment = ?",  # noqa: S608  # constants
            (segment, offset, *piece.names, piece.segment),
        )
