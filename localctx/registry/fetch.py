"""One file of a repository to disk: goes on where an earlier run stopped, checks the hash, gives the name.

What is not whole is called NAME.HASH.part beside the target; nothing else ever has the final name. Knows no
manifests and no model formats beyond what wrong content looks like.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from localctx.byte_sizes import format_bytes
from localctx.engine.lookalikes import describe
from localctx.errors import ModelError
from localctx.names import display_name
from localctx.private_files import folder_items, sync_folder
from localctx.registry import hub
from localctx.registry.hub import ConnectionLost, RemoteFile, Repository
from localctx.store.locks import holding, remove_if_free

__all__ = ["RETRY_SECONDS", "fetch", "hash_of", "part_path", "parts_of"]

RETRY_SECONDS = (1.0, 2.0, 4.0, 8.0)
"""Pauses between attempts that brought nothing."""
_PIECE_BYTES = 1 << 20
_SUFFIX = ".part"
_LOCK_SUFFIX = ".lock"
_N_HASH = 12


def part_path(target: Path, file: RemoteFile) -> Path:
    """Where the file's bytes are kept until they are whole; other content has another path."""
    return target.with_name(f"{target.name}.{(file.sha256 or '')[:_N_HASH]}{_SUFFIX}")


def parts_of(target: Path) -> list[Path]:
    """What unfinished runs left of this file, of any revision."""
    begin = f"{target.name}."
    n_name = len(begin) + _N_HASH + len(_SUFFIX)
    return [
        path
        for path in folder_items(target.parent)
        if path.name.startswith(begin) and path.name.endswith(_SUFFIX) and len(path.name) == n_name
    ]


def hash_of(path: Path) -> str:
    """The SHA-256 of a file, in hex. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(
    repository: Repository,
    file: RemoteFile,
    target: Path,
    on_bytes: Callable[[int], None] = lambda n_bytes: None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Make `target` the file that the hub names; its folder exists. on_bytes gets the bytes that are there.

    Another process at the same file is waited for. Raises ModelError when the content is not what the hub
    says (nothing of it stays), ConnectionLost when the hub stops sending (what came stays), OSError.
    """
    lock = target.with_name(f".{target.name}{_LOCK_SUFFIX}")
    try:
        with holding(lock, on_wait=lambda: say(f"another process fetches {display_name(target.name)}")):
            if _is_there(target, file):
                say(f"{display_name(file.name)} is there")
            else:
                say(f"fetching {display_name(file.name)} ({format_bytes(file.size_bytes)})")
                _bring(repository, file, target, on_bytes, say)
            on_bytes(file.size_bytes)
    finally:
        remove_if_free(lock)


def _bring(
    repository: Repository,
    file: RemoteFile,
    target: Path,
    on_bytes: Callable[[int], None],
    say: Callable[[str], None],
) -> None:
    """See fetch()."""
    part = part_path(target, file)
    for left in parts_of(target):
        if left != part:
            say(f"{display_name(left.name)} is of another version: removed")
            left.unlink()
    _fill(repository, file, part, on_bytes, say)
    part.replace(target)
    sync_folder(target.parent)


def _is_there(target: Path, file: RemoteFile) -> bool:
    """Whether the target is that file already."""
    try:
        return target.stat().st_size == file.size_bytes and hash_of(target) == file.sha256
    except FileNotFoundError:
        return False


def _fill(
    repository: Repository,
    file: RemoteFile,
    path: Path,
    on_bytes: Callable[[int], None],
    say: Callable[[str], None],
) -> None:
    """Bring the part to its full length and compare its hash; it is removed where that differs."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o644), "r+b") as out:
        part = _Part(out, file, on_bytes)
        part.take_up()
        if part.n_bytes:
            say(f"going on at {part.n_bytes / file.size_bytes:.0%} of {display_name(path.name)}")
        n_idle = 0
        while part.lacks:
            before = part.n_bytes
            lost = _receive(repository, part, say)
            n_idle = n_idle + 1 if part.n_bytes <= before else 0
            if lost is not None:
                _wait(lost, part, n_idle, say)
        out.flush()
        os.fsync(out.fileno())
        out.seek(0)
        head = out.read(4096)
    if not part.is_right:
        path.unlink()
        raise _wrong(part, head)


@dataclass(slots=True)
class _Part:
    """The bytes of a file that are here, and their hash so far."""

    out: BinaryIO
    file: RemoteFile
    on_bytes: Callable[[int], None]
    n_bytes: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    @property
    def lacks(self) -> bool:
        """Whether bytes are missing."""
        return self.n_bytes < self.file.size_bytes

    @property
    def is_right(self) -> bool:
        """Whether it is the whole file."""
        digest: str = self.digest.hexdigest()
        return self.n_bytes == self.file.size_bytes and digest == self.file.sha256

    def take_up(self) -> None:
        """Hash what an earlier run left; what is as long as the file and wrong begins anew."""
        while piece := self.out.read(_PIECE_BYTES):
            self.digest.update(piece)
            self.n_bytes += len(piece)
        if not self.lacks and not self.is_right:
            self.begin_anew()
        self.on_bytes(self.n_bytes)

    def begin_anew(self) -> None:
        """Forget what is here."""
        self.n_bytes, self.digest = 0, hashlib.sha256()
        self.out.seek(0)
        self.out.truncate()

    def add(self, piece: bytes) -> None:
        """Append."""
        self.out.write(piece)
        self.digest.update(piece)
        self.n_bytes += len(piece)
        self.on_bytes(self.n_bytes)


def _receive(repository: Repository, part: _Part, say: Callable[[str], None]) -> ConnectionLost | None:
    """Read on until the file is whole or the hub stops sending; why it stopped. Never more than one piece
    beyond the file's end.
    """
    try:
        with hub.opened(repository, part.file, part.n_bytes) as (start, pieces):
            if start != part.n_bytes:
                say("the server cannot go on where it stopped: from the beginning")
                part.begin_anew()
            for piece in pieces:
                part.add(piece)
                if not part.lacks:
                    return None
    except ConnectionLost as error:
        return error
    finally:
        part.out.flush()
    return ConnectionLost("the hub ended the file too early", "try again later") if part.lacks else None


def _wait(lost: ConnectionLost, part: _Part, n_idle: int, say: Callable[[str], None]) -> None:
    """Pause before another attempt. Raises ConnectionLost after the last one."""
    if n_idle > len(RETRY_SECONDS):
        raise ConnectionLost(
            f"{lost.message}; {part.n_bytes:,} of {part.file.size_bytes:,} bytes are here",
            f"run it again to go on; {lost.hint}",
        ) from lost
    say(f"{lost.message}: trying again")
    time.sleep(RETRY_SECONDS[max(0, n_idle - 1)])


def _wrong(part: _Part, head: bytes) -> ModelError:
    """What came instead of the file."""
    file, looks = part.file, describe(head)
    what = f"it is {looks.what}" if looks else f"its SHA-256 is not {(file.sha256 or '')[:_N_HASH]}…"
    if part.n_bytes > file.size_bytes:
        what = f"it is longer than the {file.size_bytes:,} bytes announced"
    return ModelError(
        f"{display_name(file.name)}: what came is not the file that the hub names: {what}; nothing is kept",
        "pull again: it starts over",
    )
