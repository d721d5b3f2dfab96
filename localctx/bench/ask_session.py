"""Sessions that `bench ask` asks in: a copy of a store, opened, with the context of an earlier question."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from localctx.bench.meters import read_or_none
from localctx.session.kept import Kept
from localctx.session.one_context import Held
from localctx.settings import Settings

__all__ = ["Session", "disk_bytes", "forget", "session"]


@dataclass(frozen=True, slots=True)
class Session:
    """A copy of the store, open."""

    store: Path
    held: Held


@contextmanager
def session(settings: Settings, folder: Path, warn: Callable[[str], None]) -> Iterator[Session]:
    """A session on a copy, in `folder`, of the store of the settings: what it keeps goes at the end."""
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as name:
        copy = Path(name) / "store"
        shutil.copytree(str(settings.store), copy, copy_function=_link_segments)
        with closing(Held(Kept.of_settings(replace(settings, store=str(copy)), warn))) as held:
            yield Session(copy, held)


def forget(folder: Path) -> None:
    """Have the system read the store's data from the disk the next time, where it can be told so."""
    if not hasattr(os, "posix_fadvise"):  # not on macOS
        return
    for path in folder.rglob("*.seg"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def disk_bytes() -> int | None:
    """What this process and its ended children have had read from disks, used or not; None where the system
    does not say.
    """
    counted = read_or_none(Path("/proc/self/io").read_text)
    return None if counted is None else int(counted.split("\nread_bytes: ")[1].split()[0])


def _link_segments(source: str, target: str) -> None:
    """A file for copytree(): segments, which never change, are the same files."""
    if source.endswith(".seg"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)
