"""Footnotes of a page: which lines they are, and their place after the paragraph that refers to them. Pure.

A note begins, in smaller type, with a mark that stands raised in the text above it; a mark without a note and
a note without a mark stay where they are. Knows no engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from localctx.document.pdf_layout import PlacedLine, flow

__all__ = ["Note", "note_marks", "notes_of", "with_notes", "without_notes"]

MARK = re.compile(r"\s*([1-9]\d{0,2}|[*∗†‡§¶‖]{1,3})(?![\d.,:)\]])")
"""What a note begins with; a number before a point is one of a list."""
SMALLER = 0.93
"""Height of a note's type beside the page's usual one, at most."""
NOTE_GAP = 2.2
"""Most distance of the base lines of a note, by the height of its type."""
LEAST_LETTERS = 6
"""Of a note: less is a part of a formula."""
LEAST_CHARACTERS = 20
"""Of a line whose type counts as usual."""


@dataclass(frozen=True, slots=True)
class Note:
    """A footnote: its mark and its lines, the mark taken off; `lines` are indices of the page's."""

    mark: str
    body: tuple[PlacedLine, ...]
    lines: frozenset[int]

    @property
    def text(self) -> str:
        """What the note says."""
        return flow(self.body).strip()


def note_marks(lines: Sequence[PlacedLine]) -> dict[int, str]:
    """The lines (by index) that may begin a footnote, with their marks."""
    usual = [line.height for line in lines if len(line.text) >= LEAST_CHARACTERS]
    if not usual:
        return {}
    most = SMALLER * median(usual)
    return {
        i: found[1]
        for i, line in enumerate(lines)
        if 0 < line.height <= most and (found := MARK.match(line.text)) is not None
    }


def notes_of(lines: Sequence[PlacedLine]) -> list[Note]:
    """The footnotes among the lines of a page, in their order: those to whose mark a line above refers."""
    starts = note_marks(lines)
    if not starts:
        return []
    most = SMALLER * median(line.height for line in lines if len(line.text) >= LEAST_CHARACTERS)
    notes: list[Note] = []
    for start, mark in starts.items():
        if any(note.mark == mark for note in notes) or not is_referred_to(lines, start, mark):
            continue
        end = start + 1
        while end < len(lines) and end not in starts and goes_on(lines[end - 1], lines[end], most):
            end += 1
        body = tuple(body_of(lines[start:end], mark))
        if sum(character.isalpha() for line in body for character in line.text) >= LEAST_LETTERS:
            notes.append(Note(mark, body, frozenset(range(start, end))))
    return notes


def body_of(lines: Sequence[PlacedLine], mark: str) -> Iterator[PlacedLine]:
    """The lines of a note without its mark, by which the first one was measured."""
    first = lines[0]
    text = first.text.lstrip()[len(mark) :].lstrip()
    height = lines[-1].height
    if text:
        yield first._replace(text=text, bottom=first.top - height, raised=())
    yield from lines[1:]


def is_referred_to(lines: Sequence[PlacedLine], start: int, mark: str) -> bool:
    """Whether the mark stands raised in a line above or before that of the note."""
    return any(
        raised == mark and (i < start or line.bottom > lines[start].bottom)
        for i, line in enumerate(lines)
        if i != start
        for _, raised in line.raised
    )


def goes_on(above: PlacedLine, below: PlacedLine, most: float) -> bool:
    """Whether a line is the next one of a note, or stands behind its mark."""
    height = max(above.height, below.height)
    return 0 < below.height <= most and -0.6 * height < above.bottom - below.bottom <= NOTE_GAP * height


def with_marks(line: PlacedLine, marks: Iterable[str]) -> PlacedLine:
    """The line with those marks that stand raised in it as references."""
    known = frozenset(marks)
    text = line.text
    for offset, mark in reversed(line.raised):
        if mark in known:
            text = f"{text[:offset]}[^{mark}]{text[offset + len(mark) :]}"
    return line if text is line.text else line._replace(text=text)


def with_notes(text: str, notes: Sequence[Note]) -> str:
    """The page's text with each note after the paragraph that refers to it first."""
    for note in reversed(notes):
        end = text.find("\n\n", text.index(f"[^{note.mark}]"))
        end = len(text) if end < 0 else end
        text = f"{text[:end]}\n\n[^{note.mark}]: {note.text}{text[end:]}"
    return text


def without_notes(lines: Sequence[PlacedLine], notes: Sequence[Note]) -> Iterator[PlacedLine]:
    """The other lines, with references to the notes."""
    inside = frozenset().union(*(note.lines for note in notes))
    marks = [note.mark for note in notes]
    for i, line in enumerate(lines):
        if i not in inside:
            yield with_marks(line, marks)
