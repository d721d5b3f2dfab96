"""The file of results: read and repaired at the start, then one whole line appended at a time.

Nothing but this program's own lines is ever cut or overwritten. Knows no jobs.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from localctx.batch.plan import DoneRow
from localctx.errors import LocalctxError, UsageError
from localctx.names import display_name

__all__ = ["Results", "is_stream"]

BEGINNING = b'{"schema": "localctx.'
ERROR_SCHEMA = "localctx.error/1"
HINT_OTHER = "name another file with -o"


def is_stream(name: str) -> bool:
    """Whether results are only written: to standard output, a pipe or a device."""
    if name == "-":
        return True
    try:
        mode = Path(name).stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


class Results:
    """The lines of `path`, which this process alone writes. Close it."""

    def __init__(self, path: Path, *, is_stream: bool = False) -> None:
        """Raises UsageError for a place that cannot be written or holds something else, LocalctxError while
        another process writes it.
        """
        self.path = path
        self.rows: list[DoneRow] = []
        self.n_torn = 0
        self._is_stream = is_stream
        self._moved: dict[int, DoneRow] = {}
        with _errors(path):
            if path.is_dir():
                raise IsADirectoryError(None, "it is a directory")
            flags = os.O_WRONLY if is_stream else os.O_RDWR | os.O_CREAT
            self._descriptor = 1 if str(path) == "-" else os.open(path, flags | os.O_CLOEXEC, 0o666)
        if not is_stream:
            try:
                _lock(self._descriptor, path)
                self._read()
            except BaseException:
                self.close()
                raise

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a row at the end, at once. Raises LocalctxError when it cannot be written whole; what was
        written of it is taken back.
        """
        data = _encoded(row)
        start = 0 if self._is_stream else os.lseek(self._descriptor, 0, os.SEEK_END)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            if not self._is_stream:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._descriptor, start)
            name = "standard output" if str(self.path) == "-" else display_name(self.path)
            reason = (error.strerror or str(error)).lower()
            raise LocalctxError(
                f"cannot write {name}: {reason}", "the same command goes on from here"
            ) from None

    def read(self, row: DoneRow) -> dict[str, Any]:
        """The value of a row that was there at the start."""
        row = self._moved.get(row.start, row)
        value: dict[str, Any] = json.loads(os.pread(self._descriptor, row.end - row.start, row.start))
        return value

    def drop(self, rows: Iterable[DoneRow]) -> None:
        """Take rows out, all at once: the file is replaced by one without them. Once only."""
        unwanted = {row.start for row in rows}
        if not unwanted:
            return
        target = self.path.resolve()
        with _errors(self.path), open(self._descriptor, "rb", closefd=False) as old:  # it is open already
            descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".localctx-")
            try:
                with open(descriptor, "wb", closefd=False) as new:
                    for row in self.rows:
                        if row.start not in unwanted:
                            old.seek(row.start)
                            start = new.tell()
                            new.write(old.read(row.end - row.start))
                            self._moved[row.start] = replace(row, start=start, end=new.tell())
                os.fchmod(descriptor, stat.S_IMODE(os.fstat(self._descriptor).st_mode))
                os.fsync(descriptor)
                _lock(descriptor, self.path)  # before it has the name
                Path(name).replace(target)
            except BaseException:
                os.close(descriptor)
                Path(name).unlink(missing_ok=True)
                raise
        os.close(self._descriptor)
        self._descriptor = descriptor

    def _read(self) -> None:
        """Find the rows, and repair the end: a line that a stop tore is cut off."""
        with _errors(self.path), open(self._descriptor, "rb", closefd=False) as file:
            end = 0
            for number, line in enumerate(_lines(file), 1):
                row = _done_row(line, end)
                if row is None:
                    if line.endswith(b"\n") or not _is_torn(line):
                        name = display_name(self.path)
                        raise UsageError(f"{name} line {number} is not a line of batch", HINT_OTHER)
                    self.n_torn = len(line)
                    os.ftruncate(self._descriptor, end)
                    return
                self.rows.append(row)
                end += len(line)
                if not line.endswith(b"\n"):
                    os.pwrite(self._descriptor, b"\n", end)
                    self.rows[-1] = replace(row, end=end + 1)
                    return

    def close(self) -> None:
        """Let the file go."""
        if self._descriptor != 1:
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _lines(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    yield from file


def _encoded(row: Mapping[str, Any]) -> bytes:
    """A line; names that are no text are escaped."""
    try:
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(row).encode() + b"\n"


def _done_row(line: bytes, start: int) -> DoneRow | None:
    """What a line holds; None for one that is not this program's, or not whole."""
    if not line.startswith(BEGINNING):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    key = value.get("key")
    if not isinstance(key, str) or not isinstance(value.get("line"), int):
        return None
    model = value.get("model")
    fingerprint = model.get("fingerprint") if isinstance(model, dict) else None
    return DoneRow(key, start, start + len(line), value["schema"] == ERROR_SCHEMA, fingerprint)


def _is_torn(data: bytes) -> bool:
    """Whether bytes without a newline are the beginning of a row, or what a power failure left of one."""
    return data.startswith(BEGINNING[: len(data)]) or not data.strip(b"\0")


def _lock(descriptor: int, path: Path) -> None:
    """Keep other processes from the file. Raises LocalctxError when one has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        name = display_name(path)
        raise LocalctxError(
            f"another process writes {name}", "wait for it, or name another file with -o"
        ) from None
    except OSError:  # a file system without locks
        return


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """What the file system says, in one line."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot write {display_name(path)}: {reason}", HINT_OTHER) from None
