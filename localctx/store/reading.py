"""Stored bytes as views of memory-mapped segments, each checked once a process. Knows no documents.

Checking reads with pread, so that a file that was cut, or a disk that fails, is a miss and cannot kill the
process. What is not what was written is told, its row dropped, and it is not among the views.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from localctx.private_files import open_regular
from localctx.store.folder import StoreFolder, os_error_text
from localctx.store.locks import try_lock
from localctx.store.segments import SUFFIX, checksum_of, read_exactly

__all__ = ["Located", "SegmentReader", "Views"]

NEAR_BYTES = 1 << 20
"""Places so near to each other are read in one go."""
MAX_READERS = 8
"""Threads that read at a time: enough for a disk to have its queue filled."""
Stamp: TypeAlias = tuple[int, int, int]


class Located(Protocol):
    """Where bytes lie."""

    @property
    def segment(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def checksum(self) -> bytes: ...


Name = TypeVar("Name", bytes, str)
Place = TypeVar("Place", bound=Located)


@dataclass(slots=True)
class Views(Generic[Name]):
    """What could be read, and what not: `damaged` is not what was written, `missing` has no file any more."""

    views: dict[Name, memoryview] = field(default_factory=dict)
    damaged: list[Name] = field(default_factory=list)
    missing: list[Name] = field(default_factory=list)
    unreadable: dict[Name, str] = field(default_factory=dict)


class SegmentReader:
    """Opens segments of one folder and remembers what it has checked."""

    def __init__(self, folder: StoreFolder) -> None:
        self._folder = folder
        self._checked: dict[tuple[str, Stamp], set[int]] = {}

    def prefetch(self, places: Iterable[Located]) -> None:
        """Ask the system to read the places ahead, in file order; never fails."""
        for name, group in by_segment((None, place) for place in places).items():
            with contextlib.suppress(OSError), open_regular(self._path(name)) as file:
                read_ahead(file.fileno(), [place for _, place in group])

    @contextlib.contextmanager
    def reading(self, places: Mapping[Name, Located]) -> Iterator[Views[Name]]:
        """The bytes of the places, valid within the block.

        What still holds on to a view's buffer afterwards (a native Run) keeps its map alive.
        """
        result: Views[Name] = Views()
        with contextlib.ExitStack() as stack:
            with contextlib.ExitStack() as descriptors:  # a map has its own, and the lock with it
                opened = []
                for name, group in by_segment(places.items()).items():
                    if (descriptor := self._open(name, group, result)) is not None:
                        descriptors.callback(os.close, descriptor)
                        expect(descriptor, [place for _, place in group])
                        opened.append((descriptor, group, self._checked_in(name, descriptor)))
                self._check(opened, result)
                for descriptor, group, checked in opened:
                    sound = [(item, place) for item, place in group if place.offset in checked]
                    if sound:
                        stack.callback(release, map_views(descriptor, sound, result))
            yield result

    @contextlib.contextmanager
    def reading_found(
        self, names: Sequence[Name], find: Callable[[Sequence[Name]], dict[Name, Place]]
    ) -> Iterator[tuple[Views[Name], dict[Name, Place]]]:
        """reading() of where `find` says that they lie, and these places; what was moved is looked up again.

        What has its place and no file even then is damaged.
        """
        found = find(names)
        with contextlib.ExitStack() as stack:
            result = stack.enter_context(self.reading(found))
            if result.missing:  # moved or evicted since they were looked up
                again = find(result.missing)
                second = stack.enter_context(self.reading(again))
                result.views |= second.views
                for lost in (second.damaged, second.missing):
                    result.damaged.extend(lost)
                result.unreadable |= second.unreadable
                found |= again
            yield result, found

    def _path(self, name: str) -> Path:
        return self._folder.segments / (name + SUFFIX)

    def _open(self, name: str, group: Sequence[tuple[Name, Located]], result: Views[Name]) -> int | None:
        """The segment's descriptor, with the shared lock that keeps the file from being removed."""
        names = [item for item, _ in group]
        try:
            with open_regular(self._path(name)) as file:
                descriptor = os.dup(file.fileno())
        except FileNotFoundError:
            result.missing += names
        except OSError as error:
            if error.errno is None or error.errno == errno.ELOOP:
                result.damaged += names
            else:
                result.unreadable |= dict.fromkeys(names, os_error_text(error))
        else:
            try_lock(descriptor, is_exclusive=False)
            return descriptor
        return None

    def _checked_in(self, name: str, descriptor: int) -> set[int]:
        """The offsets that were found sound before in the unchanged file."""
        status = os.fstat(descriptor)
        return self._checked.setdefault((name, (status.st_ino, status.st_mtime_ns, status.st_size)), set())

    def _check(
        self, opened: Sequence[tuple[int, Sequence[tuple[Name, Located]], set[int]]], result: Views[Name]
    ) -> None:
        """Read what was not checked before, and note what is sound, what is not, and what cannot be read."""
        anew = [
            (descriptor, item, place, checked)
            for descriptor, group, checked in opened
            for item, place in group
            if place.offset not in checked
        ]
        said = _verdicts([(descriptor, place) for descriptor, _, place, _ in anew])
        for (_, item, place, checked), problem in zip(anew, said, strict=True):
            if problem is None:
                checked.add(place.offset)
            elif problem:
                result.unreadable[item] = problem
            else:
                result.damaged.append(item)


