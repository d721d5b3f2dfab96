"""Markdown on a terminal while it is being written: finished blocks stand, the open one is painted again.

Of the open block only lines that changed are written. Knows no commands; uses rich to lay blocks out.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import time
from collections.abc import Callable

from rich.cells import cell_len
from rich.console import Console
from rich.markdown import Markdown

from .terminal import shown_on_terminal, write_as_is

__all__ = ["MarkdownPainter", "rendered"]

LEAST_SECONDS = 0.03
"""Between two paintings of the open block."""
_FENCE = re.compile(r"^ {0,3}(```|~~~)", re.MULTILINE)
_STYLE = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\")
_HELD, _SHOWN = "\x1b[?2026h", "\x1b[?2026l"
"""A terminal that knows these shows what is between them at once."""


def rendered(text: str, width: int) -> list[str]:
    """A block of Markdown as lines of at most `width` cells, with their colours."""
    file = io.StringIO()
    colour = None if os.environ.get("NO_COLOR") else "auto"
    console = Console(file=file, width=width, force_terminal=True, no_color=colour is None, highlight=False)
    console.print(Markdown(text, hyperlinks=False))
    return [line.rstrip() for line in file.getvalue().rstrip("\n").split("\n")]


class MarkdownPainter:
    """add() pieces, then end(). `write` takes what goes to the terminal, `size` says (columns, lines)."""

    def __init__(
        self,
        write: Callable[[str], None] = write_as_is,
        size: Callable[[], tuple[int, int]] = shutil.get_terminal_size,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write, self._size, self._clock = write, size, clock
        self._open = ""
        self._painted: list[str] = []
        self._is_first = True
        self._last = float("-inf")

    def add(self, text: str) -> None:
        """Take the next piece; what it finishes is painted now, the rest when it is time."""
        self._open += shown_on_terminal(text)
        while (cut := _end_of_first_block(self._open)) is not None:
            block, self._open = self._open[:cut], self._open[cut:].lstrip("\n")
            self._finish(block)
        if self._open.strip() and self._clock() - self._last >= LEAST_SECONDS:
            self._paint(self._open)
            self._last = self._clock()

    def end(self) -> None:
        """Paint what is open, and begin anew on a new line."""
        if self._open.strip():
            self._finish(self._open)
        elif self._painted:
            self._write("\n")
        self._open, self._painted, self._is_first = "", [], True

    def _finish(self, block: str) -> None:
        if block.strip():
            self._paint(block)
            self._write("\n")
        self._painted, self._is_first, self._last = [], False, float("-inf")

    def _paint(self, block: str) -> None:
        """Bring the lines of the open block up to date: those that changed, as far as they are in reach."""
        width, height = self._size()
        lines = rendered(block, width)
        lines = lines if self._is_first else ["", *lines]
        same = next(
            (at for at, (a, b) in enumerate(zip(lines, self._painted, strict=False)) if a != b),
            min(len(lines), len(self._painted)),
        )
        rows = [max(1, -(-cell_len(_STYLE.sub("", line)) // width)) for line in self._painted]
        while sum(rows[same:]) > height - 1:  # what has left the screen stays as it is
            same += 1
        if same == len(self._painted):
            lead = "\n" if self._painted and lines[same:] else ""
            out = lead + "\n".join(lines[same:])
        elif same == len(lines) - 1 == len(self._painted) - 1 and lines[same].startswith(self._painted[same]):
            out = lines[same][len(self._painted[same]) :]
        else:
            up = sum(rows[same:]) - 1
            out = "\r" + (f"\x1b[{up}A" if up else "") + "\x1b[J" + "\n".join(lines[same:])
        if out:
            self._write(f"{_HELD}{out}{_SHOWN}")
        self._painted = lines


def _end_of_first_block(text: str) -> int | None:
    """Where the first block of Markdown ends; None while it is open. A fenced one holds empty lines."""
    at = 0
    while (end := text.find("\n\n", at)) >= 0:
        if len(_FENCE.findall(text[:end])) % 2 == 0 and text[end:].strip("\n"):
            return end
        at = end + 1
    return None
