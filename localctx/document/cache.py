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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import xxhash

from localctx.document.convert import Layout, Sink
from localctx.document.text_file import TextFile, TextScan
from localctx.names import display_name
from localctx.private_files import (
    NotPrivate,
    default_root,
    folder_items,
    make_private,
    open_regular,
    read_regular,
    sync_folder,
)
from localctx.values import Page, Section

__all__ = [
    "CONVERTER_VERSION",
    "MAX_BYTES",
    "NOT_KEPT",
    "CacheFolder",
    "CacheUnusable",
    "KeptText",
    "TextCache",
    "cache_folder",
    "full_name",
]

CONVERTER_VERSION = 6
"""Part of every key: raise it whenever a converter's output changes."""
MAX_BYTES = 2 << 30
"""Size of all entries together beyond which the least recently used are removed."""
STALE_SECONDS = 24 * 3600.0
NOT_KEPT = "the text is not kept for the next run"
TEXT_NAME, META_NAME, TEMPORARY_PREFIX = "text.utf8", "meta.json", "tmp-"
CacheFolder: TypeAlias = Path | Literal["default"] | None
Convert: TypeAlias = Callable[[Sink], tuple[Layout, dict[str, str]]]
Entry: TypeAlias = tuple[TextFile, Layout, dict[str, str]]


@dataclass(frozen=True, slots=True)
class KeptText:
    """An entry as it is listed. path: of the input, as full_name() gives it, "" where not known ·
    content_hash: of the text · size_bytes: on disk · last_used: seconds since 1970.
    """

    key: str
    path: str
    content_hash: str
    format: str
    size_bytes: int
    last_used: float


class CacheUnusable(Exception):
    """The cache cannot be written (permissions, no space); the reason is the message."""


def cache_folder(folder: CacheFolder) -> Path | None:
    """The folder meant: the platform's own for "default", None for no cache."""
    return default_root() if folder == "default" else folder


class TextCache:
    """The entries under one folder. Raises CacheUnusable when the folder cannot be made or is not ours."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._root = folder / "text"
        self._max_bytes = max_bytes
        with unusable_on_os_error():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                make_private(self._root)
            except NotPrivate as error:
                raise CacheUnusable(str(error)) from None

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

    def save(self, key: str, name: str, convert: Convert, path: str | None = None) -> Entry:
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
                    write_meta(temporary / META_NAME, layout, facts, scan, full_name(path or name))
                    self._publish(temporary, key)
                return TextFile(text.file, scan, name), layout, facts
            except BaseException:
                with contextlib.suppress(OSError):  # closing writes what is left, to the same full disk
                    text.file.close()
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            self._evict(keep=key)

    def entries(self) -> list[KeptText]:
        """What is kept, the last used first; entries that are damaged or being made are left out."""
        found = []
        for path in folder_items(self._root):
            with contextlib.suppress(OSError, ValueError, RecursionError, KeyError, TypeError):
                meta = json.loads(read_regular(path / META_NAME))
                size_bytes = sum(item.lstat().st_size for item in folder_items(path))
                place, text_hash, kind = meta.get("path", ""), meta["content_hash"], meta["facts"]["format"]
                facts = (path.name, str(place), str(text_hash), str(kind))
                found.append(KeptText(*facts, size_bytes, path.lstat().st_mtime))
        return sorted(found, key=lambda entry: -entry.last_used)

    def remove(self, key: str) -> int:
        """Remove an entry, damaged or not; bytes that went. An unknown key is none."""
        folder = self._root / key
        if folder.parent != self._root or folder.name != key or folder.is_symlink():
            return 0
        size_bytes = sum(item.lstat().st_size for item in folder_items(folder))
        shutil.rmtree(folder, ignore_errors=True)
        return size_bytes

    def clear(self) -> int:
        """Remove every entry and what killed runs left; bytes that went. What is just being made stays."""
        freed_bytes = 0
        for path in folder_items(self._root):
            with contextlib.suppress(OSError):  # another process is tidying up as well
                is_made_now = path.name.startswith(TEMPORARY_PREFIX)
                if not is_made_now or time.time() - path.lstat().st_mtime > STALE_SECONDS:
                    freed_bytes += self.remove(path.name)
        return freed_bytes

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


def full_name(name: str) -> str:
    """Where the input of a shown name lies, links followed, shown too; "" for what is no file: a stream."""
    place = "/dev/" if name == "-" else os.path.realpath(name)
    is_gone = not (os.path.exists(place) or place.startswith(("/dev/", "/proc/")))  # noqa: PTH110  # any name
    return display_name(place) if is_gone or os.path.isfile(place) else ""  # noqa: PTH113  # any name


def write_meta(path: Path, layout: Layout, facts: dict[str, str], scan: TextScan, place: str) -> None:
    """Write an entry's metadata and bring it to disk."""
    body: dict[str, Any] = {
        "version": CONVERTER_VERSION,
        "path": place,
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
    values |= {key: tuple(fields[key]) for key in ("pages_without_text", "notices")}
    return Layout(**values)
