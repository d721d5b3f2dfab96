"""Directory → its readable files in order, and what was skipped with the reason. Opens regular files only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from localctx.document.limits import Limits
from localctx.document.sniff import sniff
from localctx.document.source import GZIP_MAGIC, open_path, os_errors
from localctx.errors import LocalctxError
from localctx.given_files import is_open_pipe
from localctx.names import display_name

__all__ = ["SkippedEntry", "walk"]

VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".bzr", "CVS", "_darcs"})
TOOL_FOLDERS = frozenset({"__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class SkippedEntry:
    """An entry that is not read, and why."""

    path: Path
    reason: str


def walk(path: str | os.PathLike[str]) -> Iterator[Path | SkippedEntry]:
    """Files under `path` whose content can be read, in order of their names; a file yields itself.

    Hidden files and folders below `path` are passed over. A pipe that is named as /dev/fd/N yields itself.
    Links to folders are not followed, so there are no loops. Raises InputError when `path` is missing.
    """
    root = Path(path)
    if is_open_pipe(root):
        yield root
        return
    with os_errors(display_name(root)):
        is_folder = stat.S_ISDIR(root.stat().st_mode)
    yield from folder_entries(root) if is_folder else iter([file_entry(root)])


def folder_entries(folder: Path) -> Iterator[Path | SkippedEntry]:
    """The entries of a folder and of those below it, depth first."""
    pending = [folder]
    while pending:
        current = pending.pop()
        entry = folder if current == folder else skipped_folder(current) or current
        if isinstance(entry, SkippedEntry):
            yield entry
        elif not is_real_folder(current) and current != folder:
            yield SkippedEntry(current, "hidden file") if is_hidden(current) else file_entry(current)
        else:
            try:
                names = sorted(os.listdir(current), key=os.fsencode)  # noqa: PTH208 - names, not paths
            except OSError as error:
                yield SkippedEntry(current, reason_of(error))
                continue
            pending.extend(current / name for name in reversed(names))


def is_real_folder(path: Path) -> bool:
    """Whether the entry itself, not what it links to, is a folder."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def is_hidden(path: Path) -> bool:
    """Whether the name asks to be passed over (settings and secrets: `.env`)."""
    return path.name.startswith(".")


def skipped_folder(path: Path) -> SkippedEntry | None:
    """Why a folder is not entered, if it is one that is not."""
    if not is_real_folder(path):
        return None
    if path.name in VERSION_CONTROL:
        return SkippedEntry(path, "folder of a version control system")
    if is_hidden(path):
        return SkippedEntry(path, "hidden folder")
    if path.name in TOOL_FOLDERS:
        return SkippedEntry(path, "folder of a tool")
    return None


def file_entry(path: Path) -> Path | SkippedEntry:
    """The path itself if its content is of a format that can be read, judged by its beginning."""
    try:
        if path.is_symlink() and path.is_dir():
            return SkippedEntry(path, "link to a folder (not followed)")
        source = open_path(path)
    except LocalctxError as error:
        return SkippedEntry(path, without_name(error.message, path))
    except OSError as error:
        return SkippedEntry(path, reason_of(error))
    try:
        if source.head(3) != GZIP_MAGIC:
            sniff(source, Limits(ocr=False))  # a folder's pictures are most often no scans: those are named
    except LocalctxError as error:
        return SkippedEntry(path, without_name(error.message, path))
    except OSError as error:
        return SkippedEntry(path, reason_of(error))
    finally:
        source.close()
    return path


def reason_of(error: OSError) -> str:
    """An operating system's error in a few words."""
    return (error.strerror or str(error)).lower()


def without_name(message: str, path: Path) -> str:
    """An error's message without the path that stands beside it anyway."""
    return message.removeprefix(f"{display_name(path)}: ")
