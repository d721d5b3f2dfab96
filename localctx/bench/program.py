"""A module of measurements as a program: an error is one line and an exit code; what it starts ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from localctx.end_signals import exit_code, watch_end_signals
from localctx.errors import Interrupted, LocalctxError

__all__ = ["ended", "run_as_program"]

STOP_S = 60.0
"""A server lets answers finish."""


def run_as_program(main: Callable[[], int | None]) -> NoReturn:
    """Call it and exit, with the code that it returns; Ctrl-C, SIGTERM and SIGHUP are told as an error is."""
    watch_end_signals()
    try:
        status = main() or 0
    except KeyboardInterrupt:
        status = _told(Interrupted("interrupted"))
    except LocalctxError as error:
        status = _told(error)
    sys.exit(exit_code(status))


@contextmanager
def ended(process: subprocess.Popen[Any]) -> Iterator[None]:
    """It has ended after the body, whatever happened there: in order, so that it leaves nothing, where that
    takes no longer than STOP_S. Its pipes stay open.
    """
    try:
        yield
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _told(error: LocalctxError) -> int:
    hint = f" ({error.hint})" if error.hint else ""
    sys.stderr.write(" ".join(f"localctx: {error.message}{hint}".split()) + "\n")
    return error.exit_code
