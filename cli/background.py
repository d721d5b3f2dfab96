"""A command that goes on without its terminal: a child process of its own session, and its log."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from localctx.errors import LocalctxError
from localctx.names import display_name
from localctx.small_text import reason_of

__all__ = ["start"]

PROGRAM = "from localctx.cli.entry import run; run()"
SETTLED_S = 1.0
"""A child that fails at once is told of at once."""
LAST_BYTES = 2000


def start(words: Sequence[str], folder: Path) -> tuple[int, Path]:
    """Run `localctx WORDS...` detached; its process id and its log, a new file in `folder`.

    Raises LocalctxError when it cannot be started, or ends with an error at once.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as output:
            child = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
    except OSError as error:
        raise LocalctxError(f"cannot start in the background: {reason_of(error)}") from None
    try:
        status = child.wait(SETTLED_S)
    except subprocess.TimeoutExpired:
        child.returncode = 0  # it goes on; nobody waits for it
        return child.pid, log
    if status:
        raise LocalctxError(
            _last_line(log) or f"it ended with exit code {status}", f"see {display_name(log)}"
        )
    return child.pid, log


def _last_line(log: Path) -> str:
    """What the child said last."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LAST_BYTES))
        lines = file.read().decode("utf-8", "replace").split("\n")
    said = [line for line in lines if line.strip()]
    return said[-1].removeprefix("localctx: ") if said else ""
