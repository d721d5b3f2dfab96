"""Listening: the socket, signals, and the order in which a server stops. The app is app.py's."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from localctx._native import AbortFlag
from localctx.errors import Interrupted, LocalctxError, UsageError
from localctx.serve.app import make_app
from localctx.serve.gate import LOOPBACK_NAMES
from localctx.serve.service import Service
from localctx.serve.worker import Worker

__all__ = ["check_address", "is_loopback", "listen", "serve"]

BACKLOG = 1024
SWITCH_S = 0.0005
"""The decoding thread waits so long at most until the loop lets it run on: a tenth of what Python has."""
LAST_S = 10
"""Seconds for connections to close after the last answer was ended."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_address(host: str, *, has_keys: bool, force: bool) -> str | None:
    """What to say about an address that others reach; None for loopback. Raises UsageError where no key
    protects it.
    """
    if is_loopback(host):
        return None
    if not has_keys and not force:
        raise UsageError(
            f"--host {host} lets anyone on the network use this server",
            "--api-key-file FILE, or --force to do without keys",
        )
    guard = "keys protect it, nothing is encrypted" if has_keys else "anyone can use it"
    return f"others on the network reach {host}: {guard}"


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises UsageError where that is not possible."""
    if not 0 <= port <= 65_535:
        raise UsageError(f"cannot listen on {host}:{port}", "a port from 1 to 65535, 0 for a free one")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise UsageError(
            f"cannot listen on {host}:{port}: {reason}", "--port N takes another port, 0 a free one"
        ) from None


class _Server(uvicorn.Server):
    """A signal lets running answers finish, for grace_s seconds; a second one ends them."""

    def __init__(
        self, config: uvicorn.Config, worker: Worker, grace_s: float, on_watching: Callable[[], None]
    ) -> None:
        """on_watching: called when a signal ends the server in order."""
        super().__init__(config)
        self._on_watching = on_watching
        self._worker = worker
        self._timer = threading.Timer(grace_s, worker.end)
        self._timer.daemon = True
        self.signal_number: int | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # In a thread: the worker's lock may be held by what the signal interrupted.
        if self.signal_number is None:
            self.signal_number = sig
            threading.Thread(target=self._worker.drain, daemon=True).start()
            self._timer.start()
        else:
            threading.Thread(target=self._worker.end, daemon=True).start()
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Like uvicorn's, but the signals do their work here and are not raised again."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        earlier = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            self._on_watching()
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)


def serve(
    service: Service, listening: socket.socket, host: str, *, grace_s: float, say: Callable[[str], None]
) -> None:
    """Serve until a signal: then nothing more is taken, running answers have grace_s seconds to end.

    Raises Interrupted after Ctrl-C, LocalctxError when the decoding thread has failed.
    """
    hosts = None
    if service.ring.is_open and is_loopback(host):
        hosts = LOOPBACK_NAMES | {host.lower()}
    config = uvicorn.Config(
        make_app(service, hosts),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=round(grace_s) + LAST_S,
        timeout_keep_alive=30,
        lifespan="on",
    )
    guard = AbortFlag()
    guard.watch(
        [signal.SIGINT]
    )  # no context of the engine takes Ctrl-C for itself: it ends the server in order
    address, port = listening.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    line = f"serving {service.model.info.name} at http://{shown}:{port}/v1"
    server = _Server(config, service.worker, grace_s, lambda: say(line))
    switch_s = sys.getswitchinterval()
    try:
        sys.setswitchinterval(SWITCH_S)
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:  # uvloop's, where it is there
            runner.run(server.serve(sockets=[listening]))
    finally:
        sys.setswitchinterval(switch_s)
        guard.unwatch()
        listening.close()
    if service.worker.failure is not None:
        raise LocalctxError("the decoding thread ended unexpectedly", "LOCALCTX_DEBUG=1 shows where")
    if server.signal_number == signal.SIGINT:
        raise Interrupted("interrupted")
