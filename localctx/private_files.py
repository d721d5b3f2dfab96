"""Files that are this user's alone: whose a folder is, opening without following links, renames brought to
disk.

Shared by what keeps things between runs. Knows neither documents nor KV.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

from localctx.names import display_name

__all__ = [
    "NotPrivate",
    "check_private",
    "default_root",
    "folder_items",
    "make_private",
    "open_regular",
    "read_regular",
    "sync_folder",
]

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class NotPrivate(Exception):
    """A folder that someone else owns or may write to; the reason is the message."""


def default_root() -> Path:
    """The platform's own folder for what localctx keeps between runs."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("localctx", appauthor=False))


def make_private(folder: Path) -> None:
    """Make a folder (0700) where there is none, and check it. Raises OSError, NotPrivate."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    check_private(folder)


def check_private(folder: Path, owners: tuple[int, ...] = ()) -> None:
    """Raises NotPrivate unless it is a folder, no link, that this user (or one of `owners`) owns and others
    cannot write to, in a folder where others cannot replace it; OSError where there is none.
    """
    above, status = folder.parent.stat(), folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (os.geteuid(), *owners):
        raise NotPrivate(f"{display_name(folder)} is not a folder of this user")
    if status.st_mode & OTHERS_WRITE or (above.st_mode & OTHERS_WRITE and not above.st_mode & stat.S_ISVTX):
        raise NotPrivate(f"others may write to {display_name(folder)}; chmod go-w")


def folder_items(folder: Path) -> list[Path]:
    """What a folder holds; nothing where it is gone or no folder."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file, never through a link, never waiting. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path) -> bytes:
    """The content of a small regular file. Raises OSError."""
    with open_regular(path) as file:
        return file.read()


def sync_folder(folder: Path) -> None:
    """Bring a rename to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
