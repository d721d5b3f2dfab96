"""POST /v1/chat/completions: a body becomes a ticket, what comes of it a reply or a stream of events."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import chain
from secrets import token_hex
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from localctx.errors import LocalctxError
from localctx.serve import replies
from localctx.serve.bodies import ChatBody
from localctx.serve.inbox import Gone, Inbox
from localctx.serve.jobs import Asked, asked_chat, asked_question, check
from localctx.serve.keys import Tenant
from localctx.serve.problems import Problem, of_busy, of_error, stopping
from localctx.serve.service import Service
from localctx.serve.tickets import Busy, End, Outcome, Stopping, Ticket
from localctx.session.answer import Answer
from localctx.session.events import Finished, Replaced, Text
from localctx.values import FinishReason, Piece

__all__ = ["complete"]

FIRST_S = 10.0
"""A stream's headers wait so many seconds for its first outcome: what fails until then gives a status."""
KEEP_ALIVE_S = 15.0
CLIENT_GONE = 499
SHORT_CHARACTERS = 2_000


async def complete(service: Service, request: HTTPRequest, tenant: Tenant, body: ChatBody) -> Response:
    """The response. Raises Problem."""
    check(service, body)
    prepare = asked_chat if body.localctx is None else asked_question
    try:
        if _is_short(body):
            asked = prepare(service, tenant, body)
        else:
            asked = await run_in_threadpool(prepare, service, tenant, body)
    except LocalctxError as error:
        raise of_error(error) from None
    reply = _Reply(service, request, tenant, body, asked)
    reply.push()
    return await (reply.stream() if body.stream else reply.whole())


def _is_short(body: ChatBody) -> bool:
    """Whether its prompt is made sooner than another thread is woken."""
    if body.localctx is not None or body.response_format is not None:
        return False
    return sum(len(one.text) for one in body.messages) + len(body.messages) <= SHORT_CHARACTERS


