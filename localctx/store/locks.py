"""Advisory locks on open files. A lock ends with its process, however that ends; no lock is waited for
forever.

A file system without locks counts as "not got": what needs one is then left alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from localctx.errors import Interrupted

__all__ = ["holding", "is_free", "remove_if_free", "try_lock"]

POLL_SECONDS = 0.05
OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def try_lock(descriptor: int, *, is_exclusive: bool) -> bool:
    """Lock the open file without waiting; whether that was possible. Closing the file ends the lock."""
    kind = fcntl.LOCK_EX if is_exclusive else fcntl.LOCK_SH
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def holding(
    path: Path,
    *,
    is_cancelled: Callable[[], bool] | None = None,
    on_wait: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Hold the exclusive lock of `path` (made where there is none), waiting for whoever has it.

    on_wait is called once when there is something to wait for. Raises Interrupted as soon as is_cancelled()
    says so, OSError where the file cannot be opened.
    """
    descriptor = _open_locked(path)
    if descriptor is None and on_wait is not None:
        on_wait()
    while descriptor is None:
        if is_cancelled is not None and is_cancelled():
            raise Interrupted("interrupted")
        time.sleep(POLL_SECONDS)
        descriptor = _open_locked(path)
    try:
        yield
    finally:
        os.close(descriptor)


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock of `path` just now."""
    try:
        descriptor = os.open(path, OPEN_FLAGS & ~os.O_CREAT)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        return try_lock(descriptor, is_exclusive=True)
    finally:
        os.close(descriptor)


def remove_if_free(path: Path) -> bool:
    """Remove a lock file that nobody holds; whoever waits for it makes a new one."""
    try:
        descriptor = os.open(path, OPEN_FLAGS & ~os.O_CREAT)
    except OSError:
        return False
    try:
        if not (try_lock(descriptor, is_exclusive=True) and _is_same(descriptor, path)):
            return False
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(descriptor)


def _open_locked(path: Path) -> int | None:
    """The locked file; None while another holds it, or where it was removed before it was locked.

    On a file system without locks the file is returned unlocked: the work may then be done twice, never
    wrongly.
    """
    descriptor = os.open(path, OPEN_FLAGS, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        return descriptor
    if not _is_same(descriptor, path):
        os.close(descriptor)
        return None
    return descriptor


def _is_same(descriptor: int, path: Path) -> bool:
    """Whether the path still leads to the open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
