"""SIGTERM and SIGHUP end a program as Ctrl-C does: children end, temporary files go, what is kept is whole.

Knows nothing of the work.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["check_end_signals", "ending_signals", "exit_code", "handlers_kept", "watch_end_signals"]

AT_ONCE_S = 1.0
"""A signal so soon after another is the same wish: `timeout` sends two, systemd SIGHUP behind SIGTERM."""
_NUMBERS = tuple(
    number for number in (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")) if number is not None
)
_received: list[int] = []
_acted_at = float("-inf")


def watch_end_signals() -> None:
    """From now on they interrupt the main thread, which calls this; what is ignored (nohup) stays so."""
    for number in _NUMBERS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """The body may install handlers that leave by SystemExit, as Ray does: afterwards they are gone, and what
    they had to do meanwhile is done as here.
    """
    earlier = {number: signal.getsignal(number) for number in _NUMBERS}
    try:
        yield
    except SystemExit as error:
        if error.code != signal.SIGTERM:  # 1, an error's code, is SIGHUP's number too
            raise
        _received.append(signal.SIGTERM)
        raise KeyboardInterrupt from None
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in earlier.items():
                signal.signal(number, handler)


def ending_signals() -> tuple[int, ...]:
    """The signals that stop the work at once: Ctrl-C, and what is watched here."""
    return (signal.SIGINT, *(number for number in _NUMBERS if signal.getsignal(number) is _interrupt))


def check_end_signals() -> None:
    """Where nothing new may be begun, as a prompt for the next line: raises KeyboardInterrupt if one came."""
    if _received:
        raise KeyboardInterrupt


def exit_code(code: int) -> int:
    """A program's exit code: that of the signal where one came and the work was not done all the same."""
    return 128 + _received[0] if code and _received else code


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C does."""
    global _acted_at  # noqa: PLW0603  # a handler is given nothing
    _received.append(number)
    now = time.monotonic()
    if now - _acted_at < AT_ONCE_S:
        return
    _acted_at = now
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)
