"""XML → labelled lines, streamed: memory does not grow with the file. Knows no schema.

An element with only text becomes `name: text`, attributes stand behind the name, an element with children is
a line of its own before them, mixed content is running text without inner labels. A blank line follows each
group near the root, so that records are paragraphs. Sections come from titles of sections and chapters, never
from records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from localctx.document.events import Event, Facts, Heading, Options, Text
from localctx.document.markup import MarkupParser, declared_encoding, local_name
from localctx.document.source import Source

__all__ = ["convert"]

FLUSH_CHARACTERS = 1 << 16
MAX_NAMES = 10_000
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


@dataclass(frozen=True, slots=True)
class Kind:
    """What an element's name says, looked up once a name."""

    name: str
    is_title: bool
    is_section: bool
    is_paragraph: bool


class Frame:
    """An open element. `text` is its own running text while it is short; inline: open elements inside it;
    is_begun: some of its running text is written already.
    """

    __slots__ = (
        *("has_children", "inline", "is_labelled", "is_mixed", "kind", "label", "last_was_tag"),
        *("is_begun", "n_characters", "n_unwritten", "text"),
    )

    def __init__(self, kind: Kind, label: str) -> None:
        self.kind = kind
        self.label = label
        self.text: list[str] = []
        self.n_characters = self.n_unwritten = self.inline = 0
        self.is_mixed = self.has_children = self.is_labelled = self.last_was_tag = self.is_begun = False


@dataclass(frozen=True, slots=True)
class Held:
    """A finished text element that is not written yet: text may follow that makes it part of running text."""

    kind: Kind
    label: str
    text: str
    heading_level: int | None


class Lines:
    """The handler: keeps the open elements, makes events."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._text: list[str] = []
        self._kinds: dict[str, Kind] = {}
        self._stack: list[Frame] = []
        self._held: Held | None = None
        self._is_blank = True  # the last line written is empty

    def drain(self) -> list[Event]:
        """The events made since the last call."""
        self._flush_text()
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
        if self._held is not None:
            self._release()
        if top is not None:
            top.has_children = True
        kind = self._kinds.get(name) or self._kind(name)
        label = kind.name
        for key, value in attributes.items():
            label += f" {local_name(key)}={one_line(value)}"
        self._stack.append(Frame(kind, label))

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
        if self._held is not None:
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
        if top.is_begun:
            self._flush(top)
            self._write("\n")
            if top.kind.is_paragraph:
                self._blank_line()
        elif top.n_characters or not top.has_children:
            if self._held is not None:
                self._release()
            self._held = Held(top.kind, top.label, one_text(top.text), self._heading_level(top))
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
        if not frame.kind.is_title or len(self._stack) < 2:
            return None
        n_sections = sum(outer.kind.is_section for outer in self._stack[:-1])
        parent = self._stack[-2]
        if parent.kind.is_section:
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
        if not frame.is_begun:
            self._labels(self._stack[:-1])
            if not frame.is_labelled and not frame.kind.is_paragraph:
                self._write(f"{frame.label}: ")
            frame.is_begun = frame.is_labelled = True
        self._write(BREAKS.sub("\n", SPACES.sub(" ", "".join(frame.text))))
        frame.text.clear()
        frame.n_unwritten = 0

    def _release(self) -> None:
        """Write the held element."""
        held, self._held = self._held, None
        if held is None:
            return
        if self._stack and not self._stack[-1].is_labelled:
            self._labels(self._stack)
        if held.heading_level is not None and held.text:
            self._flush_text()
            self._events.append(Heading(held.heading_level, held.text))
            self._write(held.text + "\n")
        elif held.text and held.kind.is_paragraph:
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
                if frame.label != frame.kind.name or not frame.kind.is_section:  # its title says more
                    self._write(frame.label + "\n")

    def _blank_line(self) -> None:
        """End a paragraph, once."""
        if not self._is_blank:
            self._write("\n")
            self._is_blank = True

    def _write(self, text: str) -> None:
        if text:
            self._text.append(text)
            self._is_blank = False

    def _flush_text(self) -> None:
        """Make one event of the text written since the last."""
        if self._text:
            self._events.append(Text("".join(self._text)))
            self._text.clear()

    def _kind(self, name: str) -> Kind:
        """What a name says, remembered; the few names of a document come again and again."""
        plain = local_name(name)
        lower = plain.lower()
        kind = Kind(plain, lower in TITLES, SECTIONS.match(lower) is not None, lower in PARAGRAPHS)
        if len(self._kinds) < MAX_NAMES:
            self._kinds[name] = kind
        return kind


def one_line(text: str) -> str:
    """Text with every run of white space as one space."""
    return " ".join(text.split())


def one_text(parts: list[str]) -> str:
    """Running text: lines without indentation, single spaces."""
    text = parts[0] if len(parts) == 1 else "".join(parts)
    if "\n" not in text and "\t" not in text and "  " not in text:
        return text.strip()
    return BREAKS.sub("\n", SPACES.sub(" ", text)).strip()
