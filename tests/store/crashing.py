"""A process that prefills one document and is killed: at a chosen call of a chosen kind, or from outside.

    python crashing.py ROOT N_RUNS [KIND NUMBER]

KIND is write, fsync, rename, fsync-folder, before-commit, after-commit, or make (the catalogue, at its
rename); the NUMBER-th such call kills the process with SIGKILL, a write after half of it is done. Prints
a line once it writes, and one when it is done.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localctx.kv import KVSpace, PrefillPolicy
from localctx.store import DocumentIdentity, KVStore, run_ids, writing

RUN_BYTES = 20_000
SPACE, POLICY = KVSpace("crash", "rope", ()), PrefillPolicy()


def ids_of(n_runs: int) -> list[bytes]:
    """The ids of the document's runs."""
    return run_ids(SPACE, POLICY, list(range(128 * n_runs)))


def data_of(ordinal: int) -> bytes:
    """What stands for an encoded run: known bytes."""
    return hashlib.shake_128(ordinal.to_bytes(4, "little")).digest(RUN_BYTES)


def document_of(n_runs: int) -> DocumentIdentity:
    """The document."""
    return DocumentIdentity(SPACE, POLICY, "0" * 32, 128 * n_runs, "crash.txt")


def kill_at(kind: str, number: int) -> None:
    """Have the process killed at that call."""
    count = 0

    def reached() -> bool:
        nonlocal count
        count += 1
        return count == number

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def killing(call: Callable[..., Any], applies: Callable[..., bool]) -> Callable[..., Any]:
        def instead(*args: Any, **named: Any) -> Any:
            if applies(*args) and reached():
                if kind == "write":
                    call(args[0], bytes(args[1])[: len(args[1]) // 2])
                die()
            return call(*args, **named)

        return instead

    def is_folder(descriptor: int) -> bool:
        return stat.S_ISDIR(os.fstat(descriptor).st_mode)

    if kind == "write":
        os.write = killing(os.write, lambda descriptor, data: len(data) == RUN_BYTES)
    elif kind == "fsync":
        os.fsync = killing(os.fsync, lambda descriptor: not is_folder(descriptor))
    elif kind == "fsync-folder":
        os.fsync = killing(os.fsync, is_folder)
    elif kind in ("rename", "make"):
        os.rename = killing(os.rename, lambda *_: True)
    else:
        _kill_at_commit(kind, reached, die)


def _kill_at_commit(kind: str, reached: Callable[[], bool], die: Callable[[], None]) -> None:
    """Kill before, or after, the transaction that enters a segment is committed."""

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            is_commit = sql == "COMMIT"
            is_it = is_commit and reached()
            if is_it and kind == "before-commit":
                die()
            cursor = super().execute(sql, *values)
            if is_it:
                die()
            return cursor

    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **named: connect(*args, factory=Connection, **named)


def main(root: str, n_runs: int, *kill: str) -> None:
    """Prefill what is missing, committing every three runs."""
    writing.FULL_BYTES = 3 * RUN_BYTES
    ids = ids_of(n_runs)
    starts_early = bool(kill) and kill[0] in ("before-commit", "after-commit", "make")
    if starts_early:
        kill_at(kill[0], int(kill[1]))
    with KVStore.open(Path(root)) as store, store.writing(document_of(n_runs), ids) as writer:
        if kill and not starts_early:
            kill_at(kill[0], int(kill[1]))
        print("writing", flush=True)
        for ordinal in range(store.n_leading(ids), n_runs):
            writer.add(ordinal, ids[ordinal], data_of(ordinal), n_tokens=128, codec="int4")
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
