"""Markdown → its text as it stands, with a section at every ATX or setext heading outside code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from localctx.document.events import Event, Facts, Heading, Options, Text
from localctx.document.source import Source
from localctx.document.text import decoded

__all__ = ["convert"]

ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
NO_TITLE = re.compile(r" {4,}|\t| {0,3}([-*+>|#]|\d+[.)] )|\s*$")
LONG_LINE = 10_000


def convert(source: Source, options: Options) -> Iterator[Event]:
    """The text line by line with its headings, then the facts of its decoding."""
    scanner = Scanner()
    left = ""
    for piece in decoded(source, options):
        if isinstance(piece, Facts):
            yield from scanner.line(left)
            yield from scanner.flush()
            yield piece
            return
        *lines, left = (left + piece).split("\n")
        for line in lines:
            yield from scanner.line(line + "\n")
        if len(left) > LONG_LINE * 100:  # no line of prose: let it go
            yield from scanner.flush()
            yield Text(left)
            left = ""


class Scanner:
    """Finds headings; keeps one line back, because an underline makes the line above a heading."""

    def __init__(self) -> None:
        self._fence = ""
        self._held = ""
        self._may_be_title = False
        self._plain: list[str] = []

    def line(self, line: str) -> Iterator[Event]:
        """The events of the next line, or of those before it."""
        if not line:
            return
        bare = line.rstrip("\r\n") if len(line) < LONG_LINE else ""
        fence = FENCE.match(bare)
        if self._fence:
            if fence is not None and fence[1].startswith(self._fence) and not bare.strip(" `~"):
                self._fence = ""
            self._keep(line, False)
        elif fence is not None:
            self._fence = fence[1]
            self._keep(line, False)
        elif (atx := ATX.match(bare)) is not None:
            yield from self.flush()
            yield Heading(len(atx[1]), plain_title(atx[2] or ""))
            self._keep(line, False)
        elif self._may_be_title and (setext := SETEXT.match(bare)) is not None:
            title, self._held = self._held, ""
            yield from self.flush()
            yield Heading(1 if setext[1][0] == "=" else 2, plain_title(title))
            self._plain += (title, line)
            self._may_be_title = False
        else:
            is_first = not self._may_be_title and not self._held.strip()
            self._keep(line, is_first and NO_TITLE.match(bare) is None)
        if len(self._plain) > 1000:
            yield Text("".join(self._plain))
            self._plain.clear()

    def flush(self) -> Iterator[Event]:
        """Everything that is kept back."""
        text = "".join(self._plain) + self._held
        self._plain.clear()
        self._held, self._may_be_title = "", False
        if text:
            yield Text(text)

    def _keep(self, line: str, may_be_title: bool) -> None:
        """Hold `line` back in place of the one held before."""
        self._plain.append(self._held)
        self._held, self._may_be_title = line, may_be_title


def plain_title(text: str) -> str:
    """A heading without links, emphasis and code marks."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[*`]|(?<!\w)_|_(?!\w)", "", text).strip()
