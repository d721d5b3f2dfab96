"""How a stream, a listening server and a wait for the client end: nothing is lost, nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from localctx.errors import LocalctxError
from localctx.serve import running
from localctx.serve.bodies import ChatBody
from localctx.serve.chat import _Reply
from localctx.serve.keys import Tenant
from localctx.serve.tickets import End, Outcome
from localctx.values import Piece


def streamed(
    outcomes: Sequence[Outcome], receive: Any, *, is_draining: bool = False
) -> tuple[str, list[Any]]:
    """What is sent of outcomes that are all ready, and what the loop complains of."""
    limits, complaints, sent = SimpleNamespace(answer_s=3600.0), [], []
    worker = SimpleNamespace(cancel=lambda ticket: None, is_draining=is_draining)
    service: Any = SimpleNamespace(options=SimpleNamespace(limits=limits), worker=worker)
    asked: Any = SimpleNamespace(job=None, n_prompt=1, names={}, warnings=[])
    body = ChatBody.model_validate(
        {"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    )

    async def send(message: Any) -> None:
        sent.append(message["body"].decode())

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        reply = _Reply(service, SimpleNamespace(), Tenant("t"), body, asked)  # type: ignore[arg-type]  # unused
        for one in outcomes:
            reply._inbox.put(one)
        await reply.send_events("", False, receive, send)
        del reply
        gc.collect()

    asyncio.run(run())
    return "".join(sent), complaints


async def waiting() -> Any:
    return await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize(
    ("last", "is_draining", "said"),
    [
        (End(LocalctxError("the model broke")), False, "the model broke"),
        (Piece(0, " last", "", "cancelled", 1, 3), True, "shutting down"),
    ],
)
def test_text_that_was_ready_before_an_error_is_sent(last: Outcome, is_draining: bool, said: str) -> None:
    pieces = [Piece(0, "first", "", None, 1, 1), Piece(0, " second", "", None, 1, 2)]
    text, _ = streamed([*pieces, last], waiting, is_draining=is_draining)
    assert '"error"' in text and said in text
    assert 0 < text.index("first second") < text.index('"error"')
    assert "[DONE]" not in text.partition('"error"')[0]


def test_a_connection_that_breaks_while_it_is_watched_is_a_client_that_went() -> None:
    async def broken() -> Any:
        raise RuntimeError("the connection broke")

    text, complaints = streamed([], broken)
    assert "[DONE]" not in text and not complaints


@pytest.mark.parametrize("fails", [False, True])
def test_the_interpreter_is_given_back_as_it_was(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    before, during = sys.getswitchinterval(), []

    async def serve(server: Any, sockets: Any) -> None:
        during.append(sys.getswitchinterval())
        if fails:
            raise LocalctxError("no")

    monkeypatch.setattr(running._Server, "serve", serve)
    monkeypatch.setattr(running, "make_app", lambda service, hosts: None)
    worker = SimpleNamespace(end=lambda: None, failure=None)
    model = SimpleNamespace(info=SimpleNamespace(name="m"))
    service: Any = SimpleNamespace(ring=SimpleNamespace(is_open=False), worker=worker, model=model)
    try:
        running.serve(
            service, socket.create_server(("127.0.0.1", 0)), "127.0.0.1", grace_s=1.0, say=lambda _: None
        )
    except LocalctxError:
        assert fails
    assert during == [pytest.approx(running.SWITCH_S)]
    assert sys.getswitchinterval() == before
