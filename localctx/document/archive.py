"""Zip container → its members, under caps on count, inflated bytes and ratio. Nothing is written to disk."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from types import TracebackType

from localctx.document.limits import Limits
from localctx.document.source import Source
from localctx.errors import InputError, LimitExceeded

__all__ = ["Archive", "member_names"]

PIECE_BYTES = 1 << 18
_ENCRYPTED = 0x1


def member_names(source: Source) -> frozenset[str]:
    """The names in a zip's directory. Raises InputError where there is none to read."""
    source.file.seek(0)
    try:
        with zipfile.ZipFile(source.file) as archive:
            return frozenset(archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise damaged(source.name, error) from None


def damaged(name: str, error: object) -> InputError:
    """The error for a broken container."""
    return InputError(f"{name}: damaged archive ({error})", "fetch or save the file again")


class Archive:
    """An opened zip. Every byte read is counted against the caps, whatever the directory claims."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self.name = source.name
        self._limits = limits
        self._packed_bytes = source.size_bytes
        self.n_bytes_read = 0
        source.file.seek(0)
        try:
            self._zip = zipfile.ZipFile(source.file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise damaged(self.name, error) from None
        self._members = {info.filename: info for info in self._zip.infolist()}
        self._check_directory()

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
        try:
            with self._zip.open(info) as file:
                while piece := file.read(PIECE_BYTES):
                    self._count(len(piece))
                    yield piece
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
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

    def _check_directory(self) -> None:
        """Refuse what the directory itself already shows to be too much."""
        if len(self._members) > self._limits.zip_members:
            raise LimitExceeded(f"{self.name}: has more than {self._limits.zip_members:,} members")

    def _count(self, n_bytes: int) -> None:
        """Add inflated bytes; raises LimitExceeded beyond the caps."""
        self.n_bytes_read += n_bytes
        allowed = min(
            self._limits.zip_bytes,
            self._limits.ratio_free_bytes + self._limits.zip_ratio * self._packed_bytes,
        )
        if self.n_bytes_read > allowed:
            raise LimitExceeded(
                f"{self.name}: unpacks to more than {allowed:,} bytes from {self._packed_bytes:,}; stopped",
                "it may be made to exhaust memory; unpack it yourself if you trust it",
            )
