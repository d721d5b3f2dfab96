"""UTF-8 text at rest, addressed by code point through small memory maps. Knows no formats.

Only two windows are mapped at a time, so a text far larger than the address space can be read. The whole is
read once when it is opened: validated, counted, hashed. A file that changes afterwards is an error, never
wrong text: size and time are taken before the whole is read, and compared before a map is touched.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import BinaryIO

import xxhash

from localctx._native import Utf8Index, utf8_advance
from localctx.errors import InputError
from localctx.values import Progress

__all__ = ["TextFile", "TextScan"]

WINDOW_BYTES = 64 << 20  # a multiple of every page size
OPEN_WINDOWS = 2
SCAN_BYTES = 1 << 18
STREAM_BYTES = 1 << 20
SHORT_READ = 1 << 14
"""Code points up to which more bytes than needed are read, so that they are read once."""


class TextScan:
    """One pass over bytes that may be UTF-8: validity, NULs, escapes, counts, hash. Stops at the first error.

    `needle` is looked for on the way (`found`). Reads with pread, so a file cut meanwhile cannot kill us.
    """

    def __init__(self, file: BinaryIO, needle: bytes = b"", on_progress: Progress | None = None) -> None:
        self.index = Utf8Index()
        self.found = False
        self.stamp = stamp_of(file)
        size = self.stamp[0]
        buffer = bytearray(SCAN_BYTES)
        view = memoryview(buffer)
        hasher = xxhash.xxh3_128()
        offset, self.is_valid, tail = 0, True, b""
        while self.is_valid and (n := os.preadv(file.fileno(), [view], offset)):
            self.is_valid = self.index.feed(view[:n])
            hasher.update(view[:n])
            if needle and not self.found:
                overlap = len(needle) - 1
                self.found = buffer.find(needle, 0, n) >= 0 or needle in tail + buffer[:overlap]
                tail = bytes(buffer[max(0, n - overlap) : n])
            offset += n
            if on_progress is not None:
                on_progress(min(offset, size), size)
        self.is_valid = self.is_valid and self.index.finish()
        self.n_bytes = offset
        self.content_hash = hasher.hexdigest()


class TextFile:
    """A valid UTF-8 file as a `TextSource`; owns `file` and closes it. Safe to read from several threads.

    Raises InputError when the file was written to since its scan began.
    """

    def __init__(self, file: BinaryIO, scan: TextScan, name: str) -> None:
        self.name = name
        self.n_bytes = scan.n_bytes
        self.content_hash = scan.content_hash
        self._file = file
        self._index = scan.index
        self._stamp = scan.stamp
        self._is_ascii = scan.index.n_code_points == scan.n_bytes
        self._windows: OrderedDict[int, mmap.mmap] = OrderedDict()
        self._lock = threading.Lock()
        if scan.n_bytes != scan.stamp[0] or stamp_of(file) != scan.stamp:
            raise InputError(f"{name}: changed while it was being read", "run the command again")

    @property
    def n_code_points(self) -> int:
        """Length of the text."""
        return self._index.n_code_points

    def read(self, start: int, end: int) -> str:
        """The text of [start, end), clamped to the text's end. Raises InputError if the file has changed."""
        start, end = max(0, start), min(end, self.n_code_points)
        if start >= end:
            return ""
        if self._is_ascii or end - start > SHORT_READ:
            return self._bytes(self.byte_offset(start), self.byte_offset(end)).decode("utf-8")
        offset, counted = self._index.checkpoint_for_code_point(start)
        data = self._bytes(offset, min(self.n_bytes, offset + 4 * (end - counted)))
        data = data[utf8_advance(data, start - counted) :]
        return data[: utf8_advance(data, end - start)].decode("utf-8")

    def stream(self, start: int = 0, end: int | None = None) -> Iterator[str]:
        """The text of [start, end) in pieces of about a megabyte."""
        last = self.n_code_points if end is None else min(end, self.n_code_points)
        if start >= last:
            return
        position, stop = self.byte_offset(max(0, start)), self.byte_offset(last)
        while position < stop:
            data = self._bytes(position, min(position + STREAM_BYTES, stop))
            cut = len(data) if position + len(data) == stop else character_boundary(data)
            yield data[:cut].decode("utf-8")
            position += cut

    def byte_offset(self, code_point: int) -> int:
        """Where the code point starts, in bytes."""
        if self._is_ascii or code_point == 0:
            return code_point
        if code_point >= self.n_code_points:
            return self.n_bytes
        offset, counted = self._index.checkpoint_for_code_point(code_point)
        data = self._bytes(offset, min(self.n_bytes, offset + 4 * (code_point - counted)))
        return offset + utf8_advance(data, code_point - counted)

    def close(self) -> None:
        """Unmap and close."""
        with self._lock:
            while self._windows:
                self._windows.popitem()[1].close()
            self._file.close()

    def _bytes(self, start: int, end: int) -> bytes:
        """The bytes of [start, end), over as many windows as that takes."""
        with self._lock:
            if self._file.closed:
                raise ValueError(f"{self.name} is closed")
            if stamp_of(self._file) != self._stamp:
                raise InputError(f"{self.name}: changed since it was opened", "run the command again")
            parts = []
            while start < end:
                number, offset = divmod(start, WINDOW_BYTES)
                n_bytes = min(end - start, WINDOW_BYTES - offset)
                parts.append(self._window(number)[offset : offset + n_bytes])
                start += n_bytes
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _window(self, number: int) -> mmap.mmap:
        """The map of one window, the least recently used one making place for it."""
        window = self._windows.get(number)
        if window is None:
            if len(self._windows) >= OPEN_WINDOWS:
                self._windows.popitem(last=False)[1].close()
            base = number * WINDOW_BYTES
            n_bytes = min(WINDOW_BYTES, self.n_bytes - base)
            window = mmap.mmap(self._file.fileno(), n_bytes, access=mmap.ACCESS_READ, offset=base)
            self._windows[number] = window
        self._windows.move_to_end(number)
        return window


def stamp_of(file: BinaryIO) -> tuple[int, int]:
    """Size and time of the last change: what tells that a file was written to."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def character_boundary(data: bytes) -> int:
    """The last offset of `data` at which a character starts (data is valid from its beginning)."""
    cut = len(data) - 1
    while data[cut] & 0xC0 == 0x80:
        cut -= 1
    return cut
