"""Files that a person names, opened to be read: never waiting for a writer, never a device.

Knows nothing of what is in them. A pipe is read only where this process was given it open, as a shell's
<(command) does.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import BinaryIO

__all__ = ["irregular_kind", "is_open_pipe", "open_given", "open_pipe"]

OPEN_DESCRIPTOR = re.compile(r"(?:/dev|/proc/(?:self|thread-self))/fd/(\d{1,9})|/dev/stdin", re.ASCII)
KINDS = (
    (stat.S_ISDIR, "directory"),
    (stat.S_ISFIFO, "named pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
)


def open_given(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, the null device or a pipe that is open already, to be read from its start.

    Raises OSError, whose strerror says it where it is something else, ValueError for a name that no file has.
    """
    if is_open_pipe(path):
        return open_pipe(path)
    _check(os.stat(path), path)  # noqa: PTH116  # any name; a device is not even opened
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    try:
        _check(os.fstat(descriptor), path)  # the name may have been given to something else meanwhile
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def irregular_kind(mode: int) -> str | None:
    """What it is, in words, that has this mode; None for a regular file."""
    if stat.S_ISREG(mode):
        return None
    return next((label for test, label in KINDS if test(mode)), "special file")


def is_open_pipe(path: str | bytes | os.PathLike[str]) -> bool:
    """Whether the path names a pipe that this process was given open, as a shell's <(command) does."""
    descriptor = _open_descriptor(path)
    if descriptor is None:
        return False
    try:
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def open_pipe(path: str | bytes | os.PathLike[str]) -> BinaryIO:
    """The open pipe that the path names (see is_open_pipe). Raises OSError."""
    descriptor = os.dup(_open_descriptor(path) or 0)
    os.set_blocking(descriptor, True)  # else a slow writer would look like the end
    return os.fdopen(descriptor, "rb")


def _open_descriptor(path: str | bytes | os.PathLike[str]) -> int | None:
    """The number of the open file that a path like /dev/fd/63 names."""
    found = OPEN_DESCRIPTOR.fullmatch(os.fsdecode(path))
    return None if found is None else int(found[1] or 0)


def _check(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    """Raises OSError unless it can be read to an end."""
    kind = irregular_kind(status.st_mode)
    if kind is None or (kind == "device" and os.path.samestat(status, os.stat(os.devnull))):  # noqa: PTH116
        return
    if kind == "directory":
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(errno.EINVAL, f"it is a {kind}, not a file", os.fspath(path))
