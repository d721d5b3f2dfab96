"""The store as its commands see it: KV documents and converted texts, found by file or by key."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from localctx.byte_sizes import format_bytes
from localctx.document.cache import CacheUnusable, KeptText, TextCache, full_name
from localctx.errors import LocalctxError, UsageError
from localctx.names import display_name
from localctx.private_files import default_root
from localctx.store import GcReport, KVStore, StoredDocument, StoreUnusable
from localctx.store.derived import DerivedFiles
from localctx.store.errors import StoreBusy
from localctx.store.folder import can_only_be_read

from .answer_lines import counted
from .stored_view import facts_of_document, facts_of_text
from .terminal import note

__all__ = ["Found", "Stored"]

KEY = re.compile(r"[0-9a-f]{6,32}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Found:
    """What a FILE or KEY means. indexed: hashes of texts whose words are indexed."""

    documents: list[StoredDocument]
    texts: list[KeptText]
    indexed: frozenset[str] = frozenset()


class Stored:
    """What is kept under the root that the setting `store` names. Raises UsageError for `off`.

    A store of KV is not made by looking.
    """

    def __init__(self, setting: str | None, limit_bytes: int | None = None) -> None:
        if setting == "off":
            raise UsageError("the store is off", "--store DIR names one")
        self.root = default_root() if setting is None else Path(setting).absolute()
        self._limit_bytes = limit_bytes
        self._kv: KVStore | None = None
        self._failure: StoreUnusable | None = None
        if _may_be_there(self.root / "kv" / "catalogue.sqlite3"):
            try:
                self._kv = KVStore.open(
                    self.root, limit_bytes, warn=lambda text: note(f"warning: {text}"), create=False
                )
            except StoreUnusable as error:
                self._failure = error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kv is not None:
            self._kv.close()

    @property
    def kv(self) -> KVStore | None:
        """The open store of KV; None where there is none. Raises StoreUnusable where it cannot be opened."""
        if self._failure is not None:
            raise self._failure
        return self._kv

    @property
    def documents(self) -> list[StoredDocument]:
        """Documents with KV, the last used first. Raises StoreUnusable."""
        return self.kv.documents() if self.kv is not None else []

    @property
    def texts(self) -> list[KeptText]:
        """Converted texts, the last used first."""
        cache = self._cache()
        return cache.entries() if cache is not None else []

    def _cache(self) -> TextCache | None:
        """The converted texts; None where there are none, or the folder is not this user's."""
        if not os.path.isdir(self.root / "text"):  # noqa: PTH112  # False too where it may not be looked at
            return None
        with contextlib.suppress(CacheUnusable):
            return TextCache(self.root)
        return None

    @property
    def indexes(self) -> dict[str, int]:
        """Bytes of the kept indexes of words, by the hash of their text."""
        return self._derived.sizes()

    @property
    def _derived(self) -> DerivedFiles:
        return DerivedFiles(self.root)

    def making_kv(self) -> KVStore:
        """The store of KV, made where there is none."""
        kv = self.kv
        if kv is None:
            kv = self._kv = KVStore.open(self.root, self._limit_bytes)
        return kv

    def find(self, target: str) -> Found:
        """What a file or key means: by key, by the file's place (older versions of it too), by its content.

        Raises UsageError where nothing is found, or a key's beginning means several documents.
        """
        documents, texts = self.documents, self.texts
        if KEY.fullmatch(target):
            found = Found(
                [document for document in documents if document.key.startswith(target)],
                [text for text in texts if text.key.startswith(target)],
            )
            if len(found.documents) + len(found.texts) > 1:
                raise UsageError(f"several keys begin with {target}", "give more of the key")
            if found.documents or found.texts:
                return found
        place = full_name(target)
        text_key, content_hash = hashes_of(target)
        mine = [text for text in texts if (place and text.path == place) or text.key == text_key]
        hashes = {text.content_hash for text in mine} | ({content_hash} if content_hash else set())
        mine_too = [
            document
            for document in documents
            if (place and place in document.identity.paths) or hashes & set(document.identity.text_hashes)
        ]
        found = Found(mine_too, mine, frozenset(hashes & self.indexes.keys()))
        if not (found.documents or found.texts or found.indexed):
            raise UsageError(
                f"nothing of {display_name(target) or repr(target)} is stored",
                "localctx store ls lists files and keys; of a key its first six characters will do",
            )
        return found

    def one_document(self, target: str) -> StoredDocument:
        """The one document with KV that is meant. Raises UsageError for none and for several."""
        documents = self.find(target).documents
        if len(documents) != 1:
            what = "no KV" if not documents else f"KV of {len(documents)} models or policies"
            hint = "localctx store ls shows the keys" if documents else "localctx index FILE stores it"
            raise UsageError(f"{target}: {what} is stored", hint)
        return documents[0]

    def remove(self, targets: Sequence[str]) -> tuple[list[str], int, int]:
        """Remove documents, and texts that no other document has; (names, texts, bytes) that went."""
        found = [self.find(target) for target in targets]
        documents = {document.key: document for one in found for document in one.documents}
        texts = {text.key: text for one in found for text in one.texts}
        needed = {h for d in self.documents if d.key not in documents for h in d.identity.text_hashes}
        gone = {h for document in documents.values() for h in document.identity.text_hashes} - needed
        texts |= {text.key: text for text in self.texts if text.content_hash in gone}
        gone |= {text_hash for one in found for text_hash in one.indexed} - needed
        freed_bytes = sum(self._kv.remove(key) for key in documents) if self._kv is not None else 0
        cache = self._cache()
        freed_bytes += sum(cache.remove(key) for key in texts) if cache is not None else 0
        freed_bytes += self._derived.remove(gone)
        return [document.identity.name for document in documents.values()], len(texts), freed_bytes

    def remove_all(self) -> tuple[list[str], int, int]:
        """Remove everything, also a store of another version, a damaged one, or one on a full disk."""
        if self._kv is not None and can_only_be_read(self._kv.folder):  # not so on a full disk
            self._kv.check_writable()
        names: list[str] = []
        n_texts = len(self.texts)
        freed_bytes = 0
        try:
            if self.kv is not None:
                names = [document.identity.name for document in self.documents]
                freed_bytes = self.kv.clear()
        except StoreBusy:
            raise
        except StoreUnusable:
            freed_bytes = KVStore.erase(self.root)
        cache = self._cache()
        freed_bytes += self._derived.clear() + (cache.clear() if cache is not None else 0)
        return names, n_texts, freed_bytes

    def tidy(self) -> GcReport | None:
        """Remove what nothing refers to, in the store of KV where there is one; None where there is none."""
        texts = {text.content_hash for text in self.texts}
        if self.kv is not None:
            return self.kv.gc(texts)
        n_files, freed_bytes = self._derived.tidy(texts)
        return GcReport(0, 0, 0, n_files, freed_bytes) if n_files else None

    def facts(self) -> dict[str, Any]:
        """Everything for a program."""
        return {
            "path": str(self.root),
            "size_bytes": self._kv.size_bytes if self._kv is not None else self._derived.size_bytes,
            "limit_bytes": self._kv.limit_bytes if self._kv is not None else None,
            "read_only": self._kv is not None and self._kv.is_read_only,
            "documents": [facts_of_document(document) for document in self.documents],
            "texts": [facts_of_text(text) for text in self.texts],
            "indexes": [{"text_hash": name, "size_bytes": n} for name, n in sorted(self.indexes.items())],
        }

    def total(self) -> str:
        """The last line of a list."""
        texts, indexes = self.texts, self.indexes
        words = (
            f"{counted(len(texts), 'converted text')}, {format_bytes(sum(text.size_bytes for text in texts))}"
        )
        if indexes:
            words += (
                f"; words of {counted(len(indexes), 'text')} indexed, {format_bytes(sum(indexes.values()))}"
            )
        if self._kv is None:
            return f"no KV is stored; {words}; in {self.root}"
        only = ", can only be read" if self._kv.is_read_only else ""
        return (
            f"{counted(len(self.documents), 'document')} with KV, {format_bytes(self._kv.size_bytes)} "
            f"of at most {format_bytes(self._kv.limit_bytes)}{only}; {words}; in {self.root}"
        )


def _may_be_there(path: Path) -> bool:
    """Whether there is such a file, or nobody may look."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def hashes_of(target: str) -> tuple[str | None, str | None]:
    """(key of the file's conversion, hash of its content as text); None where there is no such file."""
    from localctx.document.events import Options
    from localctx.document.limits import Limits
    from localctx.document.opening import Reading
    from localctx.document.source import open_path
    from localctx.document.text_file import TextScan

    try:
        with closing(open_path(target)) as source:
            key = Reading(source, Options(None, None, None, Limits(), None, None)).key()
            return key, TextScan(source.file).content_hash
    except (
        LocalctxError,
        OSError,
        ValueError,
    ):  # no file any more, or none that can be read: its name remains
        return None, None
