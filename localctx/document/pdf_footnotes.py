"""Footnotes of a page: which lines they are, and their place after the paragraph that refers to them. Pure.

A note begins, in smaller type, with a mark that stands raised in the text above it; a mark without a note and
a note without a mark stay where they are. Knows no engine.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from statistics import median

from localctx.document.pdf_layout import PlacedLine, find_usual_gap, flow
from localctx.document.pdf_order import line_of
from localctx.document.pdf_references import Reference, references_to

__all__ = ["Note", "note_marks", "notes_of", "parted", "with_notes", "without_notes"]

MARK = re.compile(r"\s*([1-9]\d{0,2}|[*∗†‡§¶‖]{1,3})(?![\d.,:)\]])")
"""What a note begins with; a number before a point is one of a list."""
SMALLER = 0.93
"""Height of a note's type beside the page's usual one, at most."""
NOTE_GAP, LEAST_GAP = 2.2, 1.5
"""Most distance of a note's base lines, by the height of its type, where the page is set wide or narrow."""
LOOSER = 1.25
"""A note's lines stand at most this much further apart than the page's, or its first two."""
EDGE = 2.5
"""How far from where a note begins its lines may, by the height of its type."""
WIDE_GAP = 2.0
"""Space in a line, by the height of its type, that a note does not reach over."""
BEHIND = 2.0
"""Most free space behind a mark, by the height of the type."""
MOST_BESIDE = 40
"""Lines beside a note between two of its own."""
LEAST_LETTERS = 6
"""Of a note: less is a part of a formula."""
LEAST_CHARACTERS = 20
"""Of a line whose type counts as usual."""


@dataclass(frozen=True, slots=True)
class Note:
    """A footnote: its mark, its lines, the mark taken off, and what refers to it; `lines` are indices of the
    page's."""

    mark: str
    body: tuple[PlacedLine, ...]
    lines: frozenset[int]
    references: frozenset[Reference] = frozenset()

    @property
    def text(self) -> str:
        """What the note says."""
        return flow(self.body).strip()


def note_marks(lines: Sequence[PlacedLine]) -> dict[int, str]:
    """The lines (by index) that may begin a footnote, with their marks."""
    most = SMALLER * usual_height(lines)
    return {
        i: found[1]
        for i, line in enumerate(lines)
        if 0 < line.height <= most and (found := MARK.match(line.text)) is not None
    }


def usual_height(lines: Sequence[PlacedLine]) -> float:
    """The usual height of the page's type; 0 where no line is long enough to tell."""
    usual = [line.height for line in lines if len(line.text) >= LEAST_CHARACTERS]
    return median(usual) if usual else 0.0


def parted(lines: Sequence[PlacedLine]) -> list[PlacedLine]:
    """The lines, those in a note's type cut where they reach over a wide gap to what is no part of it."""
    most = SMALLER * usual_height(lines) if note_marks(lines) else 0.0
    return [piece for line in lines for piece in (pieces(line) if 0 < line.height <= most else [line])]


def pieces(line: PlacedLine) -> Iterator[PlacedLine]:
    """A line cut at its wide gaps, other than that behind the mark it begins with."""
    mark = MARK.match(line.text)
    first = 1 if mark is not None and line.words and line.words[0].text == mark[1] else 0
    cuts = [
        i + 1
        for i, (word, after) in enumerate(pairwise(line.words))
        if i >= first and after.left - word.right > WIDE_GAP * line.height
    ]
    if not cuts:
        yield line
        return
    for start, end in pairwise([0, *cuts, len(line.words)]):
        yield line_of(line, line.words[start:end])


def notes_of(lines: Sequence[PlacedLine]) -> list[Note]:
    """The footnotes among the lines of a page, in their order: those to whose mark a line above refers. Where
    one mark begins several, none of them."""
    starts = note_marks(lines)
    if not starts:
        return []
    usual = usual_height(lines)
    pitch = min(NOTE_GAP, max(LOOSER * find_usual_gap(lines) / usual, LEAST_GAP))
    found: dict[int, Note] = {}
    others = set(starts)
    for start, mark in starts.items():
        taken = lines_at(lines, start, others, SMALLER * usual, pitch)
        others.update(taken)
        body = tuple(body_of([lines[i] for i in taken], mark))
        if sum(character.isalpha() for line in body for character in line.text) >= LEAST_LETTERS:
            found[start] = Note(mark, body, frozenset(taken))
    times = Counter(note.mark for note in found.values())
    inside = frozenset().union(*(note.lines for note in found.values()))
    marked = [i for i, line in enumerate(lines) if line.raised and i not in inside]
    referred = [
        replace(note, references=references_to(note.mark, lines, start, marked))
        for start, note in found.items()
        if times[note.mark] == 1
    ]
    return [note for note in referred if note.references]


def lines_at(
    lines: Sequence[PlacedLine], start: int, others: Collection[int], most: float, pitch: float
) -> list[int]:
    """The lines of the note that begins at `start`: at most `most` high, close behind one of its lines, or
    below one by at most `pitch` heights and near its left edge. Not what stands beside it, nor `others`."""
    lefts = [lines[start].left]
    taken = [start]
    widest = inf
    for i in range(start + 1, len(lines)):
        above, below = lines[taken[-1]], lines[i]
        height = max(above.height, below.height)
        is_level = abs(above.bottom - below.bottom) < 0.6 * height
        is_own = 0 < below.height <= most and i not in others
        if is_own and is_level and -0.3 * height < below.left - above.right < BEHIND * height:
            lefts += [below.left] if len(taken) == 1 else []
            taken.append(i)
            continue
        is_near = abs(above.bottom - below.bottom) <= NOTE_GAP * height
        is_beside = below.left >= above.right or below.right <= min(lefts)
        if is_near and is_beside and i - taken[-1] <= MOST_BESIDE:
            continue
        gap = min(above.bottom - below.bottom, above.top - below.top)  # a raised mark stands higher
        off = min(abs(below.left - left) for left in lefts)
        is_next = 0.5 * height < gap <= min(widest, pitch * height) and off <= EDGE * height
        if not is_own or not is_next:
            break
        widest = min(widest, LOOSER * gap)
        taken.append(i)
    return taken


def body_of(lines: Sequence[PlacedLine], mark: str) -> Iterator[PlacedLine]:
    """The lines of a note without its mark, by which the first one was measured."""
    first = lines[0]
    text = first.text.lstrip()[len(mark) :].lstrip()
    height = lines[-1].height
    if text:
        yield first._replace(text=text, bottom=first.top - height, raised=())
    yield from lines[1:]


def with_references(line: PlacedLine, marks: Iterable[tuple[int, str]]) -> PlacedLine:
    """The line with the marks at those offsets as references."""
    text = line.text
    for offset, mark in sorted(marks, reverse=True):
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
    marks: dict[int, list[tuple[int, str]]] = {}
    for note in notes:
        for i, offset in note.references:
            marks.setdefault(i, []).append((offset, note.mark))
    for i, line in enumerate(lines):
        if i not in inside:
            yield with_references(line, marks.get(i, ()))
