"""Files derived from texts, one each: FOLDER/index/<hash of the text>-<key>. Does not know what is in them.

A file ends with the xxh3-128 of its name and of all that stands before. It is written under a temporary name,
synced and renamed, so that it is whole or absent; on each use everything of it is checked, and what does not
match is a miss and goes. Folder 0700, files 0600, links not followed. The least recently used go beyond the
limit.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO

import xxhash

from localctx.byte_sizes import format_bytes
from localctx.private_files import (
    NotPrivate,
    check_private,
    folder_items,
    make_private,
    open_regular,
    sync_folder,
)
from localctx.store.errors import StoreUnusable, TooLarge
from localctx.store.folder import ROOT_USER, StoreFolder, default_limit, os_error_text

__all__ = ["MAX_BYTES", "DerivedFiles", "share_of"]

MAX_BYTES = 2 << 30
SHARE_OF_LIMIT = 0.1
"""Of what the store may take, this much at most for all these files together."""
STALE_SECONDS = 3600.0
TEMPORARY_PREFIX = "tmp-"
NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{32}", re.ASCII)
OWN_NAME = re.compile(rf"{NAME.pattern}|{TEMPORARY_PREFIX}[0-9a-f]{{16}}(-journal)?", re.ASCII)
CHECKSUM_BYTES = 16
READ_BYTES = 1 << 20


class DerivedFiles:
    """The files under one root; nothing is made before something is written."""

    def __init__(self, root: Path, max_bytes: int | None = None) -> None:
        """max_bytes: default share_of() what a store there may take by default."""
        self._store = StoreFolder(root.absolute())
        self._folder = self._store.derived
        self._max_bytes = max_bytes

    def find(self, text_hash: str, key: str) -> Path | None:
        """The file of a text under a key, checked; None where there is none, or it was damaged."""
        path = self._path(text_hash, key)
        try:
            check_private(self._folder, owners=(ROOT_USER,))
            with open_regular(path) as file:
                is_sound = _is_sound(file, path.name)
        except (OSError, NotPrivate):
            return None
        with contextlib.suppress(OSError):  # one that can only be read still serves
            if not is_sound:
                path.unlink()
            else:
                os.utime(path)
        return path if is_sound else None

    def write(self, text_hash: str, key: str, fill: Callable[[Path], None], *, least_bytes: int = 0) -> None:
        """Have `fill` write the file's content under the path that it is given; one of that name is replaced.

        least_bytes: what is known of its size before. Raises TooLarge for a file that alone would exceed the
        limit, StoreUnusable where it cannot be kept, and what `fill` raises.
        """
        max_bytes = self.limit_bytes
        _check_size(least_bytes, max_bytes)
        temporary = self._folder / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
        try:
            self._store.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_private(self._folder)
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
            fill(temporary)
            _check_size(temporary.stat().st_size + CHECKSUM_BYTES, max_bytes)
            path = self._path(text_hash, key)
            _seal(temporary, path.name)
            temporary.rename(path)
            sync_folder(self._folder)
        except NotPrivate as error:
            raise StoreUnusable(str(error)) from None
        except OSError as error:
            raise StoreUnusable(os_error_text(error)) from None
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
        self._evict(max_bytes)

    @property
    def can_write(self) -> bool:
        """Whether files could be made here, were there room."""
        place = self._folder
        while not os.path.lexists(place) and place != place.parent:
            place = place.parent
        return place.is_dir() and os.access(place, os.W_OK)

    def _path(self, text_hash: str, key: str) -> Path:
        name = f"{text_hash}-{key}"
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not made of two hashes")
        return self._folder / name

    def _own(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Own files and what they are; no links, nothing else that may lie there."""
        if self._folder.is_symlink():
            return
        for path in folder_items(self._folder):
            with contextlib.suppress(OSError):  # another process is tidying up as well
                status = path.lstat()
                if OWN_NAME.fullmatch(path.name) and stat.S_ISREG(status.st_mode):
                    yield path, status

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(status.st_size for _, status in self._own())

    def sizes(self) -> dict[str, int]:
        """Bytes by text hash."""
        sizes: dict[str, int] = {}
        for path, status in self._own():
            if NAME.fullmatch(path.name):
                text_hash = path.name.partition("-")[0]
                sizes[text_hash] = sizes.get(text_hash, 0) + status.st_size
        return sizes

    def remove(self, text_hashes: Collection[str]) -> int:
        """Remove the files of texts; bytes that went."""
        return self._remove(lambda name, _: name.partition("-")[0] in text_hashes)

    def clear(self) -> int:
        """Remove every file but those just being written; bytes that went."""
        return self._remove(lambda name, status: NAME.fullmatch(name) is not None or _is_stale(status))

    def tidy(self, wanted: Collection[str]) -> tuple[int, int]:
        """Remove the files of texts that are not `wanted` and what killed runs left; (files, bytes)."""
        n_before = sum(1 for _ in self._own())
        freed_bytes = self._remove(
            lambda name, status: (
                name.partition("-")[0] not in wanted if NAME.fullmatch(name) else _is_stale(status)
            )
        )
        return max(0, n_before - sum(1 for _ in self._own())), freed_bytes

    def damaged(self) -> list[Path]:
        """Files that are not what was written, or cannot be read."""
        found = []
        for path, _ in self._own():
            if NAME.fullmatch(path.name):
                try:
                    with open_regular(path) as file:
                        is_sound = _is_sound(file, path.name)
                except FileNotFoundError:  # another process is tidying up as well
                    continue
                except OSError:
                    is_sound = False
                if not is_sound:
                    found.append(path)
        return found

    def _remove(self, is_doomed: Callable[[str, os.stat_result], bool]) -> int:
        freed_bytes = 0
        for path, status in self._own():
            if is_doomed(path.name, status):
                with contextlib.suppress(OSError):
                    path.unlink()
                    freed_bytes += status.st_size
        return freed_bytes

    def free(self, n_bytes: int) -> int:
        """Remove the least recently used until so many bytes went, or all; bytes that went."""
        freed_bytes = 0
        for path, status in sorted(self._own(), key=lambda item: item[1].st_mtime):
            if freed_bytes >= n_bytes:
                break
            if NAME.fullmatch(path.name):
                with contextlib.suppress(OSError):
                    path.unlink()
                    freed_bytes += status.st_size
        return freed_bytes

    @property
    def limit_bytes(self) -> int:
        """What all files together may take."""
        if self._max_bytes is not None:
            return self._max_bytes
        return share_of(default_limit(self._store, self.size_bytes))

    def _evict(self, max_bytes: int) -> None:
        """Remove the least recently used beyond the limit, and what killed runs left."""
        total = 0
        for path, status in sorted(self._own(), key=lambda item: -item[1].st_mtime):
            total += status.st_size
            is_temporary = not NAME.fullmatch(path.name)
            if _is_stale(status) if is_temporary else total > max_bytes:
                with contextlib.suppress(OSError):
                    path.unlink()