class _Reply:
    """One request from its place in line to its last byte."""

    def __init__(
        self, service: Service, request: HTTPRequest, tenant: Tenant, body: ChatBody, asked: Asked
    ) -> None:
        self._service, self._request, self._body, self._asked = service, request, body, asked
        self._inbox = Inbox()
        self._until = time.monotonic() + service.options.limits.answer_s
        self._ticket = Ticket(tenant, asked.job, self._inbox.put, time.monotonic(), self._over)
        self._head = {"id": f"chatcmpl-{token_hex(12)}", "created": int(time.time()), "model": body.model}
        self._chunk_head = replies.chunk_head(self._head)
        self._choices = [_Choice() for _ in range(body.n or 1)]
        self._usage = replies.Usage(prompt=asked.n_prompt)
        self._answer: Answer | None = None
        self._replaced = False

    def push(self) -> None:
        """Stand in line. Raises Problem."""
        try:
            self._service.worker.push(self._ticket)
        except (Busy, Stopping) as reason:
            self._asked.release()
            raise of_busy(reason) from None

    def abandon(self) -> None:
        """Nobody will read it, or it is over."""
        self._service.worker.cancel(self._ticket)

    def _over(self) -> None:
        """The worker is done with the ticket: called once, in its thread."""
        self._asked.release()
        ticket, service = self._ticket, self._service
        service.metrics.answered(ticket)
        service.tracing.request(self._request.headers, ticket, "chat")

    # --- what comes of it -----------------------------------------------------------------------------

    def _take(self, outcome: Outcome) -> Iterator[str]:
        """Keep an outcome; its events, where they are streamed, up to where it raises Problem."""
        match outcome:
            case Piece():
                yield from self._piece(outcome)
            case Text(text):
                self._choices[0].text += text
                yield from self._delta(0, {"content": text})
            case Replaced(text):
                self._replaced = True
                yield from self._delta(0, {"content": f"\n\n{text}"})
            case Finished(answer):
                self._finished(answer)
                more = {"localctx": self._documents_field()}
                yield from self._delta(0, {}, answer.finish_reason, **more)
            case End(error) if error is not None:
                raise stopping() if self._service.worker.is_draining else of_error(error)

    def _piece(self, piece: Piece) -> Iterator[str]:
        one = self._choices[piece.request]
        one.text += piece.text
        one.thinking += piece.thinking
        one.reason = piece.finish_reason
        for name, text in (("reasoning_content", piece.thinking), ("content", piece.text)):
            if text and self._body.stream:
                yield replies.text_chunk(self._chunk_head, piece.request, name, text)
        if piece.finish_reason is None:
            return
        if piece.finish_reason == "cancelled":
            raise stopping()
        self._usage.generated += piece.n_generated
        if piece.request == 0:
            self._usage.cached = self._usage.prompt - piece.n_evaluated
        yield from self._delta(piece.request, {}, piece.finish_reason)

    def _finished(self, answer: Answer) -> None:
        self._answer = answer
        if answer.finish_reason == "cancelled":
            raise stopping()
        self._choices[0].text, self._choices[0].reason = answer.text, answer.finish_reason
        tokens = answer.tokens
        self._usage = replies.Usage(tokens.evaluated + tokens.restored, tokens.restored, tokens.generated)

    def _documents_field(self) -> dict[str, Any] | None:
        if self._answer is None:
            return None
        return replies.documents_field(
            self._answer, self._asked.names, self._asked.warnings, replaced=self._replaced
        )

    def _delta(
        self, number: int, delta: Mapping[str, Any], reason: FinishReason | None = None, **more: object
    ) -> list[str]:
        return [replies.chat_chunk(self._head, number, delta, reason, **more)] if self._body.stream else []

    # --- the two ways to tell it ----------------------------------------------------------------------

    async def whole(self) -> Response:
        """One object, or what is left of it when the client goes. Raises Problem."""
        try:
            async with self._watching(self._request.receive):
                is_over = False
                while not is_over:
                    for outcome in await self._ready(self._limit_s):
                        deque(self._take(outcome), maxlen=0)
                        is_over = isinstance(outcome, End)
        except Gone:
            return Response(status_code=CLIENT_GONE)
        finally:
            self.abandon()
        choices = [
            replies.choice(number, one.text, one.thinking, one.reason)
            for number, one in enumerate(self._choices)
        ]
        return JSONResponse(replies.chat_reply(self._head, choices, self._usage, self._documents_field()))

    async def stream(self) -> Response:
        """Server-sent events; what fails before the first one is a plain response. Raises Problem."""
        try:
            outcomes = await self._ready(FIRST_S)
            first = "".join(line for one in outcomes for line in self._take(one))
        except BaseException:
            self.abandon()
            raise
        return _EventStream(self, first, is_over=bool(outcomes) and isinstance(outcomes[-1], End))

    async def send_events(self, first: str, is_over: bool, receive: Receive, send: Send) -> None:
        """The stream's body: what is ready together goes out together, and before an error behind it."""
        text = ""

        async def tell(text: str) -> None:
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})

        try:
            async with self._watching(receive):
                opening = {"role": "assistant", "content": ""}
                text = "".join([*(self._delta(n, opening)[0] for n in range(len(self._choices))), first])
                while not is_over:
                    if text:
                        await tell(text)
                    text = ""
                    outcomes = await self._ready(KEEP_ALIVE_S)
                    for line in chain.from_iterable(map(self._take, _joined(outcomes))):
                        text += line
                    if not outcomes:
                        text = replies.KEEP_ALIVE
                    is_over = bool(outcomes) and isinstance(outcomes[-1], End)
                if self._body.stream_options is not None and self._body.stream_options.include_usage:
                    text += replies.usage_chunk(self._head, self._usage)
                text += replies.DONE
        except Problem as problem:
            text += replies.event(problem.to_json())
        except Gone:
            return
        finally:
            self.abandon()
        await send({"type": "http.response.body", "body": text.encode()})

    @asynccontextmanager
    async def _watching(self, receive: Receive) -> AsyncIterator[None]:
        """Inside, the client's going ends what waits for outcomes."""
        watching = asyncio.ensure_future(_until_gone(receive))
        watching.add_done_callback(lambda _: self._inbox.leave())
        try:
            yield
        finally:
            watching.cancel()

    @property
    def _limit_s(self) -> float:
        """Seconds that are left for the answer."""
        return self._until - time.monotonic()

    async def _ready(self, seconds: float) -> list[Outcome]:
        """What came; nothing when nothing came in time. Raises Gone, Problem at the answer's time limit."""
        left_s = self._limit_s
        outcomes = await self._inbox.take(min(seconds, left_s))
        if not outcomes and left_s <= seconds:
            raise self._too_late()
        return outcomes

    def _too_late(self) -> Problem:
        limit_s = self._service.options.limits.answer_s
        return Problem(504, f"the answer took longer than {limit_s:g} s", kind="server_error", code="timeout")


class _Choice:
    """One answer so far."""

    def __init__(self) -> None:
        self.text = self.thinking = ""
        self.reason: FinishReason | None = None


class _EventStream(Response):
    """A response that the reply writes itself: no task and no layer between it and the connection."""

    media_type = "text/event-stream"

    def __init__(self, reply: _Reply, first: str, *, is_over: bool) -> None:
        self._reply, self._first, self._is_over = reply, first, is_over
        self.status_code, self.background = 200, None
        self.init_headers({"Cache-Control": "no-store"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        except BaseException:
            self._reply.abandon()
            raise
        await self._reply.send_events(self._first, self._is_over, receive, send)


async def _until_gone(receive: Receive) -> None:
    """Return when the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _joined(outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """The outcomes, with pieces that follow each other in one choice made one."""
    held: Piece | None = None
    for one in outcomes:
        if held is not None and isinstance(one, Piece) and one.request == held.request:
            held = replace(one, text=held.text + one.text, thinking=held.thinking + one.thinking)
            continue
        if held is not None:
            yield held
        held = one if isinstance(one, Piece) else None
        if held is None:
            yield one
    if held is not None:
        yield held
