"""Converted texts kept between runs: FOLDER/text/<key>/{text.utf8, meta.json}. Knows no formats.

An entry is written to a temporary folder, synced and renamed, so it is whole or absent; size, text hash and a
hash of the metadata are checked on every use, and what does not match is made again. Folders are 0700, links
are not followed, names are hashes; a folder that others may write to is not used. The least recently used
entries go when `MAX_BYTES` is exceeded.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import xxhash

from localctx.document.convert import Layout, Sink
from localctx.document.text_file import TextFile, TextScan
from localctx.names import display_name
from localctx.values import Page, Section

__all__ = ["CONVERTER_VERSION", "MAX_BYTES", "CacheFolder", "CacheUnusable", "TextCache", "cache_folder"]

CONVERTER_VERSION = 2
"""Part of every key: raise it whenever a converter's output changes."""
MAX_BYTES = 2 << 30
"""Size of all entries together beyond which the least recently used are removed."""
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
STALE_SECONDS = 24 * 3600.0
TEXT_NAME, META_NAME, TEMPORARY_PREFIX = "text.utf8", "meta.json", "tmp-"

CacheFolder: TypeAlias = Path | Literal["default"] | None
Entry: TypeAlias = tuple[TextFile, Layout, dict[str, str]]


class CacheUnusable(Exception):
    """The cache cannot be written (permissions, no space); the reason is the message."""


def cache_folder(folder: CacheFolder) -> Path | None:
    """The folder meant: the platform's own for "default", None for no cache."""
    if folder != "default":
        return folder
    import platformdirs

    return Path(platformdirs.user_cache_dir("localctx", appauthor=False))


class TextCache:
    """The entries under one folder. Raises CacheUnusable when the folder cannot be made or is not ours."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._root = folder / "text"
        self._max_bytes = max_bytes
        with unusable_on_os_error():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                self._root.mkdir(mode=0o700)
            above, status = folder.stat(), self._root.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise CacheUnusable(f"{display_name(self._root)} is not a folder of this user")
        if status.st_mode & OTHERS_WRITE or (
            above.st_mode & OTHERS_WRITE and not above.st_mode & stat.S_ISVTX
        ):
            raise CacheUnusable(f"others may write to {display_name(self._root)}; chmod go-w")

    def load(self, key: str, name: str) -> Entry | None:
        """The entry, or None where there is none or it is damaged. `name` is shown in errors."""
        folder = self._root / key
        try:
            if not stat.S_ISDIR(folder.lstat().st_mode):
                return None
            meta = json.loads(read_regular(folder / META_NAME))
            text = open_regular(folder / TEXT_NAME)
        except (OSError, ValueError, RecursionError):  # the last: nested beyond what Python's parser takes
            return None
        try:
            entry = checked_entry(meta, text, name)
        except BaseException:
            text.close()
            raise
        if entry is None:
            text.close()
            return None
        with contextlib.suppress(OSError):  # a read-only cache still serves
            os.utime(folder)
        return entry

    def save(self, key: str, name: str, convert: Callable[[Sink], tuple[Layout, dict[str, str]]]) -> Entry:
        """Have `convert` write the text into a new entry. Raises CacheUnusable, and what `convert` raises."""
        with unusable_on_os_error():
            temporary = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=self._root))
        try:
            with unusable_on_os_error():
                descriptor = os.open(temporary / TEXT_NAME, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            text = GuardedFile(descriptor)
            try:
                layout, facts = convert(text)
                text.flush_and_sync()
                scan = TextScan(text.file)
                with unusable_on_os_error():
                    write_meta(temporary / META_NAME, layout, facts, scan)
                    self._publish(temporary, key)
                return TextFile(text.file, scan, name), layout, facts
            except BaseException:
                with contextlib.suppress(OSError):  # closing writes what is left, to the same full disk
                    text.file.close()
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            self._evict(keep=key)

    def _publish(self, temporary: Path, key: str) -> None:
        """Give a finished entry its name; a damaged or equal one of that name is moved away first."""
        target = self._root / key
        try:
            temporary.rename(target)
        except OSError:
            aside = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=self._root))
            try:
                with contextlib.suppress(FileNotFoundError):  # another process was faster
                    target.rename(aside / "old")
                with contextlib.suppress(FileExistsError, OSError):  # again: theirs is as good as ours
                    temporary.rename(target)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        sync_folder(self._root)

    def _evict(self, keep: str) -> None:
        """Remove the least recently used entries beyond the limit, and what killed runs left."""
        entries = []
        for path in folder_items(self._root):
            with contextlib.suppress(OSError):  # another process is tidying up as well
                modified = path.lstat().st_mtime
                if not path.name.startswith(TEMPORARY_PREFIX):
                    size = sum(item.lstat().st_size for item in folder_items(path))
                    entries.append((modified, size, path))
                elif time.time() - modified > STALE_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self._max_bytes:
                return
            if path.name != keep:
                shutil.rmtree(path, ignore_errors=True)
                total -= size


class GuardedFile:
    """A file being written whose OSErrors mean that the cache is unusable, not that the input is."""

    def __init__(self, descriptor: int) -> None:
        self.file: BinaryIO = os.fdopen(descriptor, "r+b")

    def write(self, data: bytes, /) -> int:
        """Write all of `data`. Raises CacheUnusable."""
        with unusable_on_os_error():
            return self.file.write(data)

    def seek(self, offset: int, /) -> int:
        """Move to a place. Raises CacheUnusable."""
        with unusable_on_os_error():
            return self.file.seek(offset)

    def truncate(self) -> int:
        """Cut the file off here. Raises CacheUnusable."""
        with unusable_on_os_error():
            return self.file.truncate()

    def flush_and_sync(self) -> None:
        """Bring everything to disk. Raises CacheUnusable."""
        with unusable_on_os_error():
            self.file.flush()
            os.fsync(self.file.fileno())


@contextlib.contextmanager
def unusable_on_os_error() -> Iterator[None]:
    """Turns an OSError into CacheUnusable."""
    try:
        yield
    except OSError as error:
        raise CacheUnusable((error.strerror or str(error)).lower()) from None


def folder_items(folder: Path) -> list[Path]:
    """What a folder holds; nothing where it is gone or no folder."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file, never through a link, never waiting. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path) -> bytes:
    """The content of a small regular file. Raises OSError."""
    with open_regular(path) as file:
        return file.read()


