"""Uploaded documents on disk, each tenant's under a folder of its own. Knows no HTTP.

ROOT/<tenant>/files/<id>/{NAME, meta.json}; beside it, ROOT/<tenant>/store is what is computed from them.
meta.json comes last, by a rename: without it there is no such file. What another tenant has, and what was
never there, cannot be told apart.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import time
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from localctx.document.cache import CacheUnusable, TextCache
from localctx.errors import InputError
from localctx.private_files import folder_items, make_private, read_regular, sync_folder
from localctx.serve.keys import Tenant
from localctx.store import KVStore, StoreUnusable
from localctx.store.derived import DerivedFiles

__all__ = ["NoSuchFile", "StoredFile", "UploadedFiles"]

ID = re.compile(r"file-[0-9a-f]{24}")
META_NAME, TEMPORARY_NAME = "meta.json", "meta.tmp"
MAX_NAME_BYTES = 180
PIECE_BYTES = 1 << 20


class NoSuchFile(Exception):
    """The tenant has no such file."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """created_at: seconds since 1970 · path: its content · text_hash, n_pages, n_characters: of its text."""

    id: str
    filename: str
    purpose: str
    n_bytes: int
    created_at: int
    path: Path
    text_hash: str = ""
    n_pages: int = 0
    n_characters: int = 0

    def to_json(self) -> dict[str, object]:
        """OpenAI's file object, and what was read of it."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": self.n_bytes,
            "created_at": self.created_at,
            "filename": self.filename,
            "purpose": self.purpose,
            "status": "processed",
            "expires_at": None,
            "status_details": None,
            "localctx": {"pages": self.n_pages, "characters": self.n_characters},
        }


class UploadedFiles:
    """Methods may be called from any thread."""

    def __init__(self, root: Path) -> None:
        """Makes the folder. Raises OSError, NotPrivate."""
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._root = root

    def store_root(self, tenant: Tenant) -> Path:
        """Where what is computed from the tenant's documents is kept."""
        folder = self._root / tenant.folder
        make_private(folder)
        return folder / "store"

    def write(self, tenant: Tenant, content: BinaryIO, filename: str, purpose: str) -> StoredFile:
        """Bring an upload to disk; add() makes it one of the tenant's files, drop() removes it.

        Raises OSError, InputError.
        """
        name = f"file-{secrets.token_hex(12)}"
        folder = self._files(tenant) / name
        folder.mkdir(mode=0o700)
        try:
            path = folder / safe_name(filename)
            with path.open("xb") as file:
                shutil.copyfileobj(content, file, PIECE_BYTES)
                n_bytes = file.tell()
            if not n_bytes:
                raise InputError(f"{filename}: the file is empty", "a document with text")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return StoredFile(name, filename, purpose, n_bytes, int(time.time()), path)

    def add(self, written: StoredFile) -> None:
        """Make what was written a file of the tenant's. Raises OSError."""
        folder = written.path.parent
        meta = {name: value for name, value in asdict(written).items() if name != "path"}
        temporary = folder / TEMPORARY_NAME
        temporary.write_text(json.dumps({**meta, "content": written.path.name}), "utf-8")
        temporary.rename(folder / META_NAME)
        sync_folder(folder)

    def drop(self, written: StoredFile) -> None:
        """Remove what was written and is not wanted."""
        shutil.rmtree(written.path.parent, ignore_errors=True)

    def list(self, tenant: Tenant) -> list[StoredFile]:
        """The tenant's files, the newest first."""
        files = []
        for folder in folder_items(self._files(tenant)):
            with suppress(NoSuchFile):
                files.append(self.get(tenant, folder.name))
        return sorted(files, key=lambda file: (-file.created_at, file.id))

    def get(self, tenant: Tenant, name: str) -> StoredFile:
        """One of them. Raises NoSuchFile."""
        if not ID.fullmatch(name):
            raise NoSuchFile
        folder = self._files(tenant) / name
        try:
            meta = json.loads(read_regular(folder / META_NAME))
            content = folder / meta.pop("content")
            return StoredFile(path=content, **meta)
        except (OSError, ValueError, TypeError, KeyError):
            raise NoSuchFile from None

    def delete(self, tenant: Tenant, name: str) -> None:
        """Remove a file and all that was computed from it alone. Raises NoSuchFile."""
        file = self.get(tenant, name)
        (file.path.parent / META_NAME).unlink()  # from here on it is not there
        if not any(other.text_hash == file.text_hash for other in self.list(tenant)):
            _forget(self.store_root(tenant), file.text_hash)
        self.drop(file)

    def tidy(self) -> None:
        """Remove what an interrupted upload left; for the time before anything is served."""
        for folder in folder_items(self._root):
            for item in folder_items(folder / "files"):
                if ID.fullmatch(item.name) and not (item / META_NAME).exists():
                    shutil.rmtree(item, ignore_errors=True)

    def _files(self, tenant: Tenant) -> Path:
        folder = self._root / tenant.folder
        make_private(folder)
        make_private(folder / "files")
        return folder / "files"


def safe_name(filename: str) -> str:
    """The name that an upload has on disk: no path, nothing hidden, no control character."""
    name = re.split(r"[/\\]", filename)[-1]
    name = "".join(c if c.isprintable() and c not in '<>:"|?*' else "_" for c in name).lstrip(". ").rstrip()
    stem, dot, suffix = name.rpartition(".")
    if len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        stem = (stem or name).encode("utf-8", "replace")[: MAX_NAME_BYTES - 20].decode("utf-8", "ignore")
        name = f"{stem}{dot}{suffix.encode('ascii', 'ignore')[:15].decode()}"
    name = name.encode("utf-8", "replace").decode()
    return "document" if name in ("", META_NAME, TEMPORARY_NAME) else name


def _forget(root: Path, text_hash: str) -> None:
    """Remove KV, words and converted text of a text. What cannot be removed is evicted in its time."""
    if not root.is_dir():
        return
    with suppress(StoreUnusable), closing(KVStore.open(root)) as store:
        for document in store.documents():
            if text_hash in document.identity.text_hashes:
                store.remove(document.key)
    with suppress(StoreUnusable, OSError):
        DerivedFiles(root).remove({text_hash})
    with suppress(CacheUnusable):
        cache = TextCache(root)
        for text in cache.entries():
            if text.content_hash == text_hash:
                cache.remove(text.key)