def share_of(limit_bytes: int) -> int:
    """What all these files may take of what their store may take."""
    return min(MAX_BYTES, int(SHARE_OF_LIMIT * limit_bytes))


def _check_size(n_bytes: int, max_bytes: int) -> None:
    if n_bytes > max_bytes:
        raise TooLarge(
            f"that takes {format_bytes(n_bytes)}, all such files may take {format_bytes(max_bytes)}",
            "--store-limit gives the store more, of which these take a tenth",
        )


def _is_stale(status: os.stat_result) -> bool:
    """Whether nobody can be writing the file any more."""
    return time.time() - status.st_mtime > STALE_SECONDS


def _is_sound(file: BinaryIO, name: str) -> bool:
    """Whether the file ends with the checksum of its name and the rest. Raises OSError."""
    n_left = os.fstat(file.fileno()).st_size - CHECKSUM_BYTES
    return n_left > 0 and _hash(file, name, n_left) == os.pread(file.fileno(), CHECKSUM_BYTES, n_left)


def _hash(file: BinaryIO, name: str, n_bytes: int) -> bytes:
    hasher = xxhash.xxh3_128(name.encode())
    buffer = memoryview(bytearray(READ_BYTES))
    at = 0
    while at < n_bytes and (n := os.preadv(file.fileno(), [buffer[: n_bytes - at]], at)):
        hasher.update(buffer[:n])
        at += n
    return hasher.digest()


def _seal(path: Path, name: str) -> None:
    """Append the checksum and bring the file to disk. Raises OSError."""
    with path.open("r+b") as file:
        checksum = _hash(file, name, os.fstat(file.fileno()).st_size)
        file.seek(0, os.SEEK_END)
        file.write(checksum)
        file.flush()
        os.fsync(file.fileno())
