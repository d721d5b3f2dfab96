"""PPTX → one page a slide: title, text, tables row by row, notes. Reads no pictures or charts."""

from __future__ import annotations

from collections.abc import Iterator

from localctx.document.archive import Archive
from localctx.document.events import Event, Heading, Notice, Options, PageMark, Text
from localctx.document.markup import QuietHandler, local_name
from localctx.document.parts import parse_whole, relationships
from localctx.document.source import Source
from localctx.errors import LimitExceeded, UsageError

__all__ = ["convert"]

MAIN = "ppt/presentation.xml"
TITLE_KINDS = frozenset({"title", "ctrTitle"})
UNREAD_KINDS = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})


def convert(source: Source, options: Options) -> Iterator[Event]:
    """The slides in the order of the show. Raises InputError, LimitExceeded, UsageError (no such slide)."""
    with Archive(source, options.limits) as archive:
        slides, n_missing = slide_members(archive, options)
        if n_missing:
            yield Notice(f"{n_missing:,} of {len(slides) + n_missing:,} slides are missing in the file")
        first, last = options.pages or (1, len(slides))
        if first > len(slides) > 0:
            raise UsageError(f"{source.name}: no such page; it has {len(slides)} slides")
        wanted = range(first, min(last, len(slides)) + 1)
        for number in wanted:
            yield PageMark(number)
            yield from slide_events(archive, slides[number - 1], options)
            if options.on_progress is not None:
                options.on_progress(number - first + 1, len(wanted))


def slide_members(archive: Archive, options: Options) -> tuple[list[str], int]:
    """The members of the slides in order, and how many that are listed cannot be found."""
    handler = SlideIds()
    parse_whole(archive, MAIN, handler, options)
    targets = relationships(archive, MAIN, options)
    members = [targets[key][1] for key in handler.ids if key in targets]
    found = [member for member in members if member in archive]
    return found, len(handler.ids) - len(found)


def slide_events(archive: Archive, member: str, options: Options) -> Iterator[Event]:
    """One slide, then the speaker's notes on it."""
    slide = shapes_of(archive, member, options)
    title = next((text for is_title, text in slide if is_title and text), None)
    if title is not None:
        yield Heading(1, title)
        yield Text(title + "\n\n")
    body = "\n".join(text for is_title, text in slide if text and not is_title)
    if body:
        yield Text(body + "\n\n")
    for kind, target in relationships(archive, member, options).values():
        if kind == "notesSlide" and target in archive:
            notes = "\n".join(text for _, text in shapes_of(archive, target, options) if text)
            if notes:
                yield Text(f"Notes: {notes}\n\n")


def shapes_of(archive: Archive, member: str, options: Options) -> list[tuple[bool, str]]:
    """(is the title, text) of each shape of a slide."""
    handler = Shapes(options.limits.token_bytes)
    parse_whole(archive, member, handler, options)
    return handler.found


class SlideIds(QuietHandler):
    """Handler of presentation.xml: relationship ids of the slides."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if local_name(name) == "sldId":
            self.ids += [
                value for key, value in attributes.items() if key != "id" and local_name(key) == "id"
            ]


class Shapes:
    """Handler of a slide: text of each shape and table, each of at most `max_characters`."""

    def __init__(self, max_characters: int) -> None:
        self._max_characters = max_characters
        self._n_held = 0
        self.found: list[tuple[bool, str]] = []
        self._kind = ""
        self._lines: list[str] = []
        self._line: list[str] = []
        self._cells: list[str] = []
        self._in_text = self._in_cell = False
        self._skip = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        tag = local_name(name)
        if self._skip or tag == "Fallback":
            self._skip += 1
        elif tag in ("sp", "graphicFrame"):
            self._kind, self._lines, self._n_held = "", [], 0
        elif tag == "ph":
            self._kind = attributes.get("type", "body")
        elif tag == "t":
            self._in_text = True
        elif tag == "br":
            self._line.append(" " if self._in_cell or self._kind in TITLE_KINDS else "\n")
        elif tag == "tr":
            self._cells = []
        elif tag == "tc":
            self._in_cell = True
            self._cells.append("")

    def end(self, name: str) -> None:
        """An element ends."""
        tag = local_name(name)
        if self._skip:
            self._skip -= 1
        elif tag == "t":
            self._in_text = False
        elif tag == "p":
            self._end_line("".join(self._line).strip())
            self._line = []
        elif tag == "tc":
            self._in_cell = False
        elif tag == "tr":
            self._lines.append(" | ".join(self._cells))
        elif tag in ("sp", "graphicFrame") and self._kind not in UNREAD_KINDS:
            is_title = self._kind in TITLE_KINDS
            self.found.append((is_title, (" " if is_title else "\n").join(self._lines)))
            self._lines = []

    def data(self, text: str) -> None:
        """Characters: text only inside a:t."""
        if self._in_text and not self._skip:
            self._line.append(text)
            self._n_held += len(text)
            if self._n_held > self._max_characters:
                raise LimitExceeded(f"one shape or table is longer than {self._max_characters:,} characters")

    def _end_line(self, line: str) -> None:
        """Keep a paragraph in its shape or its cell."""
        if self._in_cell:
            self._cells[-1] = f"{self._cells[-1]} {line}".strip()
        elif line:
            self._lines.append(line)
