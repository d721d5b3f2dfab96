"""RTF → paragraphs, table rows, headings from styles, footnotes at the end. Streams; reads no pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from localctx.document.events import Event, Facts, Heading, Notice, NotThisFormat, Options, Text
from localctx.document.rtf_state import Group, Style
from localctx.document.rtf_tokens import tokens
from localctx.document.rtf_words import (
    BREAKS,
    CHARSETS,
    DOUBLE_BYTE,
    READ_DESPITE_STAR,
    SKIPPED,
    SYMBOLS,
    known_codec,
    outline_level,
)
from localctx.document.source import Source
from localctx.errors import LimitExceeded

__all__ = ["convert"]

HEADING_STYLE = re.compile(r"heading ([1-9])$", re.I)


def convert(source: Source, options: Options) -> Iterator[Event]:
    """The document's text. Raises LimitExceeded; NotThisFormat where it is no RTF."""
    if not source.head(64).lstrip().startswith(b"{\\rtf"):
        raise NotThisFormat("does not begin as RTF does")
    reader = Reader(options)
    for word, number, data in tokens(source.chunks(options.on_progress)):
        reader.take(word, number, data)
        if reader.events:
            yield from reader.events
            reader.events.clear()
        if reader.is_over:
            break
    yield from reader.finish()


