"""POST /v1/chat/completions: a body becomes a ticket, what comes of it a reply or a stream of events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from secrets import token_hex
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response, StreamingResponse

from localctx.errors import LocalctxError
from localctx.serve import replies
from localctx.serve.bodies import ChatBody
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


async def complete(service: Service, request: HTTPRequest, tenant: Tenant, body: ChatBody) -> Response:
    """The response. Raises Problem."""
    check(service, body)
    prepare = asked_chat if body.localctx is None else asked_question
    try:
        asked = await run_in_threadpool(prepare, service, tenant, body)
    except LocalctxError as error:
        raise of_error(error) from None
    reply = _Reply(service, request, tenant, body, asked)
    reply.push()
    return await (reply.stream() if body.stream else reply.whole())


class _Reply:
    """One request from its place in line to its last byte."""

    def __init__(
        self, service: Service, request: HTTPRequest, tenant: Tenant, body: ChatBody, asked: Asked
    ) -> None:
        self._service, self._request, self._body, self._asked = service, request, body, asked
        self._inbox: asyncio.Queue[Outcome] = asyncio.Queue()
        self._until = time.monotonic() + service.options.limits.answer_s
        self._ticket = Ticket(tenant, asked.job, self._inbox.put_nowait, time.monotonic(), self._over)
        self._head = {"id": f"chatcmpl-{token_hex(12)}", "created": int(time.time()), "model": body.model}
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

    def _over(self) -> None:
        """The worker is done with the ticket: called once, in its thread."""
        self._asked.release()
        ticket, service = self._ticket, self._service
        service.metrics.answered(ticket)
        service.tracing.request(self._request.headers, ticket, "chat")

    # --- what comes of it -----------------------------------------------------------------------------

    def _take(self, outcome: Outcome) -> list[str]:
        """Keep an outcome; its events, where they are streamed. Raises Problem."""
        match outcome:
            case Piece():
                return self._piece(outcome)
            case Text(text):
                self._choices[0].text += text
                return self._delta(0, {"content": text})
            case Replaced(text):
                self._replaced = True
                return self._delta(0, {"content": f"\n\n{text}"})
            case Finished(answer):
                self._finished(answer)
                more = {"localctx": self._documents_field()}
                return self._delta(0, {}, answer.finish_reason, **more)
            case End(error) if error is not None:
                raise stopping() if self._service.worker.is_draining else of_error(error)
        return []

    def _piece(self, piece: Piece) -> list[str]:
        one = self._choices[piece.request]
        one.text += piece.text
        one.thinking += piece.thinking
        one.reason = piece.finish_reason
        events: list[str] = []
        for name, text in (("reasoning_content", piece.thinking), ("content", piece.text)):
            if text:
                events += self._delta(piece.request, {name: text})
        if piece.finish_reason is None:
            return events
        if piece.finish_reason == "cancelled":
            raise stopping()
        self._usage.generated += piece.n_generated
        if piece.request == 0:
            self._usage.cached = self._usage.prompt - piece.n_evaluated
        return events + self._delta(piece.request, {}, piece.finish_reason)

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
        """One object, or what is left of it when the client goes."""
        reading = asyncio.ensure_future(self._read_all())
        gone = asyncio.ensure_future(_until_gone(self._request))
        try:
            left_s = self._until - time.monotonic()
            await asyncio.wait({reading, gone}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reading.result()
            elif gone.done():
                return Response(status_code=CLIENT_GONE)
            else:
                raise self._too_late()
        finally:
            gone.cancel()
            reading.cancel()
            self._service.worker.cancel(self._ticket)
        choices = [
            replies.choice(number, one.text, one.thinking, one.reason)
            for number, one in enumerate(self._choices)
        ]
        return JSONResponse(replies.chat_reply(self._head, choices, self._usage, self._documents_field()))

    async def _read_all(self) -> None:
        while not isinstance(outcome := await self._inbox.get(), End):
            self._take(outcome)
        self._take(outcome)

    async def stream(self) -> Response:
        """Server-sent events; what fails before the first one is a plain response. Raises Problem."""
        try:
            outcome = await self._next(FIRST_S)
            first = [] if outcome is None else self._take(outcome)
        except BaseException:
            self._service.worker.cancel(self._ticket)
            raise
        is_over = isinstance(outcome, End)
        events = self._events(first, is_over=is_over)
        return StreamingResponse(
            events, media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    async def _events(self, first: list[str], *, is_over: bool) -> AsyncIterator[str]:
        try:
            opening = {"role": "assistant", "content": ""}
            yield "".join([*(self._delta(n, opening)[0] for n in range(len(self._choices))), *first])
            while not is_over:
                outcome = await self._next(KEEP_ALIVE_S)
                if outcome is None:
                    yield replies.KEEP_ALIVE
                    continue
                ready = [outcome]
                while not self._inbox.empty():
                    ready.append(self._inbox.get_nowait())
                if text := "".join(line for one in ready for line in self._take(one)):
                    yield text
                is_over = isinstance(ready[-1], End)
            if self._body.stream_options is not None and self._body.stream_options.include_usage:
                yield replies.usage_chunk(self._head, self._usage)
            yield replies.DONE
        except Problem as problem:
            yield replies.event(problem.to_json())
        finally:
            self._service.worker.cancel(self._ticket)

    async def _next(self, seconds: float) -> Outcome | None:
        """The next outcome; None when none came in time. Raises Problem at the answer's time limit."""
        if not self._inbox.empty():
            return self._inbox.get_nowait()
        left_s = self._until - time.monotonic()
        try:
            return await asyncio.wait_for(self._inbox.get(), max(0.0, min(seconds, left_s)))
        except TimeoutError:
            if left_s <= seconds:
                raise self._too_late() from None
            return None

    def _too_late(self) -> Problem:
        limit_s = self._service.options.limits.answer_s
        return Problem(504, f"the answer took longer than {limit_s:g} s", kind="server_error", code="timeout")


class _Choice:
    """One answer so far."""

    def __init__(self) -> None:
        self.text = self.thinking = ""
        self.reason: FinishReason | None = None


async def _until_gone(request: HTTPRequest) -> None:
    """Return when the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
