"""SIGTERM in the middle of commands that start others: nothing that they started or wrote is left."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

PROGRAM = [sys.executable, "-c", "from localctx.cli.entry import run; run()"]
PATIENCE_S = 180
SIGNALS = """
import signal, time
from localctx.end_signals import check_end_signals, exit_code, watch_end_signals

signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
watch_end_signals()
check_end_signals()
signal.raise_signal(signal.SIGHUP)
seen = []

def send(seconds):
    time.sleep(seconds)
    try:
        signal.raise_signal(signal.SIGTERM)
        seen.append("nothing")
    except KeyboardInterrupt:
        seen.append("interrupted")

for seconds in (0, 0, 1.1):
    send(seconds)
try:
    check_end_signals()
except KeyboardInterrupt:
    seen.append("asked")
print(*seen, exit_code(0), exit_code(130), exit_code(3))
"""


def test_two_at_once_are_one_a_later_one_interrupts_again_and_nohup_is_respected() -> None:
    done = subprocess.run([sys.executable, "-c", SIGNALS], capture_output=True, text=True, check=True)
    assert done.stdout == "interrupted nothing interrupted asked 0 143 143\n"


def ended(process: subprocess.Popen[str]) -> str:
    """End it by SIGTERM when its children are up; what it said. Nothing of them is left."""
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.terminate()
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 143, said
    assert said.strip().splitlines()[-1].endswith("interrupted")
    assert psutil.wait_procs(children, PATIENCE_S)[1] == []
    return said


def test_a_pip_that_fetches_a_model_ends_with_us(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as index:
        index.settimeout(PATIENCE_S)
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PIP_")},
            "LOCALCTX_MODELS_DIR": str(tmp_path / "models"),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": f"http://127.0.0.1:{index.getsockname()[1]}/simple",
        }
        process = subprocess.Popen(
            [*PROGRAM, "models", "pull", "smollm2-135m"], env=environment, stderr=subprocess.PIPE, text=True
        )
        connection, _ = index.accept()  # and never an answer
        with connection:
            ended(process)
    assert [path.name for path in (tmp_path / "models").iterdir()] == []


@pytest.mark.slow
def test_a_measurement_ends_its_server(tmp_path: Path, tiny_model_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    words = ["localctx", "bench", "load", "--model", str(tiny_model_path), "--duration", "600"]
    process = subprocess.Popen(
        [sys.executable, "-m", "localctx.eval.results", "name", "--folder", str(tmp_path), "--", *words],
        env={**os.environ, "TMPDIR": str(folder), "LOCALCTX_EMBEDDER": "off"},
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + PATIENCE_S
    while not any("serve" in child.cmdline() for child in psutil.Process(process.pid).children(True)):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    assert list(folder.iterdir())
    ended(process)
    assert list(folder.iterdir()) == []
