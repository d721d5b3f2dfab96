"""XML → labelled lines, streamed: memory does not grow with the file. Knows no schema.

An element with only text becomes `name: text`, attributes stand behind the name, an element with children is
a line of its own before them, mixed content is running text without inner labels. A blank line follows each
group near the root, so that records are paragraphs. Sections come from titles of sections and chapters, never
from records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from localctx.document.events import Event, Facts, Heading, Options, Text
from localctx.document.markup import MarkupParser, declared_encoding, local_name
from localctx.document.source import Source

__all__ = ["convert"]

FLUSH_CHARACTERS = 1 << 16
RECORD_DEPTH = 3  # children of the root, or of its one container
PARAGRAPHS = frozenset({"p", "para", "simpara", "paragraph"})
TITLES = frozenset({"title", "head", "heading"})
SECTIONS = re.compile(r"(section|sect\d|chapter|appendix|preface|sec|div\d?|topic)$", re.I)
SPACES = re.compile(r"[ \t\r\f\v]+")
BREAKS = re.compile(r" ?\n\s*")


def convert(source: Source, options: Options) -> Iterator[Event]:
    """The document's lines. Raises NotThisFormat where it is not well-formed, LimitExceeded."""
    lines = Lines()
    encoding = declared_encoding(source.head(1024), options.encoding)
    parser = MarkupParser(lines, options.limits, encoding)
    for _ in parser.feed(source.chunks(options.on_progress, encoding.mark_bytes)):
        yield from lines.drain()
    yield Facts(encoding.name, parser.decoder.n_replaced)


@dataclass(slots=True)
class Frame:
    """An open element. `text` is its own running text while it is short; inline: open elements inside it."""

    label: str
    name: str
    text: list[str] = field(default_factory=list)
    n_characters: int = 0
    n_unwritten: int = 0
    is_mixed: bool = False
    has_children: bool = False
    is_labelled: bool = False
    inline: int = 0
    last_was_tag: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """A finished text element that is not written yet: text may follow that makes it part of running text."""

    label: str
    text: str
    heading_level: int | None


class Lines:
    """The handler: keeps the open elements, makes events."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._stack: list[Frame] = []
        self._held: Held | None = None
        self._is_blank = True  # the last line written is empty

    def drain(self) -> list[Event]:
        """The events made since the last call."""
        events, self._events = self._events, []
        return events

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Open an element, or go on inside running text."""
        top = self._stack[-1] if self._stack else None
        if top is not None and (top.is_mixed or top.n_characters):
            top.is_mixed = True
            top.inline += 1
            if top.last_was_tag:
                self._collect(top, " ")
            return
        self._release()
        if top is not None:
            top.has_children = True
        plain = local_name(name)
        pairs = "".join(f" {local_name(key)}={one_line(value)}" for key, value in attributes.items())
        self._stack.append(Frame(plain + pairs, plain))

    def data(self, text: str) -> None:
        """Characters of the innermost element."""
        top = self._stack[-1]
        if not top.is_mixed and not top.n_characters and text.isspace():
            return
        held = self._held
        if held is not None and held.heading_level is None:
            self._held = None  # `<p><b>word</b> and more`: one running text
            top.is_mixed = True
            self._collect(top, held.text)
        self._release()
        self._collect(top, text)
        top.last_was_tag = False

    def end(self, name: str) -> None:
        """Close an element: hold it back if it is text, write the blank line if it was a group."""
        top = self._stack[-1]
        if top.inline:
            top.inline -= 1
            top.last_was_tag = True
            return
        if top.is_labelled and top.n_characters and not top.has_children:  # long text, partly written
            self._flush(top)
            self._write("\n")
        elif top.n_characters or not top.has_children:
            self._release()
            self._held = Held(top.label, one_text(top.text), self._heading_level(top))
        elif top.is_mixed or top.has_children:
            self._release()
        self._stack.pop()
        if top.has_children and len(self._stack) < RECORD_DEPTH:
            self._release()
            self._blank_line()
        if not self._stack:
            self._release()

    def _heading_level(self, frame: Frame) -> int | None:
        """The level of a section's title; None for any other element."""
        if frame.name.lower() not in TITLES or len(self._stack) < 2:
            return None
        n_sections = sum(1 for outer in self._stack[:-1] if SECTIONS.match(outer.name))
        parent = self._stack[-2]
        if SECTIONS.match(parent.name):
            return n_sections + 1
        return 1 if len(self._stack) == 2 else None

    def _collect(self, frame: Frame, text: str) -> None:
        """Add to an element's running text; long text is written at once."""
        frame.text.append(text)
        frame.n_characters += len(text)
        frame.n_unwritten += len(text)
        if frame.n_unwritten > FLUSH_CHARACTERS:
            self._flush(frame)

    def _flush(self, frame: Frame) -> None:
        """Write the text collected so far, after the label."""
        self._release()
        if not frame.is_labelled:
            self._labels(self._stack[:-1])
            frame.is_labelled = True
            self._write(f"{frame.label}: ")
        self._write(BREAKS.sub("\n", SPACES.sub(" ", "".join(frame.text))))
        frame.text.clear()
        frame.n_unwritten = 0

    def _release(self) -> None:
        """Write the held element."""
        held, self._held = self._held, None
        if held is None:
            return
        self._labels(self._stack)
        if held.heading_level is not None and held.text:
            self._events.append(Heading(held.heading_level, held.text))
            self._write(held.text + "\n")
        elif held.text and held.label.lower() in PARAGRAPHS:
            self._write(held.text + "\n")
            self._blank_line()
        elif held.text:
            self._write(f"{held.label}: {held.text}\n")
        elif " " in held.label:
            self._write(held.label + "\n")

    def _labels(self, frames: list[Frame]) -> None:
        """Write the lines of groups that have none yet."""
        for frame in frames:
            if not frame.is_labelled:
                frame.is_labelled = True
                if SECTIONS.match(frame.label) is None:  # its title says more
                    self._write(frame.label + "\n")

    def _blank_line(self) -> None:
        """End a paragraph, once."""
        if not self._is_blank:
            self._write("\n")
            self._is_blank = True

    def _write(self, text: str) -> None:
        if text:
            self._events.append(Text(text))
            self._is_blank = False


def one_line(text: str) -> str:
    """Text with every run of white space as one space."""
    return " ".join(text.split())


def one_text(parts: list[str]) -> str:
    """Running text: lines without indentation, single spaces."""
    return BREAKS.sub("\n", SPACES.sub(" ", "".join(parts))).strip()
