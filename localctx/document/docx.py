"""DOCX → paragraphs, table rows, headings from styles, notes at the end. Streams; reads no pictures."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from localctx.document.archive import Archive
from localctx.document.events import Event, Heading, Options, Text
from localctx.document.markdown_table import header_rule, table_row
from localctx.document.markup import QuietHandler, attribute, local_name
from localctx.document.parts import parse_member, parse_whole, relationships
from localctx.document.source import Source
from localctx.errors import LimitExceeded

__all__ = ["convert"]

TITLE_STYLES = {"title": 1}
HEADING_STYLE = re.compile(r"heading ([1-9])$", re.I)
NOTES = frozenset({"footnote", "endnote"})
SKIPPED = frozenset({"del", "moveFrom", "Fallback", "instrText", "delText", "pict"})
ELEMENT_CHARACTERS = 64
"""What an open paragraph or cell counts for, so that empty ones count too."""
SYMBOLS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


def convert(source: Source, options: Options) -> Iterator[Event]:
    """The document's text. Raises InputError, LimitExceeded."""
    with Archive(source, options.limits) as archive:
        main = main_part(archive, options)
        folder = posixpath.dirname(main)
        styles = Styles()
        if f"{folder}/styles.xml" in archive:
            parse_whole(archive, f"{folder}/styles.xml", styles, options)
        body = Body(styles.levels(), options.limits.token_bytes)
        for _ in parse_member(archive, main, body, options):
            yield from body.drain()
            if options.on_progress is not None:
                options.on_progress(min(archive.n_bytes_read, source.size_bytes), source.size_bytes)
        for name in ("footnotes.xml", "endnotes.xml"):
            if f"{folder}/{name}" in archive:
                notes = Notes({}, options.limits.token_bytes)
                for _ in parse_member(archive, f"{folder}/{name}", notes, options):
                    yield from notes.drain()


def main_part(archive: Archive, options: Options) -> str:
    """The member that holds the document's body."""
    for kind, member in relationships(archive, "", options).values():
        if kind == "officeDocument" and member in archive:
            return member
    return "word/document.xml"


class Styles(QuietHandler):
    """Handler of styles.xml: style id → name, base style, outline level."""

    def __init__(self) -> None:
        self._styles: dict[str, dict[str, str]] = {}
        self._current: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag, value = local_name(name), attribute(attributes, "val") or ""
        if tag == "style":
            self._current = self._styles.setdefault(attribute(attributes, "styleId") or "", {})
        elif tag in ("name", "basedOn", "outlineLvl"):
            self._current.setdefault(tag, value)

    def end(self, name: str) -> None:
        if local_name(name) == "style":
            self._current = {}

    def levels(self) -> dict[str, int]:
        """Heading level of each heading style, by its own word or that of the style it is based on."""
        levels = {}
        for style in self._styles:
            level = self._level(style)
            if level is not None:
                levels[style] = level
        return levels

    def _level(self, style: str) -> int | None:
        """The level of one style; at most ten steps up, since the chain may be a loop."""
        for _ in range(10):
            fields = self._styles.get(style, {})
            name = fields.get("name", "")
            if (found := HEADING_STYLE.match(name)) is not None:
                return int(found[1])
            if name.lower() in TITLE_STYLES:
                return TITLE_STYLES[name.lower()]
            if (level := outline_level(fields.get("outlineLvl"))) is not None:
                return level
            style = fields.get("basedOn", "")
        return None


def outline_level(value: str | None) -> int | None:
    """Level 1-9 from the file's 0-8; 9 means body text."""
    return int(value) + 1 if value is not None and value.isdecimal() and int(value) < 9 else None


