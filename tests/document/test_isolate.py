"""A generator in a child process: items stream, and every way of dying has its name."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from localctx.document.isolate import ROOT, ChildFailed, FrameReader, IsolationLimits, frame, isolated
from localctx.errors import PasswordNeeded

JOBS = """
    import ctypes, os, sys, time
    from localctx.errors import PasswordNeeded

    def count(n):
        for i in range(n):
            print("noise on stdout")
            os.write(2, b"noise on stderr")
            yield {"i": i, "pid": os.getpid(), "cwd": os.getcwd()}

    def echo(value):
        yield value

    def count_slowly(n, seconds):
        for item in count(n):
            yield item
            time.sleep(seconds)

    def stall_after(n):
        yield from count(n)
        time.sleep(60)

    def crash_after(n):
        yield from count(n)
        ctypes.string_at(0)

    def fill_memory():
        yield 1
        hoard = [b"x" * (1 << 24) for _ in range(100)]
        yield len(hoard)

    def burn():
        yield 1
        while True:
            pass

    def too_much():
        yield 1
        yield "x" * (65 << 20)

    def fail(kind):
        yield 1
        raise PasswordNeeded("locked", "find the key") if kind == "user" else ValueError("no good")
"""


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module of generators that a child can import."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "isolate_jobs.py").write_text(textwrap.dedent(JOBS))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
    return "isolate_jobs"


def test_items_stream_from_another_process_past_noise(jobs: str) -> None:
    items = list(isolated(f"{jobs}:count", {"n": 500}))
    assert [item["i"] for item in items] == list(range(500))
    assert items[0]["pid"] != os.getpid()


def test_values_survive_the_pipe(jobs: str) -> None:
    value = {"text": "日本語 \udcff \x00 😀", "long": "x" * 3_000_000, "none": None}
    assert list(isolated(f"{jobs}:echo", {"value": value})) == [value]


def test_works_from_a_folder_whose_files_shadow_modules(
    jobs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert next(isolated(f"{jobs}:count", {"n": 1}))["cwd"] == str(tmp_path)


def test_a_stall_is_an_error_that_says_how_far_it_came(jobs: str) -> None:
    limits = IsolationLimits(item_seconds=0.3)
    with pytest.raises(ChildFailed, match=r"no progress in 0\.3 s") as failure:
        list(isolated(f"{jobs}:stall_after", {"n": 3}, limits))
    assert (failure.value.reason, failure.value.n_items) == ("time", 3)


def test_a_crash_names_its_signal(jobs: str) -> None:
    with pytest.raises(ChildFailed, match="SIGSEGV") as failure:
        list(isolated(f"{jobs}:crash_after", {"n": 2}))
    assert (failure.value.reason, failure.value.n_items) == ("crash", 2)


def test_memory_is_limited(jobs: str) -> None:
    with pytest.raises(ChildFailed, match="memory") as failure:
        list(isolated(f"{jobs}:fill_memory", {}, IsolationLimits(memory_bytes=600 << 20)))
    assert failure.value.reason == "memory"


def test_processor_time_is_limited(jobs: str) -> None:
    with pytest.raises(ChildFailed, match="processor time") as failure:
        list(isolated(f"{jobs}:burn", {}, IsolationLimits(cpu_seconds=1)))
    assert failure.value.reason == "cpu"


def test_errors_for_the_user_keep_their_kind_and_hint(jobs: str) -> None:
    with pytest.raises(PasswordNeeded, match="locked") as failure:
        list(isolated(f"{jobs}:fail", {"kind": "user"}))
    assert failure.value.hint == "find the key"
    with pytest.raises(ChildFailed, match="ValueError: no good"):
        list(isolated(f"{jobs}:fail", {"kind": "other"}))


def test_one_item_is_limited(jobs: str) -> None:
    items = isolated(f"{jobs}:too_much", {})
    assert next(items) == 1
    with pytest.raises(ChildFailed, match="more than 67,108,864 bytes at once") as failure:
        next(items)
    assert (failure.value.reason, failure.value.n_items) == ("memory", 1)


def test_descriptors_beyond_those_of_select_are_read() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    reading, writing = os.pipe()
    try:
        high = fcntl.fcntl(reading, fcntl.F_DUPFD_CLOEXEC, 1500)
        os.write(writing, frame({"item": 7}))
        assert FrameReader(high).next(5.0) == {"item": 7}
        with pytest.raises(TimeoutError):
            FrameReader(high).next(0.05)
        os.close(high)
    finally:
        os.close(reading)
        os.close(writing)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_closing_early_ends_the_child(jobs: str) -> None:
    items = isolated(f"{jobs}:stall_after", {"n": 1})
    pid = next(items)["pid"]
    items.close()
    assert not psutil.pid_exists(pid)


def running_parent(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that reads from a stalled child and prints the child's pid first."""
    script = tmp_path / "parent.py"
    script.write_text(
        "from localctx.document.isolate import isolated\n"
        "for item in isolated('isolate_jobs:stall_after', {'n': 1}):\n"
        "    print(item['pid'], flush=True)\n"
    )
    paths = [os.environ["PYTHONPATH"], ROOT]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as parent:
        yield parent
        parent.kill()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_the_child_goes_with_its_parent(jobs: str, tmp_path: Path, end: signal.Signals) -> None:
    for parent in running_parent(tmp_path):
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.send_signal(end)
        parent.wait(timeout=5)
        deadline = time.monotonic() + 5
        with contextlib.suppress(psutil.NoSuchProcess):
            while child.status() != psutil.STATUS_ZOMBIE:
                assert time.monotonic() < deadline, "the child is still there"
                time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_a_whole_group_is_sent_is_the_parents_business(jobs: str, number: signal.Signals) -> None:
    """A supervisor ends all of a group: the child must not seem to have crashed over the document."""
    items = isolated("isolate_jobs:count_slowly", {"n": 20, "seconds": 0.05})
    pid = next(items)["pid"]
    os.kill(pid, number)
    assert len(list(items)) == 19
