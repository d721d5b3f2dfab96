"""`bench load`: its connection, its report, its command."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from localctx.bench.load import LoadPlan
from localctx.bench.load_clients import Answered, Asker, Klass
from localctx.bench.load_http import Connection, Reply
from localctx.bench.load_report import LoadReport, Rate
from localctx.cli.main import run

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Number: 1\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nA\r\n2\r\nBC\r\n0\r\n\r\n"


def ask(serve: Serve, n: int = 1) -> list[tuple[Reply, bytes]]:
    """n requests, one after the other on one Connection, to a server of this process."""

    async def asking() -> list[tuple[Reply, bytes]]:
        serving: set[asyncio.Task[None]] = set()

        async def noted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            serving.add(task)
            await serve(reader, writer)

        server = await asyncio.start_server(noted, "127.0.0.1", 0)
        connection = Connection(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        found = []
        try:
            for _ in range(n):
                pieces: list[bytes] = []
                got = await connection.request(
                    "POST", "/x", {"A": "b"}, b"body", lambda data, _, to=pieces: to.append(data)
                )
                found.append((got, b"".join(pieces)))
        finally:
            connection.close()
            connection.close()
            server.close()
            await asyncio.gather(*serving, return_exceptions=True)  # all that was opened is closed
        return found

    return asyncio.run(asking())


def answering(*answers: bytes, closes_after: int = 1000, heard: list[bytes] | None = None) -> Serve:
    """Answers in order, over all connections; each connection is closed after so many."""
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(closes_after):
            head = await reader.read(1000)
            if not head or not left:
                break
            if heard is not None:
                heard.append(head)
            writer.write(left.pop(0))
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    return serve


def test_one_connection_serves_requests_one_after_the_other() -> None:
    heard: list[bytes] = []
    (first, said), (_, chunks) = ask(answering(OK, CHUNKED, heard=heard), 2)
    assert (first.status, first.headers["x-number"], said, chunks) == (200, "1", b"ok", b"ABC")
    assert heard[0].startswith(b"POST /v1/x HTTP/1.1\r\nHost: 127.0.0.1:")
    assert heard[0].endswith(b"\r\nA: b\r\nContent-Length: 4\r\n\r\nbody")


def test_a_connection_that_was_closed_meanwhile_is_opened_again() -> None:
    assert [said for _, said in ask(answering(OK, OK, OK, closes_after=1), 3)] == [b"ok"] * 3


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", b"SSH-2.0-x\r\n\r\n"]
)
def test_what_breaks_off_or_is_no_http_is_an_error(answer: bytes) -> None:
    with pytest.raises(ConnectionError):
        ask(answering(answer, closes_after=1))


def report(answers: list[Answered], engine: tuple[Rate, ...] = (), **plan: object) -> LoadReport:
    asker = Asker(0, Klass("gold", 4, 1000), "t", "k", answers, Counter({"429": 2}))
    made = LoadPlan(n_users=1, n_tenants=1, **plan)  # type: ignore[arg-type]  # by name
    return LoadReport(made, (asker,), Rate(asker.n_tokens, 10.0, 3.0), 1.0, engine, 0, (), {})


def test_percentiles_jitter_and_processor_time() -> None:
    answers = [Answered("chat", n / 1000, (0.01, 0.03, 0.02), 10) for n in range(1, 101)]
    engine = (Rate(1000, 8.0, 2.0), Rate(1000, 8.0, 2.4))
    value = report(answers, engine).to_json()
    assert [value[f"ttft_p{share}_ms"] for share in (50, 95, 99)] == [51.0, 96.0, 100.0]
    assert value["gap_p50_ms"] == 20.0 and value["gap_p99_ms"] == 30.0
    assert value["jitter_p50_ms"] == 15.0
    assert value["share_of_engine"] == 0.8
    assert value["processor"] == {
        "engine_s_per_1000": [2.0, 2.4],
        "server_s_per_1000": 3.0,
        "users_s_per_1000": 1.0,
        "users_share": 0.25,
        "engine_to_server": 0.733,
    }
    assert value["problems"] == {"429": 2}


def test_kinds_of_documents_have_rows_of_their_own() -> None:
    answers = [
        Answered("cold", 2.0, (), 3, upload_s=0.5, document_tokens=8000),
        Answered("warm", 0.25, (0.1, 0.1), 3, document_tokens=9000),
    ]
    shown = report(answers, document_tokens=8192, rate=2.5)
    cold, warm = shown.to_json()["kinds"]
    assert (cold["ttft_p50_ms"], cold["upload_p50_ms"], cold["document_tokens"]) == (2000.0, 500.0, 8000)
    assert (warm["ttft_p50_ms"], warm["jitter_p50_ms"], "upload_p50_ms" in warm) == (250.0, 0.0, False)
    text = "\n".join(shown.lines)
    assert "cold documents of 8,000 tokens: 1 answers" in text and "open loop, 2.5 requests a second" in text


def test_nothing_answered_is_a_report_too() -> None:
    shown = report([])
    assert shown.to_json()["ttft_p50_ms"] is None
    assert shown.lines


@pytest.fixture
def load(
    tiny_model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Exit code and both streams of `localctx bench load …` on the tiny model."""
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["localctx"])
        capfd.readouterr()
        with pytest.raises(SystemExit) as done:
            run(["bench", "load", "--model", str(tiny_model_path), "--quiet", *words])
        out, err = capfd.readouterr()
        assert isinstance(done.value.code, int)
        return done.value.code, out, err

    return call


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--rate", "5", "--doc-len", "200", "--docs", "cold")])
def test_a_server_of_its_own_is_measured(
    load: Callable[..., tuple[int, str, str]], words: tuple[str, ...]
) -> None:
    code, out, err = load(
        "--vus", "2", "--tenants", "2", "--duration", "2s", "--embedder", "off", "--json", *words
    )
    value = json.loads(out)
    assert (code, err, value["schema"]) == (0, "", "localctx.bench.load/1")
    assert len(value["engine_tokens_per_s"]) == (0 if words else 2)
    kinds = {row["kind"] for row in value["kinds"]}
    assert kinds <= ({"cold"} if words else {"chat"})
    assert kinds or value["problems"]  # on a slow machine an upload may be all that its time is enough for
    assert not kinds or value["processor"]["server_s_per_1000"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rate", "0"), "--rate 0"),
        (("--rate", "nan"), "--rate nan"),
        (("--docs", "cold"), "--doc-len"),
        (("--docs", "old", "--doc-len", "900"), "--docs old"),
        (("--doc-len", "5"), "--doc-len 5"),
        (("--vus", "1"), "--vus 1"),
        (("--duration", "soon"), "--duration soon"),
    ],
)
def test_errors_are_one_line(
    load: Callable[..., tuple[int, str, str]], words: tuple[str, ...], said: str
) -> None:
    code, out, err = load(*words)
    assert (code, out) == (2, "")
    assert said in err and err.count("\n") == 1
