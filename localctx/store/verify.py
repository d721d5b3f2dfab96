"""Everything that is kept, read and compared with the catalogue and with each file's own header. Changes
nothing unless told to forget what is damaged.
"""

from __future__ import annotations

import os
from pathlib import Path

from localctx.names import display_name
from localctx.private_files import folder_items, open_regular
from localctx.store.catalogue import Catalogue
from localctx.store.compaction import Piece, pieces_of
from localctx.store.derived import DerivedFiles
from localctx.store.documents import remove_empty_segments
from localctx.store.folder import StoreFolder, os_error_text
from localctx.store.records import VerifyReport
from localctx.store.segments import OWN_NAME, SUFFIX, Header, checksum_of, read_exactly, read_header
from localctx.store.upkeep import leftovers

__all__ = ["verify_store"]


def verify_store(folder: StoreFolder, catalogue: Catalogue, *, repair: bool) -> VerifyReport:
    """Check every row, file and checksum. Raises StoreUnusable where the catalogue cannot be read."""
    problems = [f"catalogue: {line}" for (line,) in catalogue.query("PRAGMA integrity_check") if line != "ok"]
    n_dangling = len(catalogue.query("PRAGMA foreign_key_check"))
    if n_dangling:
        problems.append(f"catalogue: {n_dangling} rows refer to rows that are not there")
    segments = catalogue.segments()
    n_runs = n_artifacts = n_dropped = 0
    for name, size_bytes, _ in segments:
        pieces = pieces_of(catalogue, name)
        n_runs += sum(piece.table == "runs" for piece in pieces)
        n_artifacts += sum(piece.table == "artifacts" for piece in pieces)
        reason, bad = _check_segment(folder.segments / (name + SUFFIX), size_bytes, pieces)
        if reason and catalogue.has_segment(name):  # else it was removed while we looked
            problems.append(f"segments/{name}{SUFFIX}: {reason}")
            if repair:
                n_dropped += _drop(catalogue, name, bad)
    for path in folder_items(folder.segments):
        if not OWN_NAME.fullmatch(path.name) or path.is_symlink() or not path.is_file():
            problems.append(f"segments/{display_name(path.name)}: not a file of the store")
    derived = DerivedFiles(folder.root).damaged()
    problems += [f"index/{path.name}: damaged" for path in derived]
    if repair:
        for path in derived:
            path.unlink(missing_ok=True)
            n_dropped += 1
    return VerifyReport(
        n_documents=catalogue.query("SELECT count(*) FROM documents")[0][0],
        n_segments=len(segments),
        n_runs=n_runs,
        n_artifacts=n_artifacts,
        size_bytes=sum(size for _, size, _ in segments),
        problems=tuple(problems),
        n_dropped=n_dropped,
        n_leftovers=0 if folder.is_read_only else len(leftovers(folder, catalogue)),
    )


def _check_segment(path: Path, size_bytes: int, pieces: list[Piece]) -> tuple[str, list[Piece]]:
    """What is wrong with a segment ("": nothing), and the entries to forget: all where it is not whole."""
    try:
        with open_regular(path) as file:
            descriptor = file.fileno()
            bad = [piece for piece in pieces if not _is_sound(descriptor, piece)]
            try:
                header = read_header(descriptor)
            except ValueError as error:
                return f"{error}{_count(pieces)}", pieces
            if os.fstat(descriptor).st_size != size_bytes:
                return f"it has not the size that the catalogue knows{_count(pieces)}", pieces
            if bad:
                return f"damaged{_count(bad)}", bad
            n_strange = _n_strange(header, pieces)
            return (f"header and catalogue differ on {n_strange} entries" if n_strange else ""), []
    except FileNotFoundError:
        return f"missing{_count(pieces)}", pieces
    except OSError as error:
        return f"cannot be read: {os_error_text(error)}", []


def _is_sound(descriptor: int, piece: Piece) -> bool:
    """Whether the bytes are those that were written. Raises OSError."""
    data = memoryview(bytearray(piece.size_bytes))
    return read_exactly(descriptor, data, piece.offset) and checksum_of(data) == piece.checksum


def _n_strange(header: Header, pieces: list[Piece]) -> int:
    """How many entries the file's header does not have as the catalogue has them."""
    entries = {entry.offset: entry for entry in header.entries}
    return sum(
        (entry := entries.get(piece.offset)) is None
        or (entry.size_bytes, entry.checksum, entry.facts) != (piece.size_bytes, piece.checksum, piece.facts)
        for piece in pieces
    )


def _drop(catalogue: Catalogue, name: str, pieces: list[Piece]) -> int:
    """Forget entries where they lie now."""
    with catalogue.transaction() as connection:
        for piece in pieces:
            names = "id = ? AND codec = ?" if piece.table == "runs" else "kind = ? AND key = ?"
            connection.execute(
                f"DELETE FROM {piece.table} WHERE {names} AND segment = ?",  # noqa: S608  # constants
                (*piece.names, piece.segment),
            )
        remove_empty_segments(connection)
    return len(pieces)


def _count(pieces: list[Piece]) -> str:
    return f" ({len(pieces)} entries lost)" if pieces else ""
