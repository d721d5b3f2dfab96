"""Derived byte strings under (kind, key): scan columns, snapshots. Does not know what is in them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from localctx.store.catalogue import BATCH, Catalogue, insert_segment
from localctx.store.compaction import artifact_facts
from localctx.store.documents import (
    enter_document,
    has_document,
    is_listed,
    remove_empty_segments,
)
from localctx.store.errors import StoreUnusable
from localctx.store.folder import os_error_text
from localctx.store.records import DocumentIdentity
from localctx.store.segments import checksum_of, new_segment
from localctx.store.upkeep import has_room, make_room, sweep

if TYPE_CHECKING:
    from localctx.store.store import KVStore

__all__ = ["Owner", "StoredArtifact", "drop", "drop_of", "find", "put", "trim"]

Owner: TypeAlias = DocumentIdentity | str | None
"""What a derived byte string goes with: a document, which is entered if need be, or the key of one."""


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """Where a derived byte string lies."""

    key: str
    segment: str
    offset: int
    size_bytes: int
    checksum: bytes


def put(store: KVStore, kind: str, items: Mapping[str, bytes], owner: Owner = None) -> None:
    """Keep the items in one new segment. Raises StoreUnusable.

    For what has no owner nothing is evicted: it is kept where there is room. What goes with a document that
    is not there (any more) is not kept.
    """
    store.check_writable()
    if not items or not _has_place(store, sum(len(data) for data in items.values()), owner):
        return
    document = owner.key if isinstance(owner, DocumentIdentity) else owner
    entries = [(artifact_facts(kind, key), checksum_of(data), data) for key, data in items.items()]
    try:
        with (
            new_segment(store.folder.segments, {}, entries) as written,
            store.catalogue.transaction() as connection,
        ):
            if isinstance(owner, DocumentIdentity):
                enter_document(connection, owner, ())
            elif owner is not None and not has_document(connection, owner):
                return  # removed meanwhile; the file without rows goes with the next sweep
            segment = insert_segment(connection, written.name, written.size_bytes)
            connection.executemany(
                "INSERT OR REPLACE INTO artifacts"
                " (segment, kind, key, document, offset, size_bytes, checksum) VALUES ("
                "?, ?, ?, (SELECT document FROM documents WHERE key = ?), ?, ?, ?)",
                [
                    (segment, kind, facts["key"], document, offset, len(data), checksum)
                    for (facts, checksum, data), offset in zip(entries, written.offsets, strict=True)
                ],
            )
    except OSError as error:
        raise StoreUnusable(f"KV cannot be kept: {os_error_text(error)}", "free some space") from None
    except BaseException:
        with contextlib.suppress(StoreUnusable):
            sweep(store.folder, store.catalogue)
        raise


def _has_place(store: KVStore, n_bytes: int, owner: Owner) -> bool:
    """Whether there is room and, for a key, the document; room is made for what has an owner."""
    if owner is None:
        return has_room(store.folder, store.catalogue, n_bytes, store.limit_bytes)
    key = owner.key if isinstance(owner, DocumentIdentity) else owner
    if isinstance(owner, str) and not is_listed(store.catalogue, key):
        return False
    evicted = make_room(store.folder, store.catalogue, n_bytes, store.limit_bytes, keep=key)
    if evicted:
        store.warn(f"the store was full: the KV of {', '.join(evicted)} was removed")
    return True


def find(catalogue: Catalogue, kind: str, keys: Sequence[str]) -> dict[str, StoredArtifact]:
    """Where those lie that are kept."""
    found: dict[str, StoredArtifact] = {}
    for start in range(0, len(keys), BATCH):
        some = keys[start : start + BATCH]
        rows = catalogue.query(
            "SELECT key, name, offset, artifacts.size_bytes, checksum"  # noqa: S608  # only "?" is put in
            " FROM artifacts JOIN segments USING (segment)"
            f" WHERE kind = ? AND key IN ({','.join('?' * len(some))})",
            [kind, *some],
        )
        found |= {row[0]: StoredArtifact(*row) for row in rows}
    return found


def drop(catalogue: Catalogue, kind: str, places: Iterable[StoredArtifact]) -> None:
    """Forget derived byte strings where they lie now; what was written anew elsewhere stays."""
    with catalogue.transaction() as connection:
        connection.executemany(
            "DELETE FROM artifacts WHERE kind = ? AND key = ? AND offset = ?"
            " AND segment = (SELECT segment FROM segments WHERE name = ?)",
            [(kind, place.key, place.offset, place.segment) for place in places],
        )


def drop_of(store: KVStore, kind: str, document: str) -> None:
    """Forget all of a kind that goes with the document of a key. Raises StoreUnusable."""
    store.check_writable()
    with store.catalogue.transaction() as connection:
        connection.execute(
            "DELETE FROM artifacts WHERE kind = ?"
            " AND document = (SELECT document FROM documents WHERE key = ?)",
            [kind, document],
        )
        remove_empty_segments(connection)
    sweep(store.folder, store.catalogue)


def trim(store: KVStore, kind: str, most_bytes: int, most_files: int) -> None:
    """Forget a kind's oldest files of byte strings until no more are left. Raises StoreUnusable."""
    store.check_writable()
    rows = store.catalogue.query(
        "SELECT segment, sum(size_bytes) FROM artifacts WHERE kind = ? GROUP BY segment"
        " ORDER BY segment DESC",
        [kind],
    )
    doomed, n_bytes = [], 0
    for number, (segment, size_bytes) in enumerate(rows, 1):
        n_bytes += size_bytes
        if number > most_files or n_bytes > most_bytes:
            doomed.append((kind, segment))
    if doomed:
        with store.catalogue.transaction() as connection:
            connection.executemany("DELETE FROM artifacts WHERE kind = ? AND segment = ?", doomed)
            remove_empty_segments(connection)
        sweep(store.folder, store.catalogue)
