"""A pseudo-terminal that the chat is run in, which answers where its cursor stands, as a real one does."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pexpect

PATIENCE_S = 180
"""Longer than any machine takes; what is slow is no failure."""
SEQUENCES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x1b\x07]*(?:\x07|\x1b\\)|\x1b[=>]|\r|.\x08")
WHERE = "\x1b[6n"
PROGRAM = "from localctx.cli.entry import run; run()"
LINGERING = """
import time
from localctx.engine.generation import Generation

collect = Generation._collect

def lingering(generation, batch):
    time.sleep(0.03)
    collect(generation, batch)

Generation._collect = lingering
"""
"""Before PROGRAM: a token takes 30 ms at least, so that an answer is not over while a test looks."""
LINGERING_PREFILL = """
import time
from localctx.session.encoding import Encoder

encode = Encoder._encode

def lingering(encoder, chunk):
    time.sleep(0.3)
    encode(encoder, chunk)

Encoder._encode = lingering
"""
"""The same for a prefill: a thousand tokens take 0.3 s at least."""
PAINTS = "\x1b[?2026h"


class PseudoTerminal:
    """`localctx WORDS...` on a terminal of so many lines and columns. Use `with`."""

    def __init__(
        self,
        words: list[str],
        home: Path,
        lines: int = 40,
        columns: int = 100,
        piped: Path | None = None,
        before: str = "",
    ) -> None:
        """piped: a file that is standard input, while the terminal stays the terminal · before: what the
        program does first.
        """
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("XDG_")},
            "HOME": str(home),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
        }
        program = [sys.executable, "-c", before + PROGRAM, *words]
        self.child: Any = pexpect.spawn(
            "/bin/sh",
            ["-c", "exec " + shlex.join(program) + (f" < {shlex.quote(str(piped))}" if piped else "")],
            dimensions=(lines, columns),
            encoding="utf-8",
            timeout=PATIENCE_S,
            env=environment,
        )
        self.raw = ""
        self._seen = 0

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.close(force=True)

    @property
    def text(self) -> str:
        """All that was written so far, without control sequences."""
        return SEQUENCES.sub("", self.raw)

    def wait(self, *wanted: str, seconds: float = PATIENCE_S) -> str:
        """Read until all of the texts stand behind what was waited for last; that part."""
        until = time.monotonic() + seconds
        while True:
            part = self.text[self._seen :]
            if all(one in part for one in wanted):
                self._seen = max(self._seen + part.index(one) + len(one) for one in wanted)
                return part
            if time.monotonic() > until or not self._read():
                raise AssertionError(f"waited for {wanted}, got {part!r}")

    def painted(self) -> None:
        """Wait until a piece of an answer is shown."""
        before = self.raw.count(PAINTS)
        until = time.monotonic() + PATIENCE_S
        while self.raw.count(PAINTS) == before:
            assert time.monotonic() < until
            assert self._read()

    def _read(self) -> bool:
        """Take what there is; False when the program has ended."""
        try:
            piece = self.child.read_nonblocking(4096, timeout=0.2)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += piece
        for _ in range(piece.count(WHERE)):
            self.child.send("\x1b[1;1R")
        return True

    def type(self, keys: str) -> None:
        """Press keys."""
        self.child.send(keys)

    def enter(self, line: str) -> None:
        """Type a line when the editor waits for one."""
        self.ready()
        self.type(line + "\r")

    def ready(self) -> None:
        """Wait until the editor has the terminal: it shows its status line."""
        self.wait("tiny ·")

    def end(self) -> int:
        """Wait until the program ends; its exit code."""
        until = time.monotonic() + PATIENCE_S
        while self._read():
            assert time.monotonic() < until, f"it does not end: {self.raw[-400:]!r}"
        self.child.close()
        return int(self.child.exitstatus if self.child.exitstatus is not None else -self.child.signalstatus)
