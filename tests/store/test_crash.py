"""Killed at any instant: the store is whole, what was committed is there, the next run goes on from it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from store import crashing

from localctx.store import KVStore

N_RUNS = 30
KINDS = ("write", "fsync", "rename", "fsync-folder", "before-commit", "after-commit")


def start(root: Path, *kill: str) -> subprocess.Popen[str]:
    """Begin prefilling."""
    words = [sys.executable, crashing.__file__, str(root), str(N_RUNS), *kill]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check(root: Path, n_before: int) -> int:
    """Open as the next run would; the number of runs that stand, all of them whole."""
    ids = crashing.ids_of(N_RUNS)
    with KVStore.open(root) as store:
        report = store.verify()
        assert report.problems == ()
        n_leading = store.n_leading(ids)
        assert n_leading == report.n_runs >= n_before  # without a gap, and nothing was lost
        with store.reading(ids) as runs:
            assert [bytes(runs[run_id]) for run_id in ids[:n_leading]] == list(
                map(crashing.data_of, range(n_leading))
            )
        kept = {path.name for path in store.folder.segments.iterdir() if path.suffix == ".seg"}
        assert kept == {f"{name}.seg" for name, _, _ in store.catalogue.segments()}
        for document in store.documents():
            assert (document.n_runs, document.key) == (n_leading, crashing.document_of(N_RUNS).key)
    return n_leading


def finish(root: Path) -> None:
    """Let a run go to its end, and compare with one that was never interrupted."""
    process = start(root)
    out, err = process.communicate(timeout=60)
    assert out == "writing\ndone\n", err
    assert check(root, N_RUNS) == N_RUNS
    with KVStore.open(root) as store:
        for path in store.folder.segments.glob("tmp-*"):  # of killed runs: swept once they are not young
            os.utime(path, (0, 0))
        store.gc()
        assert list(store.folder.segments.glob("tmp-*")) == []
        assert store.verify().n_leftovers == 0
        assert store.documents()[0].share_stored == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_a_step_of_writing(tmp_path: Path, kind: str) -> None:
    n_stored = 0
    for number in (2, 4, 3):  # each starts where the one before was killed
        process = start(tmp_path, kind, str(number * 3 - 1 if kind == "write" else number))
        out, err = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, (out, err)
        n_stored = check(tmp_path, n_stored + 1)
    assert 3 < n_stored < N_RUNS
    finish(tmp_path)


def test_killed_while_the_store_is_being_made(tmp_path: Path) -> None:
    process = start(tmp_path, "make", "1")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert [path.name[:4] for path in (tmp_path / "kv").glob("*cat*")] == ["tmp-"]
    for number in range(3):
        process = start(tmp_path)
        time.sleep(0.02 * number)
        process.kill()
        process.communicate()
    finish(tmp_path)
    assert list((tmp_path / "kv").glob("tmp-*")) == []


def kill_at_random(root: Path, n_kills: int, seed: int) -> None:
    """Kill runs after a random time of writing, each going on where the last one stopped."""
    chance = random.Random(seed)
    n_stored = 0
    for _ in range(n_kills):
        process = start(root)
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        process.communicate()
        n_stored = check(root, n_stored)
        if n_stored == N_RUNS:
            with KVStore.open(root) as store:
                store.clear()
            n_stored = 0
    finish(root)


def test_killed_at_random(tmp_path: Path) -> None:
    kill_at_random(tmp_path, 6, seed=1)


@pytest.mark.slow
def test_killed_at_random_fifty_times(tmp_path: Path) -> None:
    kill_at_random(tmp_path, 50, seed=2)
