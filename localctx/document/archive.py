"""Zip container → its members, under caps on count, inflated bytes and ratio. Nothing is written to disk."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from types import TracebackType

from localctx.document.limits import Limits
from localctx.document.source import Source
from localctx.errors import InputError, LimitExceeded

__all__ = ["Archive", "member_names"]

PIECE_BYTES = 1 << 18
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The others (bzip2, LZMA) inflate a whole block at a time, however little is asked for."""
ENTRY_MARK = b"PK\x01\x02"
MEAN_ENTRY_BYTES = 1024
_ENCRYPTED = 0x1
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError)


def member_names(source: Source, limits: Limits) -> frozenset[str]:
    """The names in a zip's directory. Raises InputError where there is none to read, LimitExceeded."""
    with opened_zip(source, limits) as archive:
        return frozenset(archive.namelist())


def opened_zip(source: Source, limits: Limits) -> zipfile.ZipFile:
    """The zip, its directory read. Raises InputError, and LimitExceeded before a large one takes memory."""
    source.file.seek(0)
    file = GuardedFile(source, limits.zip_members)
    try:
        archive = zipfile.ZipFile(file)
    except _BROKEN as error:
        raise damaged(source.name, error) from None
    file.is_reading_directory = False
    return archive


class GuardedFile:
    """The file as zipfile reads it, which takes the whole directory in one piece and makes objects of it."""

    def __init__(self, source: Source, max_members: int) -> None:
        self.is_reading_directory = True
        self._name, self._file, self._max_members = source.name, source.file, max_members

    def read(self, n_bytes: int = -1, /) -> bytes:
        """The next bytes. Raises LimitExceeded for a directory of too many members."""
        if not self.is_reading_directory:
            return self._file.read(n_bytes)
        cap = max(1 << 20, self._max_members * MEAN_ENTRY_BYTES)  # at least a comment at the end fits
        data = self._file.read(n_bytes if 0 <= n_bytes <= cap else cap + 1)
        if len(data) > cap or data.count(ENTRY_MARK) > self._max_members:
            raise LimitExceeded(f"{self._name}: has more than {self._max_members:,} members")
        return data

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to a place."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The place."""
        return self._file.tell()

    def seekable(self) -> bool:
        """True: sources are regular files."""
        return True


def damaged(name: str, error: object) -> InputError:
    """The error for a broken container."""
    return InputError(f"{name}: damaged archive ({error})", "fetch or save the file again")


class Archive:
    """An opened zip. Every byte read is counted against the caps, whatever the directory claims."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self.name = source.name
        self._limits = limits
        self.packed_bytes = source.size_bytes
        self.n_bytes_read = 0
        self._zip = opened_zip(source, limits)
        self._members = {info.filename: info for info in self._zip.infolist()}

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def __contains__(self, member: str) -> bool:
        return member in self._members

    def names(self) -> list[str]:
        """Member names in directory order."""
        return list(self._members)

    def chunks(self, member: str) -> Iterator[bytes]:
        """A member's content in pieces. Raises InputError (missing, damaged, encrypted), LimitExceeded."""
        info = self._members.get(member)
        if info is None:
            raise InputError(f"{self.name}: damaged document (no {member!r} in it)")
        if info.flag_bits & _ENCRYPTED:
            raise InputError(f"{self.name}: has encrypted members", "save a copy without the password")
        if info.compress_type not in METHODS:
            raise InputError(
                f"{self.name}: packed in a way that is not read (method {info.compress_type})",
                "save it again, or pack it with the usual method (deflate)",
            )
        try:
            with self._zip.open(info) as file:
                while piece := file.read(PIECE_BYTES):
                    self.count(len(piece))
                    yield piece
        except _BROKEN as error:
            raise damaged(self.name, error) from None

    def read(self, member: str) -> bytes:
        """A whole member that a parser needs in memory. Raises LimitExceeded beyond `tree_bytes`."""
        pieces, n_bytes = [], 0
        for piece in self.chunks(member):
            n_bytes += len(piece)
            if n_bytes > self._limits.tree_bytes:
                raise LimitExceeded(
                    f"{self.name}: {member!r} is larger than {self._limits.tree_bytes:,} bytes"
                )
            pieces.append(piece)
        return b"".join(pieces)

    def count(self, n_bytes: int) -> None:
        """Add bytes inflated, or text that repeats some; raises LimitExceeded beyond the caps."""
        self.n_bytes_read += n_bytes
        allowed = min(
            self._limits.zip_bytes,
            self._limits.ratio_free_bytes + self._limits.zip_ratio * self.packed_bytes,
        )
        if self.n_bytes_read > allowed:
            raise LimitExceeded(
                f"{self.name}: unpacks to more than {allowed:,} bytes from {self.packed_bytes:,}; stopped",
                "it may be made to exhaust memory; unpack it yourself if you trust it",
            )