class Body:
    """Handler of the main part: paragraphs and table rows, each of at most `max_characters`."""

    _is_note = False

    def __init__(self, levels: dict[str, int], max_characters: int) -> None:
        self._levels = levels
        self._max_characters = max_characters
        self._n_held = 0  # characters of open paragraphs and rows, and a little for each of these
        self._events: list[Event] = []
        self._skip = 0
        self._in_text = False
        self._paragraphs: list[list[str]] = []  # open ones, the innermost last (text boxes nest)
        self._rows: list[list[list[str]]] = []  # open tables' rows: cells: paragraphs
        self._has_header = False
        self._level: int | None = None
        self._is_list_item = False

    def drain(self) -> list[Event]:
        """The events made since the last call."""
        events, self._events = self._events, []
        return events

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        tag = local_name(name)
        if self._skip or tag in SKIPPED:
            self._skip += 1
        elif tag == "p":
            self._hold(ELEMENT_CHARACTERS)
            self._paragraphs.append([])
            self._level, self._is_list_item = None, False
        elif tag == "t":
            self._in_text = True
        elif tag == "tr":
            self._rows.append([])
        elif tag == "tc":
            if self._rows:
                self._hold(ELEMENT_CHARACTERS)
                self._rows[-1].append([])
        elif self._paragraphs:
            self._in_paragraph(tag, attributes)

    def end(self, name: str) -> None:
        """An element ends."""
        tag = local_name(name)
        if self._skip:
            self._skip -= 1
        elif tag == "t":
            self._in_text = False
        elif tag == "p" and self._paragraphs:
            self._end_paragraph("".join(self._paragraphs.pop()))
        elif tag == "tr" and self._rows:
            self._end_row(self._rows.pop())
        elif tag == "tbl" and not self._rows:
            self._events.append(Text("\n"))
            self._has_header = False
        self._settle()

    def data(self, text: str) -> None:
        """Characters: text only inside w:t."""
        if self._in_text and not self._skip and self._paragraphs:
            self._hold(len(text))
            self._paragraphs[-1].append(text)

    def _hold(self, n_characters: int) -> None:
        """Count what is held in memory. Raises LimitExceeded."""
        self._n_held += n_characters
        if self._n_held > self._max_characters:
            raise LimitExceeded(
                f"one paragraph, table row or note is longer than {self._max_characters:,} characters"
            )

    def _settle(self) -> None:
        """Start counting anew where nothing is held any more."""
        if not self._paragraphs and not self._rows:
            self._n_held = 0

    def _in_paragraph(self, tag: str, attributes: dict[str, str]) -> None:
        """Marks inside a paragraph."""
        value = attribute(attributes, "val")
        self._hold(len(SYMBOLS.get(tag, "")))
        if tag in SYMBOLS and not (tag == "tab" and value is not None):  # w:tab in w:tabs is a tab stop
            self._paragraphs[-1].append(SYMBOLS[tag])
        elif tag == "pStyle":
            self._level = self._levels.get(value or "", self._level)
        elif tag == "outlineLvl":
            self._level = outline_level(value)
        elif tag == "numPr":
            self._is_list_item = True
        elif tag in ("footnoteReference", "endnoteReference"):
            self._paragraphs[-1].append(f"[{attribute(attributes, 'id') or ''}]")

    def _end_paragraph(self, text: str) -> None:
        """Write a paragraph, or put it into the open cell."""
        text = text.strip()
        if not text:
            return
        if self._rows and self._rows[-1]:
            self._rows[-1][-1].append(text)
            return
        if self._paragraphs:  # a text box inside a paragraph: before the rest of it
            self._events.append(Text(text + "\n"))
            return
        if self._level is not None:
            self._events.append(Heading(self._level, text))
        elif self._is_list_item:
            text = f"- {text}"
        self._events.append(Text(text + ("\n" if self._is_list_item else "\n\n")))

    def _end_row(self, cells: list[list[str]]) -> None:
        """Write a row, or put an inner table's row into the outer cell."""
        texts = [" ".join(" ".join(cell).split()) for cell in cells]
        line = " | ".join(texts)
        if not line.strip(" |"):
            return
        if self._rows and self._rows[-1]:
            self._rows[-1][-1].append(line)
        elif self._is_note:
            self._events.append(Text(line + "\n"))
        else:
            self._end_table_row(texts)

    def _end_table_row(self, texts: list[str]) -> None:
        """Write a row as Markdown, the first as the header."""
        rows = table_row(texts) + "\n"
        if not self._has_header:
            rows += header_rule(len(texts)) + "\n"
            self._has_header = True
        self._events.append(Text(rows))


class Notes(Body):
    """Handler of footnotes.xml and endnotes.xml: a line `[id] text` of each, read as the body is."""

    _is_note = True

    def __init__(self, levels: dict[str, int], max_characters: int) -> None:
        super().__init__(levels, max_characters)
        self._lines: list[Event] = []
        self._id = ""
        self._is_first = True

    def drain(self) -> list[Event]:
        """The finished notes since the last call, after an empty line."""
        lines, self._lines = self._lines, []
        if lines and self._is_first:
            lines.insert(0, Text("\n"))
            self._is_first = False
        return lines

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        if local_name(name) in NOTES and not self._skip:
            self._id = attribute(attributes, "id") or ""
        else:
            super().start(name, attributes)

    def end(self, name: str) -> None:
        """An element ends."""
        if local_name(name) in NOTES and not self._skip:
            self._end_note()
        else:
            super().end(name)

    def _settle(self) -> None:
        """A note is held until its end."""

    def _end_note(self) -> None:
        """Write a note as one line; 0 and -1 are no notes but the separators."""
        text = "".join(event.text for event in self._events if isinstance(event, Text))
        self._events.clear()
        self._n_held = 0
        if text.strip() and self._id.isdecimal() and int(self._id) > 0:
            self._lines.append(Text(f"[{self._id}] {' '.join(text.split())}\n"))
