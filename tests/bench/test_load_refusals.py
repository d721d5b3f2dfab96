"""`bench load` beside a server that refuses documents: it is counted, and the measurement goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from localctx.bench.load_clients import Asker, Klass, Traffic, run_askers
from localctx.bench.load_documents import Documents
from localctx.errors import LocalctxError

T = TypeVar("T")
SOURCE = "Harbours and lanterns stand along the river. " * 20
EVENTS = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n'
BODIES = {"POST /v1/files": json.dumps({"id": "file-1"}).encode(), "POST /v1/chat/completions": EVENTS}


def beside(statuses: dict[str, int], work: Callable[[str], Awaitable[T]]) -> T:
    """work(url) beside a server that answers with these statuses, by the beginnings of requests."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = next(line for line in head.split("\r\n") if line.startswith("Content-Length"))
                await reader.readexactly(int(length.partition(":")[2]))
                status = next((n for begin, n in statuses.items() if head.startswith(begin)), 200)
                body = BODIES.get(head.partition(" HTTP")[0], b"{}")
                answer = f"HTTP/1.1 {status} x\r\nRetry-After: 2\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(answer.encode() + body)
        except asyncio.IncompleteReadError:
            writer.close()
            await writer.wait_closed()

    async def run() -> T:
        serving: set[asyncio.Task[None]] = set()

        def noted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            serving.add(asyncio.ensure_future(serve(reader, writer)))

        server = await asyncio.start_server(noted, "127.0.0.1", 0)
        try:
            return await work(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        finally:
            server.close()
            await asyncio.gather(*serving)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("statuses", "n_answers", "problems"),
    [
        ({}, 1, {}),
        ({"POST /v1/files": 429}, 0, {"429": 1}),
        ({"DELETE": 500}, 1, {"500": 1}),
        ({"POST /v1/chat": 503}, 0, {"503": 1}),
        ({"POST /v1/chat": 503, "DELETE": 404}, 0, {"503": 1, "404": 1}),
    ],
)
def test_a_refusal_is_counted(statuses: dict[str, int], n_answers: int, problems: dict[str, int]) -> None:
    askers = [Asker(n, Klass("gold", 4, 1000), f"tenant-{n}", "key") for n in range(2)]
    traffic = Traffic("tiny", 0.0, 4, None, Documents(SOURCE, 500, "cold"))  # each asks once
    beside(statuses, lambda url: run_askers(askers, url, traffic))
    for one in askers:
        assert (len(one.answers), one.problems) == (n_answers, problems)


def test_a_server_that_is_gone_before_the_run_is_one_line() -> None:
    documents = Documents(SOURCE, 500, "warm")
    with pytest.raises(LocalctxError, match="uploading") as caught:
        asyncio.run(documents.prepare("http://127.0.0.1:1/v1", "tiny", {"one": {}}))
    assert caught.value.hint


@pytest.mark.parametrize("begin", ["POST /v1/files", "POST /v1/chat"])
def test_what_is_refused_before_the_run_is_told(begin: str) -> None:
    documents = Documents(SOURCE, 500, "warm")
    with pytest.raises(LocalctxError, match="413"):
        beside({begin: 413}, lambda url: documents.prepare(url, "tiny", {"one": {}}))
