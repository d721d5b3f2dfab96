"""Virtual users of a server: each asks, reads its stream to the end, and asks again. Knows no model."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Asker", "Klass", "make_askers", "run_askers"]

TOPICS = ("harbours", "bridges", "clouds", "violins", "maps", "bread", "tides", "lamps", "gardens", "snow")
LONGEST_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class Klass:
    """A class of tenants, and what its keys are given."""

    name: str
    tenant_weight: float
    latency_slo_ms: float


@dataclass(slots=True)
class Asker:
    """One virtual user and what it got. Times in seconds; statuses other than 200, and breaks, count."""

    number: int
    klass: Klass
    tenant: str
    key: str
    n_answers: int = 0
    n_tokens: int = 0
    n_prompt: int = 0
    first_s: list[float] = field(default_factory=list)
    gap_s: list[float] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)


def make_askers(n_users: int, n_tenants: int, classes: Sequence[Klass]) -> list[Asker]:
    """Users over tenants, tenants over classes, in turn; keys are of this run alone."""
    salt = random.SystemRandom().randbytes(12).hex()
    tenants = [(f"tenant-{n}", f"load-{salt}-{n:04}", classes[n % len(classes)]) for n in range(n_tenants)]
    return [
        Asker(number, klass, name, key)
        for number in range(n_users)
        for name, key, klass in [tenants[number % n_tenants]]
    ]


async def run_askers(askers: Sequence[Asker], url: str, model: str, seconds: float, max_tokens: int) -> float:
    """Let all ask for so long; seconds until the last one was done."""
    import httpx2

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    timeout = httpx2.Timeout(600, connect=30)
    started = time.monotonic()
    async with httpx2.AsyncClient(base_url=url, limits=limits, timeout=timeout, trust_env=False) as client:
        await asyncio.gather(*(_ask_on(one, client, model, started + seconds, max_tokens) for one in askers))
    return time.monotonic() - started


async def _ask_on(asker: Asker, client: Any, model: str, until: float, max_tokens: int) -> None:
    dice = random.Random(asker.number)  # noqa: S311  # no secret
    while time.monotonic() < until:
        topic, number = dice.choice(TOPICS), dice.randrange(10_000)
        body = {
            "model": model,
            "messages": [{"role": "user", "content": f"Write down {number} things about {topic}."}],
            "max_tokens": max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        pause_s = await _ask_once(asker, client, body)
        if pause_s:
            await asyncio.sleep(min(pause_s, LONGEST_PAUSE_S) * dice.uniform(0.5, 1.5))


async def _ask_once(asker: Asker, client: Any, body: dict[str, Any]) -> float:
    """One answer, counted; seconds to wait before the next where it was refused."""
    import httpx2

    asked = last = time.monotonic()
    is_first, is_whole = True, False
    headers = {"Authorization": f"Bearer {asker.key}"}
    try:
        async with client.stream("POST", "/chat/completions", json=body, headers=headers) as response:
            if response.status_code != 200:
                asker.problems[str(response.status_code)] += 1
                await response.aread()
                return float(response.headers.get("retry-after", 1))
            async for line in response.aiter_lines():
                now = time.monotonic()
                if line == "data: [DONE]":
                    is_whole = True
                elif line.startswith("data: "):
                    event = json.loads(line[6:])
                    if "error" in event:
                        asker.problems["stream error"] += 1
                        return 1.0
                    if event["choices"] and event["choices"][0]["delta"].get("content"):
                        (asker.first_s if is_first else asker.gap_s).append(
                            now - (asked if is_first else last)
                        )
                        is_first, last = False, now
                    if event.get("usage"):
                        asker.n_tokens += event["usage"]["completion_tokens"]
                        details = event["usage"]["prompt_tokens_details"]
                        asker.n_prompt += event["usage"]["prompt_tokens"] - details["cached_tokens"]
    except httpx2.HTTPError as error:
        asker.problems[type(error).__name__] += 1
        return 1.0
    asker.n_answers += is_whole
    if not is_whole:
        asker.problems["no end"] += 1
    return 0.0
