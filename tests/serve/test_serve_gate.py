"""Limits that hold before a body is read, raw bodies that clients never send, and clients that go away."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from serve.serving import ALICE, Serving, served

from localctx.engine.echo import EchoModel
from localctx.serve.gate import Limits
from localctx.serve.keys import KeyRing
from localctx.serve.service import ServeOptions
from localctx.settings import Settings

AUTHORIZED = {"Authorization": f"Bearer {ALICE}", "Content-Type": "application/json"}
CHAT = "/v1/chat/completions"


@contextmanager
def endless_server(folder: Path, answer_s: float) -> Iterator[Serving]:
    """A model that never stops of itself, one at a time, without keys, with narrow limits."""
    model = EchoModel(lambda text: "word " * 100_000, n_ctx_train=400_000)
    limits = Limits(max_body_bytes=2000, max_upload_bytes=3000, body_s=1, answer_s=answer_s)
    options = ServeOptions(n_parallel=1, max_queue=1, limits=limits)
    settings = Settings(store=str(folder), embedder="off", ctx=400_000, max_tokens=390_000)
    with served(model, settings, KeyRing(), options) as serving:
        yield serving


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Its answers may take a minute."""
    with endless_server(tmp_path_factory.mktemp("store"), 60) as serving:
        yield serving


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Its answers may take a second."""
    with endless_server(tmp_path_factory.mktemp("store"), 1) as serving:
        yield serving


def body(**more: object) -> str:
    return json.dumps({"model": "echo", "messages": [{"role": "user", "content": "go"}], **more})


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until, "it never came about"
        time.sleep(0.01)


def wait_until_idle(serving: Serving) -> None:
    worker = serving.service.worker
    wait_until(lambda: not worker.n_running and not worker.n_waiting)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_long_is_refused(endless: Serving, chunked: bool) -> None:
    text = body(user="x" * 3000).encode()
    content = (text[at : at + 500] for at in range(0, len(text), 500)) if chunked else text
    headers = {"Content-Type": "application/json"}
    reply = httpx2.post(f"{endless.url}{CHAT}", content=content, headers=headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "body_too_large")
    file = {"file": ("x.txt", b"y" * 4000)}
    assert httpx2.post(f"{endless.url}/v1/files", files=file).status_code == 413


def test_a_body_that_does_not_arrive_is_given_up(endless: Serving) -> None:
    address = urlsplit(endless.url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as slow:
        slow.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n".encode())
        slow.sendall(b"Content-Type: application/json\r\n\r\n{")
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")


def test_a_client_that_goes_away_ends_its_answer(endless: Serving) -> None:
    for stream in (True, False):
        headers = {"Content-Type": "application/json"}
        with httpx2.Client(timeout=0.5) as client, pytest.raises(httpx2.TimeoutException):
            if stream:
                with client.stream(
                    "POST", f"{endless.url}{CHAT}", content=body(stream=True), headers=headers
                ) as reply:
                    next(reply.iter_lines())
                    raise httpx2.ReadTimeout("enough")
            client.post(f"{endless.url}{CHAT}", content=body(), headers=headers)
        wait_until_idle(endless)


def test_an_answer_that_takes_too_long_ends(hasty: Serving) -> None:
    headers = {"Content-Type": "application/json"}
    reply = httpx2.post(f"{hasty.url}{CHAT}", content=body(), headers=headers, timeout=30)
    assert (reply.status_code, reply.json()["error"]["code"]) == (504, "timeout")
    wait_until_idle(hasty)
    text = httpx2.post(f"{hasty.url}{CHAT}", content=body(stream=True), headers=headers, timeout=30).text
    assert json.loads(text.rstrip().splitlines()[-1].removeprefix("data: "))["error"]["code"] == "timeout"
    wait_until_idle(hasty)


def test_a_full_line_is_told_at_once(endless: Serving) -> None:
    request = {"content": body(stream=True), "headers": {"Content-Type": "application/json"}}
    with httpx2.stream("POST", f"{endless.url}{CHAT}", timeout=30, **request) as first:
        lines = first.iter_lines()  # kept: letting go of it would close the connection
        next(lines)
        waiting = waiting_client(endless)
        wait_until(lambda: endless.service.worker.n_waiting == 1)
        refused = httpx2.post(f"{endless.url}{CHAT}", **request)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
        assert int(refused.headers["Retry-After"]) >= 1
        waiting.close()
    wait_until_idle(endless)


def waiting_client(serving: Serving) -> socket.socket:
    """A client that has asked and reads nothing."""
    address, content = urlsplit(serving.url), body(stream=True).encode()
    client = socket.create_connection((address.hostname, address.port), timeout=20)
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
    client.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + content)
    return client


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example"])
def test_without_keys_another_hosts_name_is_refused(tmp_path: Path, host: str) -> None:
    model = EchoModel()
    settings = Settings(store=str(tmp_path), embedder="off")
    hosts = frozenset({"localhost", "127.0.0.1"})
    with served(model, settings, KeyRing(), hosts=hosts) as serving:
        assert httpx2.get(f"{serving.url}/v1/models").status_code == 200
        reply = httpx2.get(f"{serving.url}/v1/models", headers={"Host": host})
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "wrong_host")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "missing_required_parameter"),
        (b"{", "invalid_json"),
        (b"[]", "invalid_value"),
        (b"\xff\xfe", None),
        (b'{"a":' * 50_000, None),
        (b'{"model": "tiny", "messages": [{"role": "user", "content": "\\ud800"}]}', "invalid_value"),
        (b'{"model": "\\udfff", "messages": [{"role": "user", "content": "x"}]}', "invalid_value"),
        (b'{"model": "tiny", "messages": [{"role": "user", "content": "x"}], "temperature": NaN}', None),
        (b'{"model": "tiny", "messages": [{"role": "user", "content": "x"}], "seed": 1e999}', None),
        (b'{"model": "tiny", "messages": [{"role": "user", "content": "x"}], "\\ud800": 1}', None),
        (
            b'{"model": "tiny", "messages": [{"role": "user", "content": "x"}], "seed": '
            + b"9" * 5000
            + b"}",
            None,
        ),
    ],
)
def test_a_body_that_no_client_sends_is_refused_in_words(
    server: Serving, content: bytes, code: str | None
) -> None:
    reply = httpx2.post(f"{server.url}{CHAT}", content=content, headers=AUTHORIZED)
    assert reply.status_code == 400, reply.text
    error = reply.json()["error"]
    assert error["message"]
    assert code in (None, error["code"])


def test_what_is_not_there_is_told_in_the_same_shape(server: Serving) -> None:
    assert httpx2.get(f"{server.url}/v1/nothing", headers=AUTHORIZED).json()["error"]["code"] == "unknown_url"
    reply = httpx2.get(f"{server.url}{CHAT}", headers=AUTHORIZED)
    assert (reply.status_code, reply.json()["error"]["code"]) == (405, "method_not_allowed")
