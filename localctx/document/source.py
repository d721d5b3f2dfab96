"""Path, stream or standard input → a seekable regular file that is watched for changes. Knows no format."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from localctx.document.limits import Limits
from localctx.errors import InputError, LimitExceeded, LocalctxError
from localctx.given_files import irregular_kind, open_pipe
from localctx.names import display_name
from localctx.values import Progress

__all__ = [
    "CHUNK_BYTES",
    "GZIP_MAGIC",
    "Named",
    "Source",
    "display_name",
    "inflated",
    "open_path",
    "os_errors",
    "spooled",
    "spooled_pipe",
]

CHUNK_BYTES = 1 << 20
GZIP_MAGIC = b"\x1f\x8b\x08"
DESCRIPTORS = "/proc/{}/fd"
"""Where Linux names what a process has open."""


@dataclass(slots=True)
class Source:
    """An input opened for reading. `path` is None for what exists only here; such text is never cached
    unless it came out of a named file (`is_private` False)."""

    name: str
    extension: str
    file: BinaryIO
    path: str | None
    size_bytes: int
    modified_ns: int
    is_private: bool = False

    def head(self, n_bytes: int = 1 << 16) -> bytes:
        """The first bytes."""
        self.file.seek(0)
        return self.file.read(n_bytes)

    def chunks(self, on_progress: Progress | None = None, start: int = 0) -> Iterator[bytes]:
        """The content from `start` on, in pieces; the progress counts bytes."""
        self.file.seek(start)
        done = start
        while piece := self.file.read(CHUNK_BYTES):
            yield piece
            done += len(piece)
            if on_progress is not None:
                on_progress(min(done, self.size_bytes), self.size_bytes)

    def check_unchanged(self) -> None:
        """Raises InputError when the file was written to since it was opened."""
        now = os.fstat(self.file.fileno())
        if (now.st_size, now.st_mtime_ns) != (self.size_bytes, self.modified_ns):
            raise InputError(f"{self.name}: changed while it was being read", "run the command again")

    def check_same(self, path: str) -> None:
        """Raises InputError when the path no longer leads to the file that is open."""
        with os_errors(self.name):
            now, here = os.stat(path), os.fstat(self.file.fileno())  # noqa: PTH116 - the path as it is
        if (now.st_dev, now.st_ino) != (here.st_dev, here.st_ino):
            raise InputError(f"{self.name}: changed while it was being read", "run the command again")
        self.check_unchanged()

    @contextlib.contextmanager
    def named_path(self) -> Iterator[str]:
        """A path under which a child process can open what is open here, whatever has the name by then.

        Raises InputError at the end where that cannot be had and the name was given to another file.
        """
        descriptor = f"{DESCRIPTORS.format(os.getpid())}/{self.file.fileno()}"
        if Path(descriptor).exists():  # Linux: also of an unlinked file
            yield descriptor
            return
        if self.path is not None:
            yield self.path
            self.check_same(self.path)
            return
        with tempfile.NamedTemporaryFile() as copy:
            self.file.seek(0)
            shutil.copyfileobj(self.file, copy, CHUNK_BYTES)
            copy.flush()
            yield copy.name

    def close(self) -> None:
        """Close the file; a temporary one is gone then."""
        self.file.close()


@contextlib.contextmanager
def os_errors(name: str) -> Iterator[None]:
    """Turns an OSError into one line about `name`."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{name}: no such file", "check the spelling and the current folder") from None
    except PermissionError:
        raise InputError(f"{name}: no permission to read it") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise LocalctxError(
                f"{name}: no room for its text in {display_name(tempfile.gettempdir())}",
                "free some space, or set TMPDIR to a larger disk",
            ) from None
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"{name}: cannot be read ({reason})") from None


@dataclass(frozen=True, slots=True)
class Named(os.PathLike[str]):
    """A file that is called otherwise than its path, wherever it is shown."""

    path: str
    name: str

    def __fspath__(self) -> str:
        return self.path


