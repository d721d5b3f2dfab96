"""One connection to a server, as cheap as a measuring tool needs it: what comes is handed on as it comes.

Parsing is httptools'. Knows no model and no schema.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit

__all__ = ["Connection", "Reply"]

OnData = Callable[[bytes, float], None]
"""Called with a piece of a body and when it came, in seconds of time.monotonic()."""
PATIENCE_S = 600.0


@dataclass(slots=True)
class Reply:
    """A response without its body; header names in lower case."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)


class Connection:
    """Kept open from one request to the next; one at a time."""

    def __init__(self, url: str) -> None:
        """`url`: where the server listens, with the path that stands before all others."""
        parts = urlsplit(url)
        self._host, self._port, self._prefix = parts.hostname or "", parts.port or 80, parts.path
        self._name = parts.netloc
        self._wire: _Wire | None = None

    async def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, on_data: OnData
    ) -> Reply:
        """The response, once its body is there. Raises OSError when the connection breaks, TimeoutError."""
        lines = [f"{method} {self._prefix}{path} HTTP/1.1", f"Host: {self._name}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines.append(f"Content-Length: {len(body)}\r\n\r\n")
        sent = "\r\n".join(lines).encode("latin-1") + body
        async with asyncio.timeout(PATIENCE_S):
            was_open = self._wire is not None and self._wire.is_open
            try:
                return await (await self._open()).ask(sent, on_data)
            except _ClosedBefore:
                if not was_open:
                    raise
            return await (await self._open()).ask(sent, on_data)  # it was closed while nothing was asked

    async def _open(self) -> _Wire:
        if self._wire is None or not self._wire.is_open:
            loop = asyncio.get_running_loop()
            _, self._wire = await loop.create_connection(_Wire, self._host, self._port)
        return self._wire

    def close(self) -> None:
        """Again is harmless."""
        if self._wire is not None:
            self._wire.close()


class _ClosedBefore(ConnectionError):
    """The connection ended before a byte of the response came."""


class _Wire(asyncio.Protocol):
    """An open connection, and httptools' callbacks of the response that comes."""

    def __init__(self) -> None:
        import httptools

        self._new_parser, self._parser_error = httptools.HttpResponseParser, httptools.HttpParserError
        self._transport: asyncio.Transport | None = None
        self._done: asyncio.Future[Reply] | None = None
        self._reply, self._now, self._has_begun = Reply(), 0.0, False

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, sent: bytes, on_data: OnData) -> Reply:
        if self._transport is None:
            raise ConnectionError("not connected")
        self._reply, self._on_data, self._has_begun = Reply(), on_data, False
        self._parser: Any = self._new_parser(self)
        self._done = asyncio.get_running_loop().create_future()
        self._transport.write(sent)
        try:
            return await self._done
        except BaseException:
            self._transport.abort()  # the rest of the response is nobody's
            raise
        finally:
            self._done = None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # --- asyncio's ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._done is None or self._done.done():
            self.close()  # nothing was asked
            return
        self._now, self._has_begun = time.monotonic(), True
        try:
            self._parser.feed_data(data)
        except self._parser_error as error:
            if not self._done.done():
                self._done.set_exception(ConnectionError(f"no response: {error}"))

    def connection_lost(self, reason: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            kind = ConnectionError if self._has_begun else _ClosedBefore
            self._done.set_exception(kind(str(reason or "the server closed the connection")))

    # --- httptools' -----------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header line."""
        self._reply.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The body begins."""
        self._reply.status = self._parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        self._on_data(data, self._now)

    def on_message_complete(self) -> None:
        """The response is whole."""
        if self._transport is not None and not self._parser.should_keep_alive():
            self._transport.close()
        if self._done is not None and not self._done.done():
            self._done.set_result(self._reply)
