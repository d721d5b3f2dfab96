"""`localctx index` killed while it writes: the store is clean, the next run goes on, none of it twice."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from session.test_kept_kv import QUESTION, chapters

from localctx import _native
from localctx.engine import open_model
from localctx.session.verdicts import VERDICT_FACT
from localctx.store import KVStore, StoredRun
from localctx.store.documents import document_runs

Run = Callable[..., Any]
PROGRAM = (
    "from localctx.store import writing; writing.FULL_BYTES = 30_000\n"  # a few runs: many commits
    "from localctx.cli.entry import run; run()"
)
NAME = "long.md"
CODEC = "codec=f16"
ROUNDING = 0.03
"""Of values around 1 that f16 holds and a CPU sums in another order."""


class Indexing:
    """One text, the words of its commands, and the store of an uninterrupted run to compare with."""

    def __init__(self, folder: Path, model: Path, localctx: Run, n_chapters: int) -> None:
        self.folder, self.model, self.localctx = folder, model, localctx
        self.file = folder / NAME
        self.file.write_text(chapters(n_chapters), "utf-8")
        first = folder / "first.md"
        first.write_text(chapters(1, seed=9), "utf-8")
        self.base = folder / "base"  # the model is judged and its prefix kept: what follows is the text
        with open_model(model) as opened, KVStore.open(self.base) as store:
            store.set_model_fact(opened.info.fingerprint, VERDICT_FACT, {"stream": {"passes": True}})
        assert localctx("index", str(first), *self.words(self.base), "--strategy", "stream").code == 0
        self.whole = self.fresh("whole")
        done = self.start(self.whole)
        out, err = done.communicate(timeout=120)
        assert done.returncode == 0, err
        (row,) = json.loads(out)["documents"]
        self.tokens_total: int = row["tokens_total"]
        self.n_prefix: int = row["tokens_evaluated"] - row["tokens_total"]  # evaluated before every text
        self.runs = self.stored(self.whole)
        self.answer = self.ask(self.whole)

    def words(self, store: Path) -> list[str]:
        return ["-m", str(self.model), "--store", str(store), "-t", "1", "--kv", CODEC]

    def fresh(self, name: str) -> Path:
        """A store in which nothing of the text is kept."""
        shutil.rmtree(self.folder / name, ignore_errors=True)
        shutil.copytree(self.base, self.folder / name)
        return self.folder / name

    def start(self, store: Path) -> subprocess.Popen[str]:
        """Begin indexing in a process of its own."""
        words = [sys.executable, "-c", PROGRAM, "index", str(self.file), *self.words(store), "--json"]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def stored(self, store: Path) -> dict[bytes, StoredRun]:
        """The leading runs of the text that are kept, by id, in order."""
        with KVStore.open(store) as kv:
            document = next(d for d in kv.documents() if d.identity.name.endswith(NAME))
            ids = [run_id for _, run_id in document_runs(kv.catalogue, document.key)]
            found = kv.lookup(ids)
            assert set(found) == set(ids[: len(found)])  # without a gap
            return {run_id: found[run_id] for run_id in ids[: len(found)]}

    def ask(self, store: Path) -> str:
        result = self.localctx(
            "ask", str(self.file), "-q", QUESTION, *self.words(store)[:-2],
            "--strategy", "stream", "--kv", f"{CODEC},refresh=0", "-n", "12", "--json",
        )  # fmt: skip
        assert result.code == 0
        assert result.json["tokens"]["evaluated"] < 200
        text: str = result.json["answer"]
        return text

    def killed(self, store: Path, n_commits: int, delay_s: float) -> bool:
        """Whether indexing was killed, so long after so many commits of its own."""
        segments = store / "kv" / "segments"
        wanted = len(list(segments.glob("*.seg"))) + n_commits + 1  # the last one may not be entered yet
        process = self.start(store)
        deadline = time.monotonic() + 120
        while process.poll() is None and len(list(segments.glob("*.seg"))) < wanted:
            assert time.monotonic() < deadline
            time.sleep(0.0005)
        time.sleep(delay_s)
        process.kill()
        process.communicate()
        return process.returncode == -signal.SIGKILL


def kill_often(indexing: Indexing, chains: Iterator[int], n_kills: int, seed: int) -> list[float]:
    """Kill and go on, a chain of times a store, then finish and compare; the shares stored at each kill."""
    chance = random.Random(seed)
    shares: list[float] = []
    while len(shares) < n_kills:
        store = indexing.fresh("killed")
        before: dict[bytes, StoredRun] = {}
        for _ in range(min(next(chains), n_kills - len(shares))):
            n_left = len(indexing.runs) - len(before)
            if n_left < 5:
                break
            if not indexing.killed(store, chance.randrange(1, n_left // 2), chance.uniform(0, 0.03)):
                break  # it was done sooner
            now = check(indexing, store, before)
            assert now.keys() > before.keys()
            before = now
            shares.append(n_tokens(now) / indexing.tokens_total)
        finish(indexing, store, check(indexing, store, before))
    return shares


def n_tokens(runs: dict[bytes, StoredRun]) -> int:
    return sum(run.n_tokens for run in runs.values())


def check(indexing: Indexing, store: Path, before: dict[bytes, StoredRun]) -> dict[bytes, StoredRun]:
    """The store is clean, what was committed is where it was; the runs that stand."""
    verified = indexing.localctx("store", "verify", "--store", str(store), "--json")
    assert (verified.code, verified.json["clean"], verified.json["problems"]) == (0, True, [])
    now = indexing.stored(store)
    assert {run_id: now[run_id] for run_id in before} == before  # neither lost nor written again
    return now


def finish(indexing: Indexing, store: Path, before: dict[bytes, StoredRun]) -> None:
    """Let a run go to its end: as if it had never been interrupted."""
    process = indexing.start(store)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    (row,) = json.loads(out)["documents"]
    assert row["tokens_stored"] == row["tokens_total"] == indexing.tokens_total
    assert row["tokens_stored_before"] == n_tokens(before)
    n_evaluated = indexing.tokens_total - n_tokens(before)
    assert row["tokens_evaluated"] == (n_evaluated + indexing.n_prefix if n_evaluated else 0)
    now = check(indexing, store, before)
    assert list(now) == list(indexing.runs)
    compare(indexing, store)
    assert indexing.ask(store) == indexing.answer


def compare(indexing: Indexing, store: Path) -> None:
    """The KV is that of the uninterrupted run, but for the rounding of batches that begin elsewhere."""
    ids = list(indexing.runs)
    with (
        KVStore.open(store) as one,
        KVStore.open(indexing.whole) as other,
        one.reading(ids) as mine,
        other.reading(ids) as theirs,
    ):
        for run_id in ids:
            got, wanted = _native.Run(mine[run_id]), _native.Run(theirs[run_id])
            for layer in range(wanted.n_layer):
                for decode in (_native.Run.keys, _native.Run.values):
                    a, b = (decode(run, layer).astype("f4") for run in (got, wanted))
                    np.testing.assert_allclose(a, b, atol=ROUNDING)


def test_killed_while_it_writes(localctx: Run, tmp_path: Path, tiny_model_path: Path) -> None:
    indexing = Indexing(tmp_path, tiny_model_path, localctx, n_chapters=25)
    assert 0 < indexing.n_prefix < 64
    assert len({run.segment for run in indexing.runs.values()}) > 4
    assert len(kill_often(indexing, itertools.repeat(3), 3, seed=1)) == 3


@pytest.mark.slow
@pytest.mark.proof
def test_killed_fifty_times_while_it_writes(localctx: Run, tmp_path: Path, tiny_model_path: Path) -> None:
    indexing = Indexing(tmp_path, tiny_model_path, localctx, n_chapters=60)
    shares = kill_often(indexing, itertools.cycle((1, 3, 2)), 50, seed=2)
    print(f"stored at a kill: {sorted(round(share, 2) for share in shares)}")
    assert min(shares) < 0.3
    assert max(shares) > 0.7