def _verdicts(places: Sequence[tuple[int, Located]]) -> list[str | None]:
    """What is wrong with each place of a file: None for nothing, "" for damage, else why it cannot be read.

    Several are read at a time: neither reading nor checking holds the interpreter's lock.
    """
    buffers = threading.local()

    def verdict(where: tuple[int, Located]) -> str | None:
        descriptor, place = where
        buffer: bytearray = getattr(buffers, "bytes", bytearray())
        if len(buffer) < place.size_bytes:
            buffers.bytes = buffer = bytearray(place.size_bytes)
        view = memoryview(buffer)[: place.size_bytes]
        try:
            is_whole = read_exactly(descriptor, view, place.offset)
        except OSError as error:
            return os_error_text(error)
        return None if is_whole and checksum_of(view) == place.checksum else ""

    if sum(place.size_bytes for _, place in places) < NEAR_BYTES:
        return [verdict(where) for where in places]
    with ThreadPoolExecutor(min(MAX_READERS, len(places))) as pool:
        return list(pool.map(verdict, places))


def by_segment(places: Iterable[tuple[Any, Located]]) -> dict[str, list[tuple[Any, Located]]]:
    """The places of each segment in file order."""
    groups: dict[str, list[tuple[Any, Located]]] = {}
    for item, place in places:
        groups.setdefault(place.segment, []).append((item, place))
    for group in groups.values():
        group.sort(key=lambda pair: pair[1].offset)
    return groups


def expect(descriptor: int, places: Sequence[Located]) -> None:
    """Say how the places will be read: ahead where they are most of the file, else each by itself. A system
    that reads on behind each place, 8 MiB as some do, reads 1.7 times what is asked for.
    """
    if not hasattr(os, "posix_fadvise"):  # not on macOS
        return
    if 4 * sum(place.size_bytes for place in places) >= 3 * os.fstat(descriptor).st_size:
        read_ahead(descriptor, places)
    else:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)


def read_ahead(descriptor: int, places: Sequence[Located]) -> None:
    """Have the places read, neighbours as one range."""
    if not hasattr(os, "posix_fadvise"):  # not on macOS
        return
    start = end = 0
    for place in places:
        if place.offset - end > NEAR_BYTES:
            os.posix_fadvise(descriptor, start, end - start, os.POSIX_FADV_WILLNEED)
            start = place.offset
        end = place.offset + place.size_bytes
    os.posix_fadvise(descriptor, start, end - start, os.POSIX_FADV_WILLNEED)


def map_views(
    descriptor: int, group: Sequence[tuple[Name, Located]], result: Views[Name]
) -> tuple[mmap.mmap, list[memoryview]]:
    """Map a segment and put a view of each entry into the result."""
    mapping = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    whole = memoryview(mapping)
    views = [whole]
    for item, place in group:
        result.views[item] = whole[place.offset : place.offset + place.size_bytes]
        views.append(result.views[item])
    return mapping, views


def release(mapped: tuple[mmap.mmap, list[memoryview]]) -> None:
    """Give up views and map; what a reader still holds lives as long as the reader."""
    mapping, views = mapped
    for view in reversed(views):
        with contextlib.suppress(BufferError):
            view.release()
    with contextlib.suppress(BufferError):
        mapping.close()
