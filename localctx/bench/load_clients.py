"""Virtual users of a server: each asks, reads its stream to the end, and asks again. Knows no model."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from localctx.bench.load_documents import Documents, Refused
from localctx.bench.load_http import Connection

__all__ = ["Answered", "Asker", "Klass", "Traffic", "make_askers", "prompt_of", "run_askers"]

TOPICS = ("harbours", "bridges", "clouds", "violins", "maps", "bread", "tides", "lamps", "gardens", "snow")
LONGEST_PAUSE_S = 5.0
HAS_TEXT = re.compile(rb'"delta":\{"(?:reasoning_)?content":"[^"]')
HAS_MORE = re.compile(rb'"(?:error|usage|localctx)":\{')


@dataclass(frozen=True, slots=True)
class Klass:
    """A class of tenants, and what its keys are given."""

    name: str
    tenant_weight: float
    latency_slo_ms: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """What users ask of `model`, for so many seconds. max_tokens: of one answer · rate: requests a second
    that arrive whether answers come or not (open loop); None: each user asks when it has its answer (closed
    loop) · documents: what the questions are on; None: chats.
    """

    model: str
    seconds: float
    max_tokens: int
    rate: float | None = None
    documents: Documents | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """One whole answer. kind: "chat", "cold" or "warm" · first_s: to its first text, in an open loop from
    when it was due, None without any text · gap_s: between its pieces · upload_s: of a cold document.
    """

    kind: str
    first_s: float | None
    gap_s: tuple[float, ...]
    n_tokens: int
    upload_s: float | None = None
    document_tokens: int = 0


@dataclass(slots=True)
class Asker:
    """One virtual user and what it got; statuses other than 200, and breaks, count as problems."""

    number: int
    klass: Klass
    tenant: str
    key: str
    answers: list[Answered] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)

    @property
    def headers(self) -> dict[str, str]:
        """Of each request."""
        return {"Authorization": f"Bearer {self.key}"}

    @property
    def n_tokens(self) -> int:
        """Tokens that were generated for it."""
        return sum(one.n_tokens for one in self.answers)


def make_askers(n_users: int, n_tenants: int, classes: Sequence[Klass]) -> list[Asker]:
    """Users over tenants, tenants over classes, in turn; keys are of this run alone."""
    salt = random.SystemRandom().randbytes(12).hex()
    tenants = [(f"tenant-{n}", f"load-{salt}-{n:04}", classes[n % len(classes)]) for n in range(n_tenants)]
    return [
        Asker(number, klass, name, key)
        for number in range(n_users)
        for name, key, klass in [tenants[number % n_tenants]]
    ]


def prompt_of(dice: random.Random) -> str:
    """A question without a document, unlike most others."""
    return f"Write down {dice.randrange(10_000)} things about {dice.choice(TOPICS)}."


async def run_askers(askers: Sequence[Asker], url: str, traffic: Traffic) -> tuple[float, int]:
    """Let all ask; seconds until the last one was done, and arrivals that nobody was free for in time."""
    started = time.monotonic()
    until = started + traffic.seconds
    users = [_User(one, url, traffic) for one in askers]
    try:
        if traffic.rate is None:
            await asyncio.gather(*(one.ask_on(until) for one in users))
            n_left = 0
        else:
            n_left = await _arrivals(users, traffic.rate, started, until)
    finally:
        for one in users:
            one.connection.close()
    return time.monotonic() - started, n_left


async def _arrivals(users: Sequence[_User], rate: float, at: float, until: float) -> int:
    """Requests at random times, `rate` a second on average (Poisson), to whichever user is free."""
    due: asyncio.Queue[float] = asyncio.Queue()
    asking = [asyncio.ensure_future(one.ask_when_due(due)) for one in users]
    dice = random.Random(0)  # noqa: S311  # no secret
    while (at := at + dice.expovariate(rate)) < until:
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        due.put_nowait(at)
    n_left = due.qsize()
    while not due.empty():
        due.get_nowait()
    for _ in users:
        due.put_nowait(0.0)
    await asyncio.gather(*asking)
    return n_left


class _User:
    """An asker at work."""

    def __init__(self, asker: Asker, url: str, traffic: Traffic) -> None:
        self.connection = Connection(url)
        self._asker, self._traffic = asker, traffic
        self._dice = random.Random(asker.number)  # noqa: S311  # no secret

    async def ask_on(self, until: float) -> None:
        """Closed loop: ask once, and again as soon as the last answer is there."""
        pause_s = await self._ask(time.monotonic())
        while time.monotonic() < until:
            if pause_s:
                await asyncio.sleep(min(pause_s, LONGEST_PAUSE_S) * self._dice.uniform(0.5, 1.5))
            pause_s = await self._ask(time.monotonic())

    async def ask_when_due(self, due: asyncio.Queue[float]) -> None:
        """Open loop: ask when a request is due; 0.0 ends."""
        while at := await due.get():
            await self._ask(at)

    async def _ask(self, asked: float) -> float:
        """One answer, counted; seconds to wait before the next where it was refused."""
        traffic, asker = self._traffic, self._asker
        try:
            if traffic.documents is None:
                return await self._answer("chat", prompt_of(self._dice), {}, asked)
            async with traffic.documents.one(self.connection, asker.tenant, asker.headers, self._dice) as one:
                more = {"localctx": {"documents": [one.file_id]}}
                asked = asked if one.upload_s is None else time.monotonic()
                return await self._answer(one.kind, one.question, more, asked, one.upload_s)
        except Refused as error:  # the document, or its removal
            asker.problems[str(error.status)] += 1
            return error.pause_s
        except (OSError, TimeoutError) as error:
            asker.problems[type(error).__name__.lstrip("_")] += 1
            return 1.0

    async def _answer(
        self, kind: str, text: str, more: Mapping[str, object], asked: float, upload_s: float | None = None
    ) -> float:
        body = {
            "model": self._traffic.model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": self._traffic.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            **more,
        }
        events = _Events()
        headers = {**self._asker.headers, "Content-Type": "application/json"}
        reply = await self.connection.request(
            "POST", "/chat/completions", headers, json.dumps(body).encode(), events.take
        )
        if reply.status != 200:
            self._asker.problems[str(reply.status)] += 1
            return float(reply.headers.get("retry-after", 1))
        problem = events.problem
        if problem is not None:
            self._asker.problems[problem] += 1
            return 1.0
        self._asker.answers.append(events.answered(kind, asked, upload_s))
        return 0.0


class _Events:
    """The events of one stream, looked into no further than is needed."""

    def __init__(self) -> None:
        self._rest = b""
        self._times: list[float] = []
        self._n_tokens = self._document_tokens = 0
        self._is_whole = self._has_failed = False

    def take(self, data: bytes, now: float) -> None:
        """A piece of the body."""
        *events, self._rest = (self._rest + data).split(b"\n\n")
        for event in events:
            if HAS_TEXT.search(event):
                self._times.append(now)
            elif event == b"data: [DONE]":
                self._is_whole = True
            elif HAS_MORE.search(event):
                self._read(json.loads(event.removeprefix(b"data: ")))

    def _read(self, value: dict[str, Any]) -> None:
        self._has_failed |= "error" in value
        if usage := value.get("usage"):
            self._n_tokens = usage["completion_tokens"]
        if facts := value.get("localctx"):
            self._document_tokens = facts["coverage"]["tokens_total"]

    @property
    def problem(self) -> str | None:
        """Why it is no whole answer."""
        return "stream error" if self._has_failed else None if self._is_whole else "no end"

    def answered(self, kind: str, asked: float, upload_s: float | None) -> Answered:
        """The answer as it came."""
        times = self._times
        gaps = tuple(later - earlier for earlier, later in pairwise(times))
        first_s = times[0] - asked if times else None
        return Answered(kind, first_s, gaps, self._n_tokens, upload_s, self._document_tokens)
