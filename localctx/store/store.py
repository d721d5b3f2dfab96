"""The store as others see it: folder, catalogue and segments joined. Knows no llama.cpp and no text."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from localctx.names import display_name
from localctx.store import artifacts, documents, portable, upkeep
from localctx.store.catalogue import Catalogue
from localctx.store.errors import StoreUnusable
from localctx.store.folder import StoreFolder, default_limit, open_folder, os_error_text
from localctx.store.locks import holding
from localctx.store.reading import SegmentReader, Views
from localctx.store.records import DocumentIdentity, GcReport, StoredDocument, StoredRun, VerifyReport
from localctx.store.verify import verify_store
from localctx.store.writing import RunWriter

__all__ = ["KVStore"]

MARK_SECONDS = 60.0
"""So often at most a document is noted as used while it is being read."""


class KVStore:
    """An open store. Close it, or use `with`; threads and processes may use one folder side by side.

    root: the folder that --store names · is_read_only: it can only be read · limit_bytes: what its KV may
    take.
    """

    def __init__(
        self, folder: StoreFolder, catalogue: Catalogue, limit_bytes: int, warn: Callable[[str], None]
    ) -> None:
        self.folder = folder
        self.catalogue = catalogue
        self.limit_bytes = limit_bytes
        self.warn = warn
        self._reader = SegmentReader(folder)
        self._marked: dict[bytes, float] = {}

    @classmethod
    def open(
        cls,
        folder: Path | None = None,
        limit_bytes: int | None = None,
        *,
        warn: Callable[[str], None] | None = None,
        create: bool = True,
    ) -> Self:
        """Open the store under `folder` (default: the platform's cache folder), making it where there is
        none.

        limit_bytes: default the smaller of 20 GB and a tenth of the free disk · warn: told of damage and
        eviction, one line each. Raises StoreUnusable: not writable and no store there, not this user's,
        another version, or with create=False none there.
        """
        place = open_folder(folder, may_create=create)
        catalogue = Catalogue.open(place)
        place = replace(place, is_read_only=catalogue.is_read_only)
        try:
            if limit_bytes is None:
                limit_bytes = default_limit(place, upkeep.used_bytes(place, catalogue))
            store = cls(place, catalogue, limit_bytes, warn or _unheard)
            if not place.is_read_only:
                upkeep.sweep(place, catalogue)
        except BaseException:
            catalogue.close()
            raise
        return store

    @staticmethod
    def erase(folder: Path | None = None) -> int:
        """Remove a store of another version, or a damaged one, with all it holds; bytes that went.

        Raises StoreUnusable for what was not made by localctx.
        """
        return upkeep.erase(open_folder(folder, may_create=False))

    def close(self) -> None:
        """Close the catalogue; views of a reading() block that is still open stay valid."""
        self.catalogue.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def root(self) -> Path:
        """The folder of everything that is kept, converted texts included."""
        return self.folder.root

    @property
    def path(self) -> Path:
        """The folder of KV."""
        return self.folder.kv

    @property
    def is_read_only(self) -> bool:
        """Whether it can only be read."""
        return self.folder.is_read_only

    def check_writable(self) -> None:
        """Raises StoreUnusable where the store can only be read."""
        if self.is_read_only:
            raise StoreUnusable(
                f"the store in {display_name(self.root)} can only be read",
                "look at its permissions and the free space",
            )

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments, and of what else was derived from texts."""
        return upkeep.used_bytes(self.folder, self.catalogue)

    def n_leading(self, ids: Sequence[bytes], codec: str | None = None) -> int:
        """How many of the first runs are kept without a gap, in `codec` or in any."""
        return self.catalogue.n_leading(ids, codec)

    def which(self, ids: Sequence[bytes], codec: str | None = None) -> frozenset[bytes]:
        """Those of the ids whose runs are kept, in `codec` or in any."""
        return self.catalogue.kept_ids(ids, codec)

    def lookup(self, ids: Sequence[bytes], codec: str | None = None) -> dict[bytes, StoredRun]:
        """Where the runs lie that are kept; without `codec` the encoding with the least error of each."""
        return self.catalogue.find_runs(ids, codec)

    def prefetch(self, ids: Sequence[bytes], codec: str | None = None) -> None:
        """Have runs read into memory that a reading() will want soon; returns at once."""
        self._reader.prefetch(self.lookup(ids, codec).values())

    @contextlib.contextmanager
    def reading(self, ids: Sequence[bytes], codec: str | None = None) -> Iterator[Mapping[bytes, memoryview]]:
        """The runs' bytes, valid within the block; a native Run made from a view keeps its bytes longer.

        What is missing or damaged is not in the mapping; damage is told and forgotten. Raises StoreUnusable.
        """
        with contextlib.ExitStack() as stack:
            result, found = stack.enter_context(
                self._reader.reading_found(ids, lambda some: self.lookup(some, codec))
            )
            self._tell(result, "runs")
            if result.damaged and not self.is_read_only:
                self.catalogue.drop_runs([found[run_id] for run_id in result.damaged])
            stack.callback(self._mark_used, next(iter(result.views), None))
            yield result.views

    def _mark_used(self, run_id: bytes | None) -> None:
        """Note, once in a while, that the documents of a run that was read were used."""
        now = time.monotonic()
        if (
            run_id is None
            or self.is_read_only
            or now - self._marked.get(run_id, -MARK_SECONDS) < MARK_SECONDS
        ):
            return
        self._marked[run_id] = now
        with contextlib.suppress(StoreUnusable):  # it was read; that is what counts
            documents.mark_used(self.catalogue, documents.keys_with_run(self.catalogue, run_id))

    def _tell(self, result: Views[Any], what: str) -> None:
        """Say what could not be used."""
        if result.damaged:
            self.warn(
                f"stored KV is damaged and is not used ({len(result.damaged)} {what}); localctx store verify"
            )
        if result.unreadable:
            reason = next(iter(result.unreadable.values()))
            self.warn(f"stored KV cannot be read ({len(result.unreadable)} {what}: {reason})")

    @contextlib.contextmanager
    def writing(
        self,
        document: DocumentIdentity,
        run_ids: Sequence[bytes] = (),
        *,
        is_cancelled: Callable[[], bool] | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> Iterator[RunWriter]:
        """A writer of the document's runs, of which `run_ids` names all, kept or not.

        Holds the document's lock: another process that prefills the same one is waited for (on_wait is called
        once, is_cancelled asked meanwhile), so ask n_leading() again inside the block. Leaving the block
        commits, also after an exception. Raises StoreUnusable where nothing can be written, Interrupted when
        cancelled.
        """
        self.check_writable()
        with contextlib.ExitStack() as stack:
            lock = holding(
                self.folder.document_lock(document.key), is_cancelled=is_cancelled, on_wait=on_wait
            )
            try:
                stack.enter_context(lock)
            except OSError as error:
                raise StoreUnusable(f"the store cannot be locked: {os_error_text(error)}") from None
            writer = RunWriter(self, document, run_ids)
            try:
                yield writer
            except BaseException:
                with contextlib.suppress(StoreUnusable):  # the error on its way out says more
                    writer.commit()
                raise
            if writer.failure is None:
                writer.commit()

    def touch(self, key: str) -> None:
        """Note that a document was used now; nothing where the store can only be read."""
        if not self.is_read_only:
            documents.mark_used(self.catalogue, [key])

    def documents(self) -> list[StoredDocument]:
        """All documents, the last used first."""
        return documents.list_documents(self.catalogue)

    def document(self, key: str) -> StoredDocument | None:
        """The document of a key."""
        return next(iter(documents.list_documents(self.catalogue, key)), None)

    def has_document(self, key: str) -> bool:
        """Whether there is a document of the key."""
        return documents.is_listed(self.catalogue, key)

    def remove(self, key: str) -> int:
        """Remove a document and all that only it holds; bytes that went. An unknown key is none."""
        self.check_writable()
        return upkeep.remove_documents(self.folder, self.catalogue, [key])

    def clear(self) -> int:
        """Remove all documents and derived files, not what is known of models; bytes that went."""
        self.check_writable()
        return upkeep.clear(self.folder, self.catalogue)

    def gc(self, texts: Collection[str] | None = None) -> GcReport:
        """See upkeep.collect_garbage()."""
        self.check_writable()
        return upkeep.collect_garbage(self.folder, self.catalogue, texts)

    def verify(self, *, repair: bool = False) -> VerifyReport:
        """Read everything and compare it with the catalogue; `repair` forgets what is damaged."""
        return verify_store(self.folder, self.catalogue, repair=repair and not self.is_read_only)

    def export(self, key: str, path: Path) -> int:
        """Write a document's KV to one portable file, whole or not at all; its bytes.

        Raises UsageError for an unknown key, StoreUnusable where it cannot be written.
        """
        return portable.export(self, key, path)

    def import_(self, path: Path) -> StoredDocument:
        """Take in an exported file, everything in it checked.

        Raises InputError for a file that is damaged, of another version, or none; StoreUnusable.
        """
        return portable.import_file(self, path)

    def model_facts(self, fingerprint: str) -> dict[str, Any]:
        """What was found out about a model: verdicts, heads."""
        return self.catalogue.model_facts(fingerprint)

    def set_model_fact(self, fingerprint: str, name: str, value: Any) -> None:
        """Keep one JSON value of a model. Raises StoreUnusable."""
        self.catalogue.set_model_fact(fingerprint, name, value)

    def put_artifacts(self, kind: str, items: Mapping[str, bytes], document: artifacts.Owner = None) -> None:
        """Keep derived byte strings under (kind, key), those of one call in one file; equal names are
        replaced.

        document: what they go with, entered if it is not known, or its key: nothing is kept where that is
        not known. Without one they are kept only where there is room, until clear(). Raises StoreUnusable.
        """
        artifacts.put(self, kind, items, document)

    def trim_artifacts(self, kind: str, most_bytes: int, most_files: int) -> None:
        """Remove a kind's oldest files until both numbers hold. Raises StoreUnusable."""
        artifacts.trim(self, kind, most_bytes, most_files)

    @contextlib.contextmanager
    def reading_artifacts(self, kind: str, keys: Sequence[str]) -> Iterator[Mapping[str, memoryview]]:
        """The derived byte strings, valid within the block; missing or damaged ones are not in it."""
        with self._reader.reading_found(keys, lambda some: artifacts.find(self.catalogue, kind, some)) as (
            result,
            found,
        ):
            self._tell(result, kind)
            if result.damaged and not self.is_read_only:
                artifacts.drop(self.catalogue, kind, [found[key] for key in result.damaged])
            yield result.views


def _unheard(_: str) -> None:
    """Warnings that nobody asked for."""
