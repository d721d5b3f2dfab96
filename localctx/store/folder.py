"""Where the store's files lie, and whether they may be used: this user's own, no links. Knows no contents."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from localctx.names import display_name
from localctx.private_files import NotPrivate, check_private, default_root, make_private
from localctx.store.errors import StoreUnusable
from localctx.store.schema import check_header

__all__ = ["ROOT_USER", "StoreFolder", "can_only_be_read", "default_limit", "open_folder", "os_error_text"]

MAX_DEFAULT_BYTES = 20 * 10**9
SHARE_OF_FREE_DISK = 0.1
ROOT_USER = 0


@dataclass(frozen=True, slots=True)
class StoreFolder:
    """The paths of one store. root: what --store names; converted texts lie beside `kv`."""

    root: Path
    is_read_only: bool = False

    @property
    def kv(self) -> Path:
        """All KV, with its catalogue."""
        return self.root / "kv"

    @property
    def segments(self) -> Path:
        """The immutable files."""
        return self.kv / "segments"

    @property
    def derived(self) -> Path:
        """Files derived from texts (derived.py)."""
        return self.root / "index"

    @property
    def locks(self) -> Path:
        """Lock files, outside everything that is ever cleared."""
        return self.root / "locks"

    @property
    def catalogue(self) -> Path:
        """The SQLite file."""
        return self.kv / "catalogue.sqlite3"

    @property
    def store_lock(self) -> Path:
        """Held for a moment while the catalogue is opened, and made or changed in form if need be."""
        return self.locks / "store.lock"

    @property
    def tidy_lock(self) -> Path:
        """Held while files are tidied, which can take minutes."""
        return self.locks / "tidy.lock"

    def document_lock(self, key: str) -> Path:
        """Held while the document is being prefilled."""
        return self.locks / f"{key}.lock"


def open_folder(root: Path | None, *, may_create: bool) -> StoreFolder:
    """The folder, its parts made where they are missing; read-only where a store is there but cannot be
    written.

    Raises StoreUnusable, also for a store that is not there when it may not be made.
    """
    folder = StoreFolder(default_root() if root is None else root.absolute())
    try:
        if not may_create and not folder.catalogue.exists():
            raise StoreUnusable(
                f"there is no store in {display_name(folder.root)}", "localctx index makes one"
            )
        check_header(folder.catalogue)  # nothing is made in a folder of someone else's making
        if can_only_be_read(folder):
            return _read_only(folder)
        folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in (folder.kv, folder.segments, folder.locks):
            make_private(part)
    except NotPrivate as error:
        raise StoreUnusable(f"the store is not used: {error}", "--store DIR names another folder") from None
    except OSError as error:
        raise StoreUnusable(
            f"the store in {display_name(folder.root)} cannot be used: {os_error_text(error)}",
            "--store DIR names another folder, --store off none",
        ) from None
    return folder


def can_only_be_read(folder: StoreFolder) -> bool:
    """Whether there is a store that this process may not write."""
    parts = (folder.kv, folder.segments, folder.catalogue)
    return folder.catalogue.exists() and not all(os.access(part, os.W_OK) for part in parts if part.exists())


def _read_only(folder: StoreFolder) -> StoreFolder:
    """The checked folder of a store that is only read; one that root made is trusted."""
    for part in (folder.kv, folder.segments):
        check_private(part, owners=(ROOT_USER,))
    return StoreFolder(folder.root, is_read_only=True)


def default_limit(folder: StoreFolder, used_bytes: int) -> int:
    """The smaller of 20 GB and a tenth of the disk that is free or already used by this store."""
    try:
        free_bytes = shutil.disk_usage(folder.kv).free
    except OSError:
        return MAX_DEFAULT_BYTES
    return min(MAX_DEFAULT_BYTES, int(SHARE_OF_FREE_DISK * (free_bytes + used_bytes)))


def os_error_text(error: OSError) -> str:
    """What went wrong, in words."""
    return (error.strerror or str(error)).lower()