def sync_folder(folder: Path) -> None:
    """Bring a rename to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_meta(path: Path, layout: Layout, facts: dict[str, str], scan: TextScan) -> None:
    """Write an entry's metadata and bring it to disk."""
    body: dict[str, Any] = {
        "version": CONVERTER_VERSION,
        "n_bytes": scan.n_bytes,
        "content_hash": scan.content_hash,
        "facts": facts,
        "layout": asdict(layout),
    }
    body["checksum"] = checksum(body)
    with path.open("x", encoding="utf-8") as file:
        json.dump(body, file)
        file.flush()
        os.fsync(file.fileno())


def checked_entry(meta: Any, text: BinaryIO, name: str) -> Entry | None:
    """The entry if its metadata and its text are what was written, else None."""
    try:
        stored = meta.pop("checksum")
        if stored != checksum(meta) or meta["version"] != CONVERTER_VERSION:
            return None
        if os.fstat(text.fileno()).st_size != meta["n_bytes"]:
            return None
        scan = TextScan(text)
        if not scan.is_valid or scan.content_hash != meta["content_hash"]:
            return None
        return TextFile(text, scan, name), layout_from(meta["layout"]), dict(meta["facts"])
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def checksum(meta: dict[str, Any]) -> str:
    """A hash of metadata as it is read back from JSON."""
    return xxhash.xxh3_128_hexdigest(json.dumps(json.loads(json.dumps(meta)), sort_keys=True).encode())


def layout_from(fields: dict[str, Any]) -> Layout:
    """A layout from its JSON value."""
    values = dict(fields)
    values["pages"] = tuple(Page(**page) for page in fields["pages"])
    values["sections"] = tuple(Section(**section) for section in fields["sections"])
    for key in ("pages_without_text", "notices"):
        values[key] = tuple(fields[key])
    return Layout(**values)
