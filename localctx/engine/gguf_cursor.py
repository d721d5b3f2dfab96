"""Reads forward through the header of a file, never past its end. Knows no keys, no tensors.

Every length is compared with the bytes that are left, and with a cap, before anything is read or allocated.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import IO

from localctx.errors import ModelError
from localctx.names import display_name

__all__ = ["Cursor"]

_MAX_HEADER_BYTES = 1 << 29
_WINDOW_BYTES = 1 << 20


class Cursor:
    """Reads forward through a file in windows; never past its end, never more than asked for and allowed."""

    def __init__(self, file: IO[bytes], path: Path, offset: int) -> None:
        self.path = path
        self.where = display_name(path)
        self.size_bytes = os.fstat(file.fileno()).st_size
        self._file = file
        self._start = offset  # file offset of the window
        self._window = b""
        self._at = 0

    @property
    def offset(self) -> int:
        return self._start + self._at

    @property
    def n_left(self) -> int:
        return self.size_bytes - self.offset

    def fail(self, what: str) -> ModelError:
        return ModelError(
            f"{self.where}: damaged GGUF header: {what} (byte {self.offset:,})", "download it again"
        )

    def need(self, n_bytes: int, what: str) -> None:
        """Raises ModelError unless n_bytes are left."""
        if n_bytes > self.n_left:
            raise ModelError(
                f"{self.where}: cut short in its header, or damaged: {what} needs {n_bytes:,} bytes at byte "
                f"{self.offset:,}, the file ends at {self.size_bytes:,}",
                "download it again",
            )
        if self.offset + n_bytes > _MAX_HEADER_BYTES:
            raise self.fail(f"{what} reaches beyond {_MAX_HEADER_BYTES:,} bytes")

    def take(self, n_bytes: int, what: str) -> bytes:
        if n_bytes > len(self._window) - self._at:
            self.need(n_bytes, what)
            self._start, self._at = self.offset, 0
            self._file.seek(self._start)
            self._window = self._file.read(max(n_bytes, _WINDOW_BYTES))
            if len(self._window) < n_bytes:
                raise self.fail("the file became shorter while it was read")
        data = self._window[self._at : self._at + n_bytes]
        self._at += n_bytes
        return data

    def skip(self, n_bytes: int, what: str) -> None:
        self.need(n_bytes, what)
        self._at += n_bytes
        if self._at > len(self._window):
            self._start, self._window, self._at = self.offset, b"", 0

    def skip_strings(self, count: int, what: str) -> None:
        """Step over `count` length-prefixed strings: a vocabulary has 2^18, so the loop is a tight one."""
        length = struct.Struct("<Q").unpack_from
        while count:
            window, at, last = self._window, self._at, len(self._window) - 8
            while count and at <= last:
                (n_bytes,) = length(window, at)
                after = at + 8 + n_bytes
                if after > last + 8:
                    break
                at, count = after, count - 1
            self._at = at
            if count:  # this string reaches beyond the window
                self.skip(self.u64(what), what)
                count -= 1

    def u32(self, what: str) -> int:
        return int.from_bytes(self.take(4, what), "little")

    def u64(self, what: str) -> int:
        return int.from_bytes(self.take(8, what), "little")

    def text(self, max_bytes: int, what: str) -> str:
        n_bytes = self.u64(what)
        self.need(n_bytes, what)
        if n_bytes > max_bytes:
            raise self.fail(f"{what} of {n_bytes:,} bytes")
        return self.take(n_bytes, what).decode("utf-8", "replace")
