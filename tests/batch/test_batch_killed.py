"""Batches stopped by force: nothing is lost, nothing is done twice, the counts add up."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import psutil
import pytest
from batch.killed import Batch, run_killed


def made(folder: Path, n_jobs: int, n_documents: int, *words: str) -> Batch:
    batch = Batch(folder, n_jobs, n_documents, words)
    batch.write(random.Random(1))
    return batch


@pytest.mark.slow
def test_killed_again_and_again(tmp_path: Path) -> None:
    batch = made(tmp_path, 30, 3)
    assert run_killed(batch, 3, random.Random(2)) == 3
    assert batch.check() == {"localctx.answer/1": 27, "localctx.error/1": 3}


@pytest.mark.proof
@pytest.mark.parametrize("words", [(), ("--workers", "2")])
def test_two_hundred_jobs_killed_ten_times(tmp_path: Path, words: tuple[str, ...]) -> None:
    batch = made(tmp_path, 200, 20, *words)
    assert run_killed(batch, 10, random.Random(3)) == 10
    assert batch.check() == {"localctx.answer/1": 180, "localctx.error/1": 20}


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    batch = made(tmp_path, 30, 3, "--workers", "2")
    batch.hold_at(12)
    process = batch.start()
    assert batch.wait_for(8, process)
    victims = psutil.Process(process.pid).children()
    assert len(victims) == 2
    victims[0].kill()
    batch.hold_at(None)
    errors = batch.finish(process)
    assert process.returncode == 4, errors
    assert batch.check() == {"localctx.answer/1": 27, "localctx.error/1": 3}
    assert psutil.wait_procs(victims, 60)[1] == []


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--workers", "2")])
@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_it_and_the_same_command_goes_on(
    tmp_path: Path, words: tuple[str, ...], how: signal.Signals, code: int
) -> None:
    batch = made(tmp_path, 40, 4, *words)
    batch.hold_at(20)
    process = batch.start()
    assert batch.wait_for(9, process)
    children = psutil.Process(process.pid).children()
    process.send_signal(how)
    batch.hold_at(None)
    errors = batch.finish(process)
    assert process.returncode == code, errors
    assert "jobs are done (the same command goes on)" in errors.splitlines()[-1]
    assert psutil.wait_procs(children, 60)[1] == []
    batch.kept.append(batch.out.read_bytes())
    assert 9 <= batch.n_lines() < 40
    assert run_killed(batch, 0, random.Random(4)) == 0
    assert batch.check() == {"localctx.answer/1": 36, "localctx.error/1": 4}
