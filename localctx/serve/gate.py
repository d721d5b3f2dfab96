"""What every request passes before anything is read of it: whose it is, from where, how long it may be.

A pure ASGI layer. Sets scope["state"]["tenant"]. Knows no routes but those that ask for no key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localctx.serve.keys import KeyRing, Tenant
from localctx.serve.problems import Problem

__all__ = ["Gate", "Limits"]

OPEN_PATHS = frozenset({"/healthz"})
UPLOAD_PATH = "/v1/files"
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
OnResponse = Callable[[str, str, int], None]
"""Called with (tenant's name, path, status) when a response begins."""


@dataclass(frozen=True, slots=True)
class Limits:
    """max_body_bytes: of JSON · max_upload_bytes: of a file · body_s: seconds for a body to arrive ·
    answer_s: seconds for an answer to be complete · linger_s: seconds for which what a client still sends is
    taken after it was refused · idle_s: seconds for which it may pause meanwhile.
    """

    max_body_bytes: int = 8 << 20
    max_upload_bytes: int = 512 << 20
    body_s: float = 120.0
    answer_s: float = 600.0
    linger_s: float = 30.0
    idle_s: float = 1.0


class Gate:
    """`hosts`: names that a browser may know the server by, None for any: a page of another name that points
    here (DNS rebinding) gets nothing where no key protects.
    """

    def __init__(
        self,
        app: ASGIApp,
        ring: KeyRing,
        limits: Limits,
        on_response: OnResponse,
        hosts: frozenset[str] | None,
    ) -> None:
        self._app, self._ring, self._limits = app, ring, limits
        self._on_response, self._hosts = on_response, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, name = Headers(scope=scope), "-"
        body = _Body(receive, headers, self._limits)
        answered = body.ending(send)

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._on_response(name, _path(scope), message["status"])
            await answered(message)

        try:
            tenant = self._tenant(scope, headers)
            name = tenant.name
            scope.setdefault("state", {})["tenant"] = tenant
            body.limit(self._most_bytes(scope, headers))
        except Problem as problem:
            await problem.response()(scope, receive, counted)
            return
        await self._app(scope, body.receive, counted)

    def _tenant(self, scope: Scope, headers: Headers) -> Tenant:
        """Raises Problem for a wrong key or host."""
        host = headers.get("host", "")
        if self._hosts is not None and _without_port(host) not in self._hosts:
            raise Problem(403, "the Host header names another server", code="wrong_host")
        if scope["path"] in OPEN_PATHS:
            return Tenant("-")
        scheme, _, key = headers.get("authorization", "").partition(" ")
        tenant = self._ring.find(key.strip() if scheme.lower() == "bearer" else None)
        if tenant is None:
            raise Problem(
                401,
                "Incorrect API key provided." if key else "You didn't provide an API key.",
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return tenant

    def _most_bytes(self, scope: Scope, headers: Headers) -> int:
        """Bytes that the body may have. Raises Problem where it says that it has more."""
        is_upload = scope["path"] == UPLOAD_PATH and scope["method"] == "POST"
        most = self._limits.max_upload_bytes if is_upload else self._limits.max_body_bytes
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal()) or len(length) > 18 or int(length) > most:
            raise Problem(413, f"the body may have {most:,} bytes", code="body_too_large")
        return most


class _Body:
    """A request's body on its way: how much of it there may be, and what happens to the rest of it."""

    def __init__(self, receive: Receive, headers: Headers, limits: Limits) -> None:
        self._receive, self._limits = receive, limits
        self._most, self._until, self._n_bytes = 0, 0.0, 0
        self._is_whole = "transfer-encoding" not in headers and headers.get("content-length", "0") == "0"

    def limit(self, most: int) -> None:
        """So many bytes, within the seconds that a body has, from now."""
        self._most = most
        self._until = asyncio.get_running_loop().time() + self._limits.body_s

    async def receive(self) -> Message:
        """The next piece. Raises HTTPException for a body that is too long, or takes too long to arrive."""
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, f"the body took longer than {self._limits.body_s:g} s") from None
        self._n_bytes += len(message.get("body", b""))
        if self._n_bytes > self._most:
            raise HTTPException(413, f"the body may have {self._most:,} bytes")
        self._note_end(message)
        return message

    def ending(self, send: Send) -> Send:
        """send() that closes the connection behind a response that came before the body was read.

        Closed at once it would be reset under a client that still sends, and the response lost with it.
        """
        closes = False

        async def ending(message: Message) -> None:
            nonlocal closes
            if message["type"] == "http.response.start" and not self._is_whole:
                closes = True
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            if closes and message["type"] == "http.response.body" and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await self._drain()
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        return ending

    async def _drain(self) -> None:
        """Take the rest and let it go, for a while."""
        try:
            async with asyncio.timeout(self._limits.linger_s):
                while not self._is_whole:
                    self._note_end(await asyncio.wait_for(self._receive(), self._limits.idle_s))
        except TimeoutError:
            return

    def _note_end(self, message: Message) -> None:
        self._is_whole = message["type"] != "http.request" or not message.get("more_body", False)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


def _path(scope: Scope) -> str:
    """The route's own path, so that there are few of them; "other" for one that does not exist."""
    route = scope.get("route")
    return getattr(route, "path", None) or (scope["path"] if scope["path"] in OPEN_PATHS else "other")
