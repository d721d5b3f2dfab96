"""Another server as a model: what it is asked, and one clear line for everything that it may do wrong."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from localctx.engine.remote import open_remote
from localctx.engine.remote_client import RemoteClient, parse_backend
from localctx.errors import BackendError, UsageError
from localctx.values import Message, Piece, Request, Sampling

MODELS = {"data": [{"id": "big", "max_model_len": 4096}, {"id": "other"}]}


def event(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def chunk(text: str | None = None, reason: str | None = None, **more: object) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}], **more})


GOOD = [
    chunk("Hel"),
    b": a comment\n\n",
    chunk("lo"),
    chunk(None, "stop"),
    event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}),
    b"data: [DONE]\n\n",
]
Reply = tuple[int, list[bytes], dict[str, str]]


class Scripted:
    """A server that gives the replies it was told to, in order, the last one again and again."""

    def __init__(self) -> None:
        self.replies: list[Reply] = [(200, GOOD, {})]
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(200, [json.dumps(MODELS).encode()], {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                scripted.asked.append((self.path, dict(self.headers), json.loads(body)))
                replies = scripted.replies
                self.answer(*(replies.pop(0) if len(replies) > 1 else replies[0]))

            def answer(self, status: int, parts: list[bytes], headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for part in parts:
                    self.wfile.write(part)

            def log_message(self, format: str, *words: object) -> None:  # noqa: A002  # named so there
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    """A server, stopped at the end."""
    one = Scripted()
    yield one
    one.server.shutdown()
    one.server.server_close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What would have been waited for."""
    pauses: list[float] = []
    monkeypatch.setattr("localctx.engine.remote_client.time.sleep", pauses.append)
    monkeypatch.setattr(RemoteClient.__init__, "__kwdefaults__", {"sleep": pauses.append})
    return pauses


def generate(url: str, n: int = 1, **sampling: Any) -> list[Piece]:
    with open_remote(f"openai:{url}", None) as model:
        messages = [Message("system", ("Be brief.",)), Message("user", ("What ", "is it?"))]
        context = model.open_context(1000, 2)
        requests = [Request(model.prompt(messages), Sampling(**sampling)) for _ in range(n)]
        return list(context.generate(requests))


def test_a_streamed_answer_comes_in_pieces_with_the_servers_counts(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    pieces = generate(scripted.url, max_tokens=20, stop=("x",), seed=3)
    assert "".join(piece.text for piece in pieces) == "Hello"
    last = pieces[-1]
    assert (last.finish_reason, last.n_evaluated, last.n_generated) == ("stop", 9, 2)
    ((path, headers, body),) = scripted.asked
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", "Bearer secret")
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is it?"},
    ]
    assert {name: body[name] for name in ("model", "max_tokens", "stop", "seed", "stream")} == {
        "model": "big", "max_tokens": 20, "stop": ["x"], "seed": 3, "stream": True,
    }  # fmt: skip


def test_half_of_a_surrogate_pair_is_replaced(scripted: Scripted) -> None:
    scripted.replies = [(200, [chunk("a\ud83d"), *GOOD[2:]], {})]
    assert "".join(piece.text for piece in generate(scripted.url)) == "a\ufffdlo"


def test_many_requests_have_an_answer_each(scripted: Scripted) -> None:
    pieces = generate(scripted.url, 5)
    for number in range(5):
        assert "".join(piece.text for piece in pieces if piece.request == number) == "Hello"
    assert sorted(piece.request for piece in pieces if piece.finish_reason) == [0, 1, 2, 3, 4]


def test_the_context_is_as_long_as_the_server_says(scripted: Scripted) -> None:
    with open_remote(f"openai:{scripted.url}", None) as model:
        assert (model.info.name, model.usable_n_ctx()) == ("big", 4096)
        assert any("stored KV is not used" in notice for notice in model.info.notices)
    with open_remote(f"openai:{scripted.url}#other", 2048) as model:
        assert (model.info.name, model.usable_n_ctx()) == ("other", 2048)
    with pytest.raises(UsageError, match="more than big has there"):
        open_remote(f"openai:{scripted.url}", 10_000)
    with pytest.raises(UsageError, match=r"no model 'third'.*") as error:
        open_remote(f"openai:{scripted.url}#third", None)
    assert error.value.hint == "one of big, other"


