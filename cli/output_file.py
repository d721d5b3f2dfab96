"""The file of -o: refused before the work when it cannot be written, then written whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localctx.errors import UsageError

__all__ = ["check_writable", "write_whole"]


def check_writable(path: Path) -> None:
    """Raises UsageError when write_whole() would, before minutes of work are spent on what cannot be kept."""
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a directory", "name a file with -o")
    with _write_errors(path), tempfile.NamedTemporaryFile(dir=path.parent, prefix=".localctx-"):
        pass


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises UsageError when the place cannot be written."""
    with _write_errors(path):
        part = path.with_name(path.name + ".part")
        try:
            part.write_text(text, "utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    """Turn what the file system says into one line."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror or error}", "name another file with -o"
        ) from None
