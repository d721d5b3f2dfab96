"""Documents of so many tokens that virtual users ask about: cold ones, never seen, and warm ones.

Made of Python's documentation, each begun elsewhere under a title of its own. Knows the server's two requests
for files; no model.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

from localctx.bench.load_http import Connection
from localctx.errors import LocalctxError

__all__ = ["DocumentKind", "Documents", "Opened", "Refused"]

DocumentKind: TypeAlias = Literal["cold", "warm", "mixed"]
BOUNDARY = "localctx-load-boundary"
WORD = re.compile(r"[a-z]{5,}")
N_WORDS = 3
WORDS_WITHIN = 400
"""Characters in which the words of a question stand."""


class Refused(LocalctxError):
    """The server refused a request. status: what it said · pause_s: until it may be asked again."""

    def __init__(self, message: str, status: int, pause_s: float) -> None:
        super().__init__(message)
        self.status, self.pause_s = status, pause_s


@dataclass(frozen=True, slots=True)
class Opened:
    """A document that may be asked about. upload_s: until it was taken and read; None for a warm one."""

    kind: Literal["cold", "warm"]
    file_id: str
    question: str
    upload_s: float | None = None


class Documents:
    """Of all users of one run."""

    def __init__(self, source: str, n_characters: int, kind: DocumentKind) -> None:
        """`source`: the text they are cut from, over again where it is short."""
        self._source, self._n_characters, self._kind = source, n_characters, kind
        self._n_made = 0
        self._warm: dict[str, tuple[str, str]] = {}

    @property
    def is_kept(self) -> bool:
        """Whether some are there before the run begins."""
        return self._kind != "cold"

    async def prepare(self, url: str, model: str, tenants: Mapping[str, Mapping[str, str]]) -> None:
        """Upload a warm document for each tenant (headers by name) and ask about it. Raises LocalctxError."""
        for tenant, headers in tenants.items():
            connection = Connection(url)
            try:
                text = self._text()
                question = _question(text, random.Random(0))  # noqa: S311  # the same each time, no secret
                file_id, _ = await _upload(connection, headers, text)
                body = {
                    "model": model,
                    "messages": [{"role": "user", "content": question}],
                    "max_tokens": 1,
                    "localctx": {"documents": [file_id]},
                }
                more = {**headers, "Content-Type": "application/json"}
                await _request(connection, "POST", "/chat/completions", more, json.dumps(body).encode())
            except OSError as error:  # with TimeoutError
                reason = error.strerror or str(error) or type(error).__name__
                raise LocalctxError(
                    f"uploading a document to {url} failed: {reason}",
                    "a smaller --doc-len or fewer --tenants, if the server had no memory or time for them",
                ) from None
            finally:
                connection.close()
            self._warm[tenant] = file_id, text

    @asynccontextmanager
    async def one(
        self, connection: Connection, tenant: str, headers: Mapping[str, str], dice: random.Random
    ) -> AsyncIterator[Opened]:
        """A document for one question; a cold one is removed afterwards. Raises OSError, Refused."""
        is_warm = self._kind == "warm" or (self._kind == "mixed" and dice.random() < 0.5)
        if is_warm:
            file_id, text = self._warm[tenant]
            yield Opened("warm", file_id, _question(text, dice))
            return
        text = self._text()
        file_id, upload_s = await _upload(connection, headers, text)
        try:
            yield Opened("cold", file_id, _question(text, dice), upload_s)
        finally:
            await _request(connection, "DELETE", f"/files/{file_id}", headers, b"")

    def _text(self) -> str:
        """One that was not there before."""
        self._n_made += 1
        start = self._n_made * 7919 % len(self._source)
        n_copies = 2 + self._n_characters // len(self._source)
        body = (self._source * n_copies)[start : start + self._n_characters]
        return f"# Volume {self._n_made}\n\n{body}\n"


def _question(text: str, dice: random.Random) -> str:
    """About words of some place in the text."""
    at = dice.randrange(max(1, len(text) - WORDS_WITHIN))
    words: Sequence[str] = list(dict.fromkeys(WORD.findall(text, at, at + WORDS_WITHIN)))[:N_WORDS]
    return f"What does the text say about {', '.join(words) or 'its subject'}?"


async def _upload(connection: Connection, headers: Mapping[str, str], text: str) -> tuple[str, float]:
    """(id, seconds)."""
    parts = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n'
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="volume.md"\r\n\r\n'
        f"{text}\r\n--{BOUNDARY}--\r\n"
    )
    more = {**headers, "Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    started = time.monotonic()
    said = await _request(connection, "POST", "/files", more, parts.encode())
    return str(json.loads(said)["id"]), time.monotonic() - started


async def _request(
    connection: Connection, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> bytes:
    """The body of a response with status 200. Raises OSError, Refused for another."""
    pieces: list[bytes] = []
    reply = await connection.request(method, path, headers, body, lambda data, _: pieces.append(data))
    said = b"".join(pieces)
    if reply.status != 200:
        message = f"{method} {path}: {reply.status} {said[:200].decode('utf-8', 'replace')}"
        raise Refused(message, reply.status, float(reply.headers.get("retry-after", 1)))
    return said
