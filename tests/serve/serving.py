"""Servers in this process: the real app under uvicorn, in threads."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import openai
import uvicorn

from localctx.serve.app import make_app
from localctx.serve.keys import KeyRing
from localctx.serve.service import ServeOptions, Service
from localctx.settings import Settings
from localctx.values import Model

ALICE, BOB, SLOW = "alice-key-0123456789", "bob-key-0123456789ab", "slow-key-0123456789a"
KEYS = f"""
[[keys]]
name = "alice"
key = "{ALICE}"
latency_slo_ms = 3600000
tenant_weight = 2
metrics = true

[[keys]]
name = "bob"
key = "{BOB}"
latency_slo_ms = 0.001

[[keys]]
name = "slow"
key = "{SLOW}"
max_tokens_per_sec = 0.01
"""
PATIENCE_S = 120
"""Longer than any machine takes; what is slow is no failure."""
TEXT = "The harbour of Tannau was built in 1871 by Anna Feld. " * 12


@dataclass(frozen=True)
class Serving:
    """A server that answers."""

    service: Service
    url: str

    def client(self, key: str = ALICE) -> openai.OpenAI:
        """The official client with a key."""
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0)


def get(url: str, **more: Any) -> httpx2.Response:
    """A plain request, with patience."""
    return httpx2.get(url, timeout=PATIENCE_S, **more)


def post(url: str, **more: Any) -> httpx2.Response:
    """A plain request with a body, with patience."""
    return httpx2.post(url, timeout=PATIENCE_S, **more)


@contextmanager
def served(
    model: Model,
    settings: Settings,
    ring: KeyRing,
    options: ServeOptions | None = None,
    hosts: frozenset[str] | None = None,
) -> Iterator[Serving]:
    """The app on a free port, in threads of this process."""
    service = Service(model, settings, ring, options or ServeOptions(n_parallel=4))
    listening = socket.create_server(("127.0.0.1", 0))
    app = make_app(service, hosts)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield Serving(service, f"http://127.0.0.1:{listening.getsockname()[1]}")
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
