"""The file of -o: refused before the work when it cannot be written, then written whole or not at all.

Pipes and devices are written as they are; a link keeps pointing where it did and its file is replaced.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from localctx.errors import LocalctxError, UsageError
from localctx.names import display_name
from localctx.small_text import reason_of

from .terminal import DISK_FULL, write_as_is

__all__ = ["check_not_input", "check_writable", "write_pieces", "write_whole"]


def check_writable(path: Path, inputs: Sequence[str] = ()) -> None:
    """Raises UsageError when write_whole() would, before minutes of work are spent on what cannot be kept,
    and for a file that is one of the inputs.
    """
    check_not_input(path, inputs)
    with _write_errors(path):
        if path.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        if _is_special(path):
            if not os.access(path, os.W_OK):
                raise PermissionError(None, "permission denied")
            return
        with tempfile.NamedTemporaryFile(dir=path.resolve().parent, prefix=".localctx-"):
            pass


def check_not_input(path: Path, inputs: Sequence[str]) -> None:
    """Raises UsageError for a file that is one of the inputs."""
    if not os.path.isfile(path):  # noqa: PTH113  # names that are too long as well
        return
    for source in inputs:
        if "\0" not in source and os.path.isfile(source) and os.path.samefile(source, path):  # noqa: PTH113, PTH121  # any name
            raise UsageError(
                f"-o {display_name(path)} is one of the inputs", "name another file: it would be overwritten"
            )


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all; what is no regular file is opened and written.

    Raises UsageError when the place cannot be written, LocalctxError when it has no room.
    """
    write_pieces(path, (text,))


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """The same from pieces, which need not be in memory together."""
    if _is_standard_output(path):
        for piece in pieces:
            write_as_is(piece)
        return
    with _write_errors(path):
        if _is_special(path):
            with path.open("w", encoding="utf-8") as file:
                file.writelines(pieces)
        else:
            _replace(path.resolve(), pieces)


def _replace(target: Path, pieces: Iterable[str]) -> None:
    """Give a finished temporary file of the same folder the target's name and permissions."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".localctx-")
    part = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(pieces)
        part.chmod(_mode_for(target))
        part.replace(target)
    except BaseException:
        part.unlink()
        raise


def _mode_for(target: Path) -> int:
    """The permissions of the file that is replaced, else those that a new file gets."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0o077)  # the mask can only be read by setting it
        os.umask(mask)
        return 0o666 & ~mask


def _is_special(path: Path) -> bool:
    """Whether something is there that is no regular file: a pipe, a device."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


def _is_standard_output(path: Path) -> bool:
    """Whether the path names what standard output already leads to (/dev/stdout into a file)."""
    try:
        return os.path.samestat(path.stat(), os.fstat(1))
    except OSError:  # one of them is not there
        return False


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    """Turn what the file system says into one line."""
    try:
        yield
    except OSError as error:
        told = f"cannot write {display_name(path)}: {reason_of(error)}"
        if error.errno in DISK_FULL:
            raise LocalctxError(told, "free some space, or name another file with -o") from None
        raise UsageError(told, "name another file with -o") from None
