"""Limits that hold before a body is read, raw bodies that clients never send, and clients that go away."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from serve.serving import ALICE, PATIENCE_S, Serving, get, post, served

from localctx.engine.echo import EchoModel
from localctx.serve.gate import Limits
from localctx.serve.keys import KeyRing
from localctx.serve.service import ServeOptions
from localctx.serve.tickets import ChatJob
from localctx.settings import Settings

AUTHORIZED = {"Authorization": f"Bearer {ALICE}", "Content-Type": "application/json"}
JSON = {"Content-Type": "application/json"}
CHAT = "/v1/chat/completions"


@contextmanager
def endless_server(
    folder: Path, answer_s: float = PATIENCE_S, body_s: float = PATIENCE_S, idle_s: float = PATIENCE_S
) -> Iterator[Serving]:
    """A model whose answers last minutes on any machine, one at a time, without keys, with narrow limits."""
    model = EchoModel(lambda text: "word " * 100_000, n_ctx_train=400_000)
    limits = Limits(
        max_body_bytes=2000,
        max_upload_bytes=3000,
        body_s=body_s,
        answer_s=answer_s,
        linger_s=PATIENCE_S,
        idle_s=idle_s,
    )
    options = ServeOptions(n_parallel=1, max_queue=1, limits=limits)
    settings = Settings(store=str(folder), embedder="off", ctx=400_000, max_tokens=390_000)
    with served(model, settings, KeyRing(), options) as serving:
        slow_down(serving.service.worker._lanes[ChatJob])
        yield serving


def slow_down(lane: Any) -> None:
    """A step takes two milliseconds at least: an answer of 200,000 steps is not over while a test looks."""
    step = lane.step

    def slow() -> object:
        time.sleep(0.002)
        return step()

    lane.step = slow


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Its answers may take longer than any test."""
    with endless_server(tmp_path_factory.mktemp("store")) as serving:
        yield serving


def body(**more: object) -> str:
    return json.dumps({"model": "echo", "messages": [{"role": "user", "content": "go"}], **more})


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, "it never came about"
        time.sleep(0.01)


def wait_until_idle(serving: Serving) -> None:
    worker = serving.service.worker
    wait_until(lambda: not worker.n_running and not worker.n_waiting)


def connect(serving: Serving) -> socket.socket:
    """A connection for bytes that no client's library would send."""
    address = urlsplit(serving.url)
    return socket.create_connection((address.hostname, address.port), timeout=PATIENCE_S)


def head(n_bytes: int) -> bytes:
    """What stands before a body that says it has so many bytes."""
    lines = [f"POST {CHAT} HTTP/1.1", "Host: localhost", f"Content-Length: {n_bytes}"]
    return "\r\n".join([*lines, "Content-Type: application/json", "", ""]).encode()


def read_to_the_end(client: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    data = b""
    while piece := client.recv(1 << 16):
        data += piece
    return data


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_long_is_refused(endless: Serving, chunked: bool) -> None:
    text = body(user="x" * 3000).encode()
    content = (text[at : at + 500] for at in range(0, len(text), 500)) if chunked else text
    reply = post(f"{endless.url}{CHAT}", content=content, headers=JSON)
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "body_too_large")
    assert reply.headers["Connection"] == "close"
    file = {"file": ("x.txt", b"y" * 4000)}
    assert post(f"{endless.url}/v1/files", files=file).status_code == 413