def open_path(path: str | bytes | os.PathLike[str]) -> Source:
    """Open a regular file. Raises InputError for anything else, which is not even opened."""
    access, name = os.fsdecode(path), display_name(path.name if isinstance(path, Named) else path)
    if not access:
        raise InputError("a file's name is empty", "name a file, or - for standard input")
    if "\0" in access:
        raise InputError(f"{name}: no such file", "a path cannot hold a NUL")
    with os_errors(name):
        refuse_irregular(os.stat(access).st_mode, name)  # noqa: PTH116 - keeps "./x" and "x/" as they are
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
        descriptor = os.open(access, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        file = os.fdopen(descriptor, "rb")
    with closed_on_error(file), os_errors(name):
        status = os.fstat(descriptor)
        refuse_irregular(status.st_mode, name)  # the name may have been given to something else meanwhile
        if status.st_size == 0 and os.pread(descriptor, 1, 0):
            raise InputError(
                f"{name}: the system makes its content up as it is read",
                "pipe its content in and name the input -",
            )
    return Source(name, extension_of(access), file, access, status.st_size, status.st_mtime_ns)


def refuse_irregular(mode: int, name: str) -> None:
    """Raises InputError unless `mode` is a regular file's."""
    kind = irregular_kind(mode)
    if kind is None:
        return
    if kind == "directory":
        raise InputError(f"{name}: is a directory", "name a file in it; ask and summarize take whole folders")
    raise InputError(f"{name}: is a {kind}, not a file", "pipe its content in and name the input -")


def extension_of(path: str) -> str:
    """The lower-case extension without its dot; the inner one of `.gz`."""
    base = Path(path).name.lower()
    base = base.removesuffix(".gz")
    return base.rpartition(".")[2] if "." in base.lstrip(".") else ""


def spooled_pipe(path: str | bytes | os.PathLike[str], limits: Limits) -> Source:
    """The content of an open pipe (see is_open_pipe), read to its end."""
    name = display_name(path)
    with os_errors(name), open_pipe(path) as pipe:
        return spooled(pipe, name, limits)


def spooled(stream: BinaryIO, name: str, limits: Limits) -> Source:
    """Copy a stream into an unlinked temporary file, whose text will never be cached."""
    file = temporary_file()
    n_bytes = 0
    extension, name = extension_of(name) if name != "-" else "", display_name(name)
    with closed_on_error(file), os_errors(name):
        while piece := stream.read(CHUNK_BYTES):
            n_bytes += len(piece)
            if n_bytes > limits.stream_bytes:
                raise LimitExceeded(f"{name}: longer than {limits.stream_bytes:,} bytes")
            file.write(piece)
        return _temporary(file, name, extension, is_private=True)


def inflated(packed: Source, limits: Limits) -> Source:
    """The content of a gzip file in an unlinked temporary file. Raises InputError, LimitExceeded."""
    file = temporary_file()
    n_bytes = 0
    with closed_on_error(file), os_errors(packed.name):
        try:
            for piece in gunzip(packed):
                n_bytes += len(piece)
                over_ratio = n_bytes > limits.ratio_free_bytes + limits.gzip_ratio * packed.size_bytes
                if over_ratio or n_bytes > limits.gzip_bytes:
                    raise LimitExceeded(
                        f"{packed.name}: unpacks to more than {n_bytes - 1:,} bytes from "
                        f"{packed.size_bytes:,}; stopped",
                        "unpack it yourself if you trust it",
                    )
                file.write(piece)
        except zlib.error as error:
            raise InputError(f"{packed.name}: damaged gzip data ({error})") from None
        return _temporary(file, packed.name, packed.extension, packed.is_private)


def gunzip(packed: Source) -> Iterator[bytes]:
    """Inflated pieces of bounded size, over all members; zero padding after the last is allowed."""
    member = zlib.decompressobj(wbits=31)
    for piece in packed.chunks():
        data = piece
        while data:
            if member.eof:
                data = data.lstrip(b"\0")
                if not data:
                    break
                member = zlib.decompressobj(wbits=31)
            yield member.decompress(data, CHUNK_BYTES)
            data = member.unused_data if member.eof else member.unconsumed_tail
    yield member.flush()
    if not member.eof:
        raise InputError(f"{packed.name}: the gzip data is cut short", "fetch the file again")


def temporary_file() -> BinaryIO:
    """An unlinked file in TMPDIR."""
    return tempfile.TemporaryFile()


@contextlib.contextmanager
def closed_on_error(file: BinaryIO) -> Iterator[None]:
    """Closes `file` when the block raises."""
    try:
        yield
    except BaseException:
        file.close()
        raise


def _temporary(file: BinaryIO, name: str, extension: str, is_private: bool) -> Source:
    """A source over a filled temporary file."""
    file.flush()
    status = os.fstat(file.fileno())
    return Source(name, extension, file, None, status.st_size, status.st_mtime_ns, is_private)
