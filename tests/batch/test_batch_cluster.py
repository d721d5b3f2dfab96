"""The same batch on a Ray cluster of this machine: two actors, one of them killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from batch.killed import Batch

from localctx.batch.cluster import home_of

HOSTS = ["one", "two", "three"]


def test_a_home_stays_when_hosts_come_and_go() -> None:
    places = [str(n) for n in range(300)]
    homes = {place: home_of(place, HOSTS) for place in places}
    assert {home: 60 < list(homes.values()).count(home) < 140 for home in HOSTS} == dict.fromkeys(HOSTS, True)
    for place in places:
        if homes[place] != "two":
            assert home_of(place, ["one", "three"]) == homes[place]


def actors_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The actors' processes, whose title Ray sets."""
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if any("Actor" in word for word in child.cmdline())]


@pytest.mark.slow
def test_two_actors_of_which_one_is_killed_give_the_same_result(tmp_path: Path) -> None:
    (tmp_path / "ray").mkdir()
    (tmp_path / "alone").mkdir()
    batch = Batch(tmp_path / "ray", 40, 4, ("--engine", "ray", "--workers", "2"))
    alone = Batch(tmp_path / "alone", 40, 4)
    for one in (batch, alone):
        one.write(random.Random(1))
    batch.hold_at(12)
    process = batch.start()
    assert batch.wait_for(8, process) or batch.finish(process) == ""  # the bad rows are four
    victims = actors_of(process)
    assert victims
    victims[0].kill()
    batch.hold_at(None)
    errors = batch.finish(process)
    assert process.returncode == 4, errors
    alone.finish(alone.start())
    assert batch.check() == alone.check() == {"localctx.answer/1": 36, "localctx.error/1": 4}

    def answers(one: Batch) -> dict[object, object]:
        rows = map(json.loads, one.out.read_text().splitlines())
        return {row["key"]: row.get("answer") for row in rows}

    assert answers(batch) == answers(alone)
    assert psutil.wait_procs(victims, 60)[1] == []


@pytest.mark.slow
def test_sigterm_ends_the_cluster_too_and_the_same_command_goes_on(tmp_path: Path) -> None:
    batch = Batch(tmp_path, 20, 4, ("--engine", "ray", "--workers", "2"))
    batch.write(random.Random(1))
    batch.hold_at(8)
    process = batch.start()
    assert batch.wait_for(6, process)
    children = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    batch.hold_at(None)
    errors = batch.finish(process)
    assert process.returncode == 143, errors
    assert "jobs are done (the same command goes on)" in errors.splitlines()[-1]
    assert psutil.wait_procs(children, 60)[1] == []
    batch.kept.append(batch.out.read_bytes())
    assert batch.n_lines() < 20
    again = Batch(tmp_path, 20, 4)
    again.finish(again.start())
    assert batch.check() == {"localctx.answer/1": 18, "localctx.error/1": 2}


@pytest.mark.slow
def test_sigterm_while_the_cluster_starts(tmp_path: Path) -> None:
    batch = Batch(tmp_path, 20, 4, ("--engine", "ray", "--workers", "2"))
    batch.write(random.Random(1))
    process = batch.start()
    started = psutil.Process(process.pid)
    until = time.monotonic() + 60
    while not (children := started.children(recursive=True)):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    process.terminate()
    errors = batch.finish(process)
    assert process.returncode == 143, errors
    assert "interrupted" in errors
    assert psutil.wait_procs(children, 60)[1] == []


@pytest.mark.slow
def test_a_question_of_many_documents_is_ranked_by_all_actors(tmp_path: Path) -> None:
    batch = Batch(tmp_path, 1, 10, ("--engine", "ray", "--workers", "2"))
    batch.write(random.Random(1))
    names = [f"{n}.txt" for n in range(10)]
    with (tmp_path / "7.txt").open("a") as file:
        file.write(" The lighthouse of Skagen was painted violet by a deaf carpenter.")
    rows = [("a", names), ("b", names[:2]), ("c", [*names[:9], "lost.txt"])]
    jobs = [
        {"id": name, "documents": found, "question": "Who painted the lighthouse?"} for name, found in rows
    ]
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))
    process = batch.start()
    errors = batch.finish(process)
    assert process.returncode == 4, errors
    found = {row["id"]: row for row in map(json.loads, batch.out.read_text().splitlines())}
    assert "lost.txt: no such file" in found["c"]["error"]["message"]
    coverage = found["a"]["coverage"]
    assert coverage["tokens_total"] == coverage["tokens_read"] + coverage["tokens_dropped"]
    assert coverage["tokens_total"] > 4 * found["b"]["coverage"]["tokens_total"]
    assert coverage["tokens_dropped"] > 0


def test_without_ray_one_line_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['ray'] = None; from localctx.cli.main import run; run(sys.argv[1:])"
    words = ["batch", "jobs.jsonl", "-o", "out.jsonl", "--engine", "ray"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr == (
        "localctx: --engine ray needs Ray, which is not installed (pip install 'localctx[ray]')\n"
    )