def test_a_refused_body_is_taken_to_its_end(endless: Serving) -> None:
    """The response is not lost on a client that still sends, and pauses; then it is over."""
    n_bytes = 5_000_000
    with connect(endless) as client:
        client.sendall(head(n_bytes) + b"x" * (n_bytes // 2))
        time.sleep(1.5 * Limits().idle_s)  # as a busy machine does
        client.sendall(b"x" * (n_bytes // 2))
        said = read_to_the_end(client)
    assert said.startswith(b"HTTP/1.1 413")
    assert b"body_too_large" in said


def test_a_refused_body_that_does_not_come_ends_with_the_response(tmp_path: Path) -> None:
    with endless_server(tmp_path, idle_s=0.1) as serving, connect(serving) as client:
        client.sendall(head(5_000_000))
        said = read_to_the_end(client)
    assert said.startswith(b"HTTP/1.1 413")
    assert b"body_too_large" in said


def test_a_body_that_does_not_arrive_is_given_up(tmp_path: Path) -> None:
    with endless_server(tmp_path, body_s=1, idle_s=0.1) as serving, connect(serving) as slow:
        slow.sendall(head(50) + b"{")
        assert read_to_the_end(slow).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_ends_its_answer(endless: Serving, stream: bool) -> None:
    with asking_client(endless, stream=stream):
        wait_until(lambda: endless.service.worker.n_running == 1)
    wait_until_idle(endless)


@pytest.mark.slow
def test_an_answer_that_takes_too_long_ends(tmp_path: Path) -> None:
    with endless_server(tmp_path, answer_s=1) as hasty:
        reply = post(f"{hasty.url}{CHAT}", content=body(), headers=JSON)
        assert (reply.status_code, reply.json()["error"]["code"]) == (504, "timeout")
        wait_until_idle(hasty)
        # Where its first piece is late as well, the status says so; else the stream's last event.
        reply = post(f"{hasty.url}{CHAT}", content=body(stream=True), headers=JSON)
        last = reply.text.rstrip().splitlines()[-1].removeprefix("data: ")
        assert json.loads(last)["error"]["code"] == "timeout"
        wait_until_idle(hasty)


def test_a_full_line_is_told_at_once(endless: Serving) -> None:
    worker = endless.service.worker
    with asking_client(endless):
        wait_until(lambda: worker.n_running == 1)
        with asking_client(endless):
            wait_until(lambda: worker.n_waiting == 1)
            refused = post(f"{endless.url}{CHAT}", content=body(stream=True), headers=JSON)
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
            assert int(refused.headers["Retry-After"]) >= 1
    wait_until_idle(endless)


def asking_client(serving: Serving, *, stream: bool = True) -> socket.socket:
    """A client that has asked and reads nothing."""
    content = body(stream=stream).encode()
    client = connect(serving)
    client.sendall(head(len(content)) + content)
    return client


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example"])
def test_without_keys_another_hosts_name_is_refused(tmp_path: Path, host: str) -> None:
    model = EchoModel()
    settings = Settings(store=str(tmp_path), embedder="off")
    hosts = frozenset({"localhost", "127.0.0.1"})
    with served(model, settings, KeyRing(), hosts=hosts) as serving:
        assert get(f"{serving.url}/v1/models").status_code == 200
        reply = get(f"{serving.url}/v1/models", headers={"Host": host})
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "wrong_host")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "missing_required_parameter"),
        (b"{", "invalid_json"),
        (b"[]", "invalid_value"),
        (b"\xff\xfe", "invalid_json"),
        (b'{"a":' * 50_000, "invalid_json"),
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
    reply = post(f"{server.url}{CHAT}", content=content, headers=AUTHORIZED)
    assert reply.status_code == 400, reply.text
    error = reply.json()["error"]
    assert error["message"]
    assert code in (None, error["code"])
    assert "None" not in error["message"]


def test_what_is_not_there_is_told_in_the_same_shape(server: Serving) -> None:
    assert get(f"{server.url}/v1/nothing", headers=AUTHORIZED).json()["error"]["code"] == "unknown_url"
    reply = get(f"{server.url}{CHAT}", headers=AUTHORIZED)
    assert (reply.status_code, reply.json()["error"]["code"]) == (405, "method_not_allowed")


@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        (b"", "multipart/form-data", "invalid_form"),
        (b"", "multipart/form-data; boundary=x", "missing_required_parameter"),
        (b"--y\r\nnonsense", "multipart/form-data; boundary=x", "invalid_form"),
        (b'--x\r\nContent-Disposition: form-data; name="fi', "multipart/form-data; boundary=x", None),
        (b"\xff" * 100, "multipart/form-data; boundary=\xff", "invalid_form"),
        (b"file=text", "application/x-www-form-urlencoded", "invalid_value"),
        (b"{}", "application/json", "missing_required_parameter"),
    ],
)
def test_a_form_that_is_none_is_refused_in_our_words(
    server: Serving, content: bytes, kind: str, code: str | None
) -> None:
    headers = {"Authorization": f"Bearer {ALICE}", "Content-Type": kind.encode("latin-1")}
    reply = post(f"{server.url}/v1/files", content=content, headers=headers)
    error = reply.json()["error"]
    assert reply.status_code == 400
    assert code in (None, error["code"])
    for word in ("None", "boundary", "byte"):  # of the library that reads forms
        assert word not in error["message"]
