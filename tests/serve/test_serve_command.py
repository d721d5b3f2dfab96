"""`localctx serve` as a process: where it listens, what it refuses, how it stops."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from serve.serving import PATIENCE_S

from localctx.errors import UsageError
from localctx.serve.running import check_address, is_loopback, listen

CODE = "from localctx.cli.entry import run; run()"


@pytest.fixture
def start(
    tiny_model_path: Path, tmp_path: Path
) -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """Start a server; the process and its URL."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> tuple[subprocess.Popen[str], str]:
        fixed = [
            "serve",
            "-m",
            str(tiny_model_path),
            "--port",
            "0",
            "--store",
            str(tmp_path),
            "--embedder",
            "off",
        ]
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, *fixed, *words], stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"serving tiny at (http://127\.0\.0\.1:\d+/v1)", line):
                return process, found[1]
        pytest.fail("it did not start")

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_signal_lets_a_running_answer_finish_and_ends_with_its_code(start: Callable[..., Any]) -> None:
    for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 129)):
        process, url = start("--max-tokens", "300", "--grace", str(PATIENCE_S))
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        messages: list[Any] = [{"role": "user", "content": "Go on."}]
        stream = client.chat.completions.create(model="tiny", messages=messages, stream=True)
        reasons = [next(iter(stream)).choices[0].finish_reason]
        process.send_signal(number)
        reasons += [chunk.choices[0].finish_reason for chunk in stream]
        assert reasons[-1] in ("stop", "length")
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == code, err
        assert "Traceback" not in err


@pytest.mark.slow
def test_an_answer_that_takes_longer_than_the_grace_is_ended(start: Callable[..., Any]) -> None:
    process, url = start("--max-tokens", "1900", "--grace", "1", "--threads", "1")
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    messages: list[Any] = [{"role": "user", "content": "Go on."}]
    streams = [
        client.chat.completions.create(model="tiny", messages=messages, stream=True, n=8, temperature=2)
        for _ in range(2)
    ]
    for stream in streams:
        next(iter(stream))
    process.send_signal(signal.SIGTERM)
    readers = [threading.Thread(target=read_to_the_end, args=(stream,)) for stream in streams]
    for reader in readers:
        reader.start()
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "Traceback" in err) == (0, False), err
    for reader in readers:
        reader.join(PATIENCE_S)
        assert not reader.is_alive()


def read_to_the_end(stream: Any) -> None:
    try:
        for _ in stream:
            pass
    except Exception as error:  # noqa: BLE001  # the connection may break, or an event say why
        assert isinstance(error, Exception)


def test_addresses_that_others_reach_need_keys() -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.9.9.9"):
        assert is_loopback(host)
        assert check_address(host, has_keys=False, force=False) is None
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(UsageError, match="lets anyone on the network"):
            check_address(host, has_keys=False, force=False)
        assert "anyone can use it" in (check_address(host, has_keys=False, force=True) or "")
        assert "nothing is encrypted" in (check_address(host, has_keys=True, force=False) or "")


def test_a_port_that_is_taken_is_one_line() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            UsageError, match=rf"cannot listen on 127\.0\.0\.1:{port}: Address already in use"
        ):
            listen("127.0.0.1", port)
    with pytest.raises(UsageError, match="cannot listen"):
        listen("127.0.0.1", 99_999)