def said(status: int, message: str = "") -> Reply:
    return status, [json.dumps({"error": {"message": message}}).encode()], {}


@pytest.mark.parametrize(
    ("reply", "message", "n_asked"),
    [
        (said(401, "bad key"), r"refuses the API key \(401\): bad key", 1),
        (said(404, "no such model"), r"does not have that \(404", 1),
        (said(400, "maximum context length is 9 tokens"), "finds the prompt too long", 1),
        (said(400, "no\nseed"), r"refuses the request \(400\): no seed", 1),
        ((429, [b"<html>"], {"Retry-After": "7"}), r"takes no more requests now \(429\)", 4),
        (said(500, "boom"), r"failed \(500\): boom", 4),
        ((503, [], {}), r"failed \(503\)", 4),
        ((200, GOOD[:3], {}), "ended the answer in the middle", 1),
        ((200, [chunk("Hel"), b"data: {broken\n\n"], {}), "no chat completion", 1),
        ((200, [b"<html>hello</html>"], {}), "ended the answer in the middle", 1),
        ((200, [event({"error": {"message": "out of memory"}})], {}), "broke off: out of memory", 1),
        ((200, [chunk("Hel")], {"Content-Length": "9999"}), "broke off", 1),
    ],
)
def test_what_the_server_does_wrong_is_one_clear_line(
    scripted: Scripted, reply: Reply, message: str, n_asked: int
) -> None:
    scripted.replies = [reply]
    with pytest.raises(BackendError, match=message) as error:
        generate(scripted.url)
    assert len(scripted.asked) == n_asked
    assert error.value.message.startswith(scripted.url)
    assert "\n" not in error.value.message + error.value.hint
    assert error.value.hint


def test_what_passes_by_itself_is_tried_again_when_the_server_says(
    scripted: Scripted, no_pauses: list[float]
) -> None:
    scripted.replies = [(429, [], {"Retry-After": "7"}), (503, [], {}), (200, GOOD, {})]
    assert generate(scripted.url)[-1].finish_reason == "stop"
    assert no_pauses == [7, 2]


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(BackendError, match=f"127.0.0.1:{port}/v1 cannot be reached: connection refused"):
        open_remote(f"openai:http://127.0.0.1:{port}", None)


def test_offline_refuses_other_machines_and_nothing_is_sent() -> None:
    with pytest.raises(UsageError, match=r"example\.invalid is another machine"):
        open_remote("openai:https://example.invalid/v1", None, offline=True)


@pytest.mark.parametrize(
    ("backend", "wanted"),
    [
        ("openai:http://localhost:8080", ("http://localhost:8080/v1", None)),
        ("openai:http://[::1]:80/v1/#a/b:c", ("http://[::1]:80/v1", "a/b:c")),
        ("openai:https://api.example.com/openai/v1#m", ("https://api.example.com/openai/v1", "m")),
    ],
)
def test_urls_are_read_as_people_write_them(backend: str, wanted: tuple[str, str | None]) -> None:
    assert parse_backend(backend) == wanted


@pytest.mark.parametrize(
    "backend", ["", "openai", "openai:", "vllm:http://x", "openai:ftp://x", "openai:http://", "openai:x:80",
                "openai:http://x:port", "openai:http://u:p@x", "openai:http://x/v1?a=b"],
)  # fmt: skip
def test_what_is_no_url_is_refused(backend: str) -> None:
    with pytest.raises(UsageError, match="is not understood"):
        parse_backend(backend)


def test_cancelling_ends_the_wait(scripted: Scripted) -> None:
    go = threading.Event()

    class Waiting(list[bytes]):
        def __iter__(self) -> Iterator[bytes]:
            yield chunk("Hel")
            go.wait(30)

    scripted.replies = [(200, Waiting(), {})]
    with open_remote(f"openai:{scripted.url}", None) as model:
        context = model.open_context(1000)
        pieces = context.generate([Request(model.prompt([Message("user", ("x",))]))])
        assert next(pieces).text == "Hel"
        context.cancel()
        assert [piece.finish_reason for piece in pieces] == ["cancelled"]
    go.set()
