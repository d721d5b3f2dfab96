"""What keeps the store small: files of killed writers swept, old documents evicted, half-empty segments
rewritten.

Rows go first, in one transaction, files after; a file goes only when nobody reads it. So a kill at any point
leaves at most files without rows, which the next sweep takes.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterable
from pathlib import Path

from localctx.byte_sizes import format_bytes
from localctx.private_files import folder_items
from localctx.store.catalogue import Catalogue, catalogue_errors
from localctx.store.compaction import rewrite_sparse
from localctx.store.derived import DerivedFiles
from localctx.store.documents import (
    forget_document,
    held_bytes,
    known_texts,
    list_documents,
    remove_empty_segments,
    remove_unreferenced,
)
from localctx.store.errors import StoreUnusable
from localctx.store.folder import StoreFolder
from localctx.store.locks import holding, is_free, remove_if_free, try_lock
from localctx.store.records import GcReport
from localctx.store.schema import SIDE_FILES, check_header
from localctx.store.segments import OWN_NAME, SUFFIX, TEMPORARY_PREFIX

__all__ = [
    "clear",
    "collect_garbage",
    "erase",
    "has_room",
    "leftovers",
    "make_room",
    "remove_documents",
    "sweep",
    "used_bytes",
]

YOUNG_SECONDS = 5.0
"""A file so new may not have been locked by its writer yet."""


def leftovers(folder: StoreFolder, catalogue: Catalogue) -> list[Path]:
    """Files without rows that no living process is writing."""
    known = {name for name, _, _ in catalogue.segments()}
    found = []
    with contextlib.suppress(FileNotFoundError):
        for item in os.scandir(folder.segments):
            path = Path(item.path)
            is_known = path.suffix == SUFFIX and path.stem in known
            if not is_known and OWN_NAME.fullmatch(path.name) and _is_abandoned(path, catalogue):
                found.append(path)
    return found


def sweep(folder: StoreFolder, catalogue: Catalogue) -> tuple[int, int]:
    """Remove leftovers; (files, bytes) that went. What cannot be removed stays for the next time."""
    n_files = n_bytes = 0
    for path in leftovers(folder, catalogue):
        with contextlib.suppress(OSError):
            size = path.lstat().st_size
            path.unlink()
            n_files, n_bytes = n_files + 1, n_bytes + size
    return n_files, n_bytes


def remove_documents(folder: StoreFolder, catalogue: Catalogue, keys: Iterable[str]) -> int:
    """Forget documents and what only they hold; the bytes of the files that went."""
    with catalogue.transaction() as connection:
        doomed = {text_hash for key in keys for text_hash in forget_document(connection, key)}
        names = remove_empty_segments(connection)
    freed_bytes = _unlink_unread(folder, names)
    doomed -= known_texts(catalogue)
    return freed_bytes + (DerivedFiles(folder.root).remove(doomed) if doomed else 0)


def clear(folder: StoreFolder, catalogue: Catalogue) -> int:
    """Forget all documents and everything derived; the bytes of the files that went."""
    with catalogue.transaction() as connection:
        for table in ("documents", "runs", "artifacts"):
            connection.execute(f"DELETE FROM {table}")  # noqa: S608  # constants
        names = remove_empty_segments(connection)
    freed_bytes = _unlink_unread(folder, names) + sweep(folder, catalogue)[1]
    return freed_bytes + DerivedFiles(folder.root).clear()


def used_bytes(folder: StoreFolder, catalogue: Catalogue) -> int:
    """Bytes of everything that counts against the limit."""
    return catalogue.size_bytes() + DerivedFiles(folder.root).size_bytes


def erase(folder: StoreFolder) -> int:
    """Remove the catalogue, whatever its version and state, and all segments; the bytes that went."""
    with catalogue_errors(), holding(folder.store_lock):
        check_header(folder.catalogue)
        doomed = [path for path in folder_items(folder.segments) if OWN_NAME.fullmatch(path.name)]
        doomed += [folder.catalogue.with_name(folder.catalogue.name + suffix) for suffix in SIDE_FILES]
        freed_bytes = 0
        for path in doomed:
            with contextlib.suppress(FileNotFoundError):
                freed_bytes += path.lstat().st_size
                path.unlink()
        return freed_bytes


def has_room(folder: StoreFolder, catalogue: Catalogue, n_bytes: int, limit_bytes: int) -> bool:
    """Whether `n_bytes` more fit under the limit as it is."""
    return used_bytes(folder, catalogue) + n_bytes <= limit_bytes


def make_room(
    folder: StoreFolder, catalogue: Catalogue, n_bytes: int, limit_bytes: int, *, keep: str
) -> list[str]:
    """Evict the least recently used documents until `n_bytes` more fit under the limit; their names.

    What was derived from texts goes before any document. Those that are being prefilled, and `keep`, stay.
    Raises StoreUnusable when that is not enough; where that is seen before, nothing has gone.
    """
    evicted: list[str] = []
    if has_room(folder, catalogue, n_bytes, limit_bytes):
        return evicted
    _tidy_unless_others_do(folder, catalogue)
    documents, derived = list_documents(catalogue), DerivedFiles(folder.root)
    stay = {keep} | {one.key for one in documents if not is_free(folder.document_lock(one.key))}
    least_bytes = held_bytes(catalogue, [one.key for one in documents if one.key in stay]) + n_bytes
    if least_bytes <= limit_bytes:
        derived.free(used_bytes(folder, catalogue) + n_bytes - limit_bytes)
    for document in reversed(documents) if least_bytes + derived.size_bytes <= limit_bytes else ():
        if has_room(folder, catalogue, n_bytes, limit_bytes):
            return evicted
        if document.key not in stay and is_free(folder.document_lock(document.key)):
            remove_documents(folder, catalogue, [document.key])
            evicted.append(document.identity.name)
    if evicted:
        _tidy_unless_others_do(folder, catalogue)
    if not has_room(folder, catalogue, n_bytes, limit_bytes):
        raise StoreUnusable(
            f"the store's limit of {format_bytes(limit_bytes)} is reached",
            "localctx store ls shows what it holds, localctx store rm makes room",
        )
    return evicted


def collect_garbage(
    folder: StoreFolder, catalogue: Catalogue, texts: Collection[str] | None = None
) -> GcReport:
    """Remove what nothing refers to, rewrite segments that are mostly unwanted, sweep leftovers.

    texts: hashes of those that are kept elsewhere; what was derived of any others without KV goes, of none
    where it is not said.
    """
    with catalogue_errors(), holding(folder.tidy_lock):
        with catalogue.transaction() as connection:
            n_runs = remove_unreferenced(connection)
            names = remove_empty_segments(connection)
        freed_bytes = _unlink_unread(folder, names)
        rewritten, emptied = rewrite_sparse(folder, catalogue)
        freed_bytes += _unlink_unread(folder, emptied)
        n_files, swept_bytes = sweep(folder, catalogue)
        if texts is not None:
            n_derived, derived_bytes = DerivedFiles(folder.root).tidy(known_texts(catalogue) | set(texts))
            n_files, swept_bytes = n_files + n_derived, swept_bytes + derived_bytes
        wanted = {folder.document_lock(document.key) for document in list_documents(catalogue)}
        wanted |= {folder.store_lock, folder.tidy_lock}
        for path in folder_items(folder.locks):
            if path not in wanted:
                remove_if_free(path)
    return GcReport(n_runs, len(names), rewritten, n_files, freed_bytes + swept_bytes)


def _tidy_unless_others_do(folder: StoreFolder, catalogue: Catalogue) -> None:
    """Collect garbage, but never wait for a process that is at it: an answer may be waiting for this one."""
    if is_free(folder.tidy_lock):
        collect_garbage(folder, catalogue)


def _is_abandoned(path: Path, catalogue: Catalogue) -> bool:
    """Whether nobody holds the file and, looked at after that, it still has no row."""
    try:
        if path.name.startswith(TEMPORARY_PREFIX) and time.time() - path.lstat().st_mtime < YOUNG_SECONDS:
            return False
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        is_free_file = try_lock(descriptor, is_exclusive=True)
        return is_free_file and not catalogue.has_segment(path.name.removesuffix(SUFFIX))
    finally:
        os.close(descriptor)


def _unlink_unread(folder: StoreFolder, names: Iterable[str]) -> int:
    """Remove segments without rows; those that somebody reads go with a later sweep. Bytes that went."""
    freed_bytes = 0
    for name in names:
        path = folder.segments / (name + SUFFIX)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            if try_lock(descriptor, is_exclusive=True):
                size_bytes = os.fstat(descriptor).st_size
                path.unlink(missing_ok=True)
                freed_bytes += size_bytes
        except OSError:
            continue
        finally:
            os.close(descriptor)
    return freed_bytes