@dataclass(slots=True)
class Reader:
    """Takes tokens, makes events."""

    options: Options
    events: list[Event] = field(default_factory=list)
    is_over: bool = False
    _group: Group = field(default_factory=Group)
    _stack: list[Group] = field(default_factory=list)
    _codec: str = "cp1252"
    _fonts: dict[int, str] = field(default_factory=dict)
    _levels: dict[int, int] = field(default_factory=dict)
    _style: Style = field(default_factory=Style)
    _bytes: bytearray = field(default_factory=bytearray)
    _text: list[str] = field(default_factory=list)
    _note: list[str] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)
    _cells: list[str] = field(default_factory=list)
    _default_font: int = -1
    _is_starred: bool = False
    _to_skip: int = 0
    _n_held: int = 0
    _n_hidden: int = 0
    _n_replaced: int = 0

    def take(self, word: str, number: int | None, data: bytes) -> None:
        """The next token. Raises LimitExceeded."""
        if word in ("", "'"):
            self._characters(data)
            return
        self._decode()
        self._to_skip = 0
        if word in ("{", "}"):
            self._is_starred = False
        if word == "{":
            self._stack.append(self._group)
            if len(self._stack) > self.options.limits.depth:
                raise LimitExceeded(f"RTF groups are nested deeper than {self.options.limits.depth:,}")
        elif word == "}":
            self._end_group()
        elif word == "*":
            self._is_starred = True
        else:
            is_starred, self._is_starred = self._is_starred, False
            if word in SKIPPED or (is_starred and word not in READ_DESPITE_STAR):
                self._group = replace(self._group, reads="nothing")
            elif self._group.reads != "nothing":
                self._word(word, number)

    def finish(self) -> Iterator[Event]:
        """What is left when the file is over: the last paragraph, the notes, notices."""
        self._decode()
        self._end_text()
        if self._notes:
            notes = (f"[{n}] {' '.join(text.split())}\n" for n, text in enumerate(self._notes, 1))
            self.events.append(Text("\n" + "".join(notes)))
        yield from self.events
        if not self.is_over:
            yield Notice("the RTF ends inside a group: it may be cut short")
        if self._n_hidden:
            yield Notice(f"{self._n_hidden:,} characters of hidden text were read too")
        yield Facts(self._codec, self._n_replaced)

    # --- characters -----------------------------------------------------------------------------------

    def _characters(self, data: bytes) -> None:
        """Bytes of text, in the font's encoding; those that repeat a \\u for old readers are passed over."""
        n_skipped = min(self._to_skip, len(data))
        self._to_skip -= n_skipped
        if self._group.reads != "nothing":
            self._hold(len(data))
            self._bytes += data[n_skipped:]

    def _decode(self) -> None:
        """Put the bytes that came so far to the text."""
        if not self._bytes:
            return
        text = self._bytes.decode(self._encoding(), "replace")
        self._n_replaced += text.count("\ufffd")
        self._bytes.clear()
        self._write(text)

    def _encoding(self) -> str:
        """The codec of the group's font, else of the default font, else of the document."""
        font = self._group.font
        codec = self._fonts.get(self._default_font if font is None else font)
        if codec == "" and font is not None:
            return self._codec if self._codec in DOUBLE_BYTE else "cp1252"
        return codec or self._codec

    def _write(self, text: str) -> None:
        """Put characters where the group's text goes."""
        group = self._group
        if group.is_deleted:
            return
        if group.reads == "styles":
            self._style.name += text
        elif group.reads == "note":
            self._note.append(text)
        elif group.reads == "body":
            self._text.append(text)
            self._n_hidden += len(text) if group.is_hidden else 0

    def _hold(self, n_bytes: int) -> None:
        """Count what is held in memory. Raises LimitExceeded."""
        self._n_held += n_bytes
        if self._n_held > self.options.limits.token_bytes:
            raise LimitExceeded(
                f"one paragraph, table row or note is longer than {self.options.limits.token_bytes:,} bytes"
            )

    # --- groups and words -----------------------------------------------------------------------------

    def _end_group(self) -> None:
        """Back to what was before the group; a style or note is complete then."""
        was = self._group
        if len(self._stack) == 1:  # the last paragraph has the style that it has inside
            self._end_text()
        self._group = self._stack.pop() if self._stack else Group()
        if was.reads == "styles":
            self._end_style()
        elif was.reads == "note" and self._group.reads != "note":
            self._notes.append("".join(self._note))
            self._note.clear()
        self.is_over = not self._stack

    def _end_style(self) -> None:
        """Remember a heading style."""
        style, self._style = self._style, Style()
        name = style.name.strip().rstrip(";").strip()
        found = HEADING_STYLE.match(name)
        level = int(found[1]) if found else 1 if name.lower() == "title" else style.level
        if level is not None:
            self._levels[style.number] = level

    def _word(self, word: str, number: int | None) -> None:
        """A control word where text is read."""
        if word in ("fonttbl", "stylesheet"):
            self._group = replace(self._group, reads="fonts" if word == "fonttbl" else "styles")
        elif self._group.reads == "fonts":
            self._font_word(word, number)
        elif self._group.reads == "styles":
            self._style_word(word, number)
        elif word in SYMBOLS:
            self._hold(1)
            self._write(SYMBOLS[word])
        elif not self._character_word(word, number):
            self._paragraph_word(word, number)

    def _font_word(self, word: str, number: int | None) -> None:
        """Which encoding a font's bytes are in."""
        if word == "f":
            self._group = replace(self._group, font=number or 0)
        elif word == "fcharset" and self._group.font is not None:
            self._fonts[self._group.font] = CHARSETS.get(number, self._codec) if number else ""

    def _style_word(self, word: str, number: int | None) -> None:
        """A style's number and outline level."""
        if word == "s":
            self._style.number = number or 0
        elif word == "outlinelevel":
            self._style.level = outline_level(number)

    def _character_word(self, word: str, number: int | None) -> bool:
        """Words about characters; False where it is none."""
        group = self._group
        if word == "u" and number is not None:
            self._hold(1)
            code = number + 0x10000 if number < 0 else number
            self._write(chr(code) if 0 <= code <= 0x10FFFF else "\ufffd")
            self._to_skip = group.n_skipped_after_unicode
        elif word == "uc":
            self._group = replace(group, n_skipped_after_unicode=max(0, number or 0))
        elif word in ("f", "af"):
            self._group = replace(group, font=number) if word == "f" else group
        elif word == "v":
            self._group = replace(group, is_hidden=number != 0)
        elif word == "deleted":
            self._group = replace(group, is_deleted=number != 0)
        elif word == "plain":
            self._group = replace(group, is_hidden=False, is_deleted=False, font=None)
        elif word == "deff":
            self._default_font = number or 0
        elif word == "ansicpg" and number:
            self._codec = known_codec(f"cp{number}") or self._codec
        elif word == "mac":
            self._codec = "mac_roman"
        elif word == "footnote":
            self._write(f"[{len(self._notes) + 1}]")
            self._group = replace(group, reads="note")
        else:
            return False
        return True

    def _paragraph_word(self, word: str, number: int | None) -> None:
        """Words about paragraphs and tables."""
        if self._group.reads == "note":
            if word in BREAKS:
                self._write(" ")
        elif word in BREAKS:
            if self._group.is_in_table or self._cells:
                self._write(" ")
            else:
                self._end_paragraph()
        elif word in ("cell", "nestcell"):
            self._cells.append(" ".join("".join(self._text).split()))
            self._text.clear()
            self._hold(64)
        elif word in ("row", "nestrow"):
            self._end_row()
        elif word == "pard":
            self._group = replace(self._group, level=None, is_in_table=False)
        elif word == "intbl":
            self._group = replace(self._group, is_in_table=True)
        elif word == "s":
            self._group = replace(self._group, level=self._levels.get(number or 0))
        elif word == "outlinelevel":
            self._group = replace(self._group, level=outline_level(number))

    # --- paragraphs and rows --------------------------------------------------------------------------

    def _end_text(self) -> None:
        """Write what is open."""
        if self._cells:
            self._end_row()
        self._end_paragraph()

    def _end_paragraph(self) -> None:
        """Write a paragraph."""
        text = "".join(self._text).strip()
        self._text.clear()
        self._n_held = 0
        if not text:
            return
        if self._group.level is not None:
            self.events.append(Heading(self._group.level, text))
        self.events.append(Text(f"{text}\n\n"))

    def _end_row(self) -> None:
        """Write a row of a table."""
        line = " | ".join(self._cells)
        self._cells.clear()
        self._n_held = 0
        if line.strip(" |"):
            self.events.append(Text(f"{line}\n"))
