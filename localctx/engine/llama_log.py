"""Catches llama.cpp's log while a model or context is made. Is handed llama_cpp, does not import it.

Only then, and in a worker thread: Python code called back from C on the main thread would meet a Ctrl-C
there, as a stray traceback. At all other times the log goes to a C function that ignores it.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable
from typing import Any

from localctx._native import ignore_log_address
from localctx.engine.uninterrupted import wait_whatever_comes

__all__ = ["LoadLog", "logged", "silence"]

_LOG_ERROR, _LOG_CONTINUED = 4, 5  # enum ggml_log_level (the comment in llama_cpp._logger is out of date)
_lock = threading.Lock()


def silence(lib: Any) -> None:
    """Send llama.cpp's log to a C function that ignores it."""
    lib.llama_log_set(lib.llama_log_callback(ignore_log_address), ctypes.c_void_p(0))


class LoadLog:
    """llama.cpp's lines during one operation."""

    def __init__(self, lib: Any) -> None:
        self.lines: list[tuple[int, str]] = []
        self.callback = lib.llama_log_callback(self._keep)

    def _keep(self, level: int, text: bytes | None, _: object) -> None:
        line = (text or b"").decode("utf-8", "replace")
        if level == _LOG_CONTINUED and self.lines:
            self.lines[-1] = (self.lines[-1][0], self.lines[-1][1] + line)
        else:
            self.lines.append((level, line))

    @property
    def text(self) -> str:
        return "".join(line for _, line in self.lines)

    def error(self) -> str:
        """The line that says most about a failure: the first error, without the C function's name."""
        errors = [line.strip() for level, line in self.lines if level == _LOG_ERROR and line.strip()]
        return re.sub(r"^\w+: (error loading model: )?", "", errors[0]) if errors else "no reason given"


def logged(
    lib: Any, work: Callable[[Callable[[], bool]], int | None], free: Callable[[int], object]
) -> tuple[int | None, LoadLog]:
    """Run `work(go_on)` in a worker thread with the log caught. On Ctrl-C go_on() turns False and, when the
    work has ended, what it made is freed and the exception goes on.
    """
    log, stop, ended = LoadLog(lib), threading.Event(), threading.Event()
    results: list[int | None] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work(lambda: not stop.is_set()))
        except BaseException as error:  # noqa: BLE001  (raised again in the caller's thread)
            errors.append(error)
        finally:
            ended.set()

    with _lock:
        lib.llama_log_set(log.callback, ctypes.c_void_p(0))
        thread = threading.Thread(target=run, name="llama.cpp", daemon=True)
        try:
            thread.start()
            ended.wait()  # not join(): before Python 3.13 an interrupted join() takes the thread for ended
        except KeyboardInterrupt:
            stop.set()
            wait_whatever_comes(ended)
            for made in filter(None, results):
                free(made)
            raise
        finally:
            silence(lib)
    if errors:
        raise errors[0]
    return results[0], log
