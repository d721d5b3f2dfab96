"""Placed lines of a page → text with paragraphs. Pure geometry; knows no engine. Points, y upwards.

A line break is soft, and becomes a space, where the next line's first word would not have fitted behind the
line; so prose flows while tables, verse and program code keep their lines. Paragraphs are separated by a
blank line: where the gap, the font size or an indent after a sentence's end says so.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from math import inf
from statistics import median
from typing import NamedTuple

from localctx.document.pdf_clean import HYPHEN_MARKS

__all__ = [
    "SENTENCE_ENDS",
    "SENTENCE_END_SET",
    "WIDE",
    "PlacedLine",
    "Word",
    "continues",
    "find_usual_gap",
    "flow",
    "same_row",
    "same_size",
]

SENTENCE_ENDS = tuple('.!?:;…"”’»)]。！？：；」』')
SENTENCE_END_SET = frozenset(SENTENCE_ENDS)
SIZE_STEP = 1.12
"""Lines whose heights differ by more than this belong to different paragraphs."""
PARAGRAPH_GAP = 1.28
"""A gap this many times the page's usual one ends a paragraph."""
LEADER = re.compile(r"(?:\. ?){5,}")
PAGE_AT_END = re.compile(r"[^\d.,]\s\d{1,4}$")
SPACE_WIDTH, RAGGED_SPACE = 0.3, 1.5
"""What a word needs besides its own width, by the height of the line; more in the middle of a sentence."""
NOISE = "\0"
WIDE = 0x2E80
"""From here on scripts are written without spaces between words."""
USUAL_SHARE, FULL_SHARE = 0.8, 0.6
"""A full line is at least 0.6 of the width that 0.8 of the page's lines do not exceed."""


class Word(NamedTuple):
    """A word of a line; `right` is where it ends or, where no wide gap follows, where the next one begins."""

    text: str
    left: float
    right: float


class PlacedLine(NamedTuple):
    """A line as drawn: its text (no line end), box, the width of its first word, its words (of level lines,
    from engines that place them), and raised marks that may refer to notes, by their offset in the text.

    A long document has hundreds of thousands: a tuple is made in a third of the time of a dataclass.
    """

    text: str
    left: float
    right: float
    bottom: float
    top: float
    word_width: float
    words: tuple[Word, ...] = ()
    raised: tuple[tuple[int, str], ...] = ()

    @property
    def height(self) -> float:
        """Height of the font's box."""
        return self.top - self.bottom


def flow(
    lines: Sequence[PlacedLine], page: Sequence[PlacedLine] = (), starts: Collection[PlacedLine] = ()
) -> str:
    """The lines as text: " " (or nothing) between parts of a sentence, newline, or a blank line.

    What is usual is learned from the page's lines, where `lines` are not all of them. `starts`: lines that
    begin a column, or what follows one.
    """
    lines = [line for line in lines if line.text and not line.text.isspace()]
    if not lines:
        return ""
    page = page or lines
    usual_gap = find_usual_gap(page)
    reaches = find_reaches(lines, page, starts)
    parts = [lines[0].text]
    for i in range(1, len(lines)):
        above, below = lines[i - 1], lines[i]
        if above.text[-1] not in HYPHEN_MARKS:
            parts.append(separator(above, below, usual_gap, reaches[i - 1]))
        elif same_row(above, below):  # no hyphen at a line's end: pdfium's mark for a code it cannot map
            parts[-1] = above.text[:-1] + NOISE
        parts.append(below.text)
    return "".join(parts)


def find_usual_gap(lines: Sequence[PlacedLine]) -> float:
    """The usual distance of baselines on the page; 0 where no two lines stand under one another."""
    gaps = [
        above.bottom - below.bottom
        for above, below in itertools.pairwise(lines)
        if 0.5 * above.height < above.bottom - below.bottom < 2.5 * above.height
    ]
    return median(gaps) if gaps else 0.0


def find_reaches(
    lines: Sequence[PlacedLine], page: Sequence[PlacedLine], starts: Collection[PlacedLine] = ()
) -> list[float]:
    """How far to the right each line's column reaches there; infinite for lines too short to be full ones.

    A column is a run of lines under one another in one size. A full line is nearly as wide as most of the
    page's are.
    """
    widths = sorted(line.right - line.left for line in page)
    full_width = FULL_SHARE * widths[int(USUAL_SHARE * (len(widths) - 1))]
    reaches: list[float] = []
    start = 0
    for i in range(1, len(lines) + 1):
        if i < len(lines) and same_column(lines[i - 1], lines[i]) and lines[i] not in starts:
            continue
        reach = max(line.right for line in lines[start:i])
        reaches += [reach if line.right - line.left >= full_width else inf for line in lines[start:i]]
        start = i
    return reaches


def same_column(above: PlacedLine, below: PlacedLine) -> bool:
    """Whether `below` stands under `above` in about the same size."""
    return (
        below.bottom <= above.bottom
        and below.left < above.right
        and above.left < below.right
        and same_size(above.height, below.height)
    )


def same_row(before: PlacedLine, after: PlacedLine) -> bool:
    """Whether `after` stands on the same base line, further to the right."""
    return abs(before.bottom - after.bottom) < 0.3 * before.height and after.left >= before.left


def same_size(a: float, b: float) -> bool:
    """Whether two heights are about the same."""
    return a <= b * SIZE_STEP and b <= a * SIZE_STEP


def separator(above: PlacedLine, below: PlacedLine, usual_gap: float, reach: float) -> str:
    """What stands between two lines that follow one another in reading order."""
    height = above.height
    gap = above.bottom - below.bottom
    ends = above.text.rstrip()[-1] in SENTENCE_END_SET
    if height <= 0 or above.right <= above.left or below.right <= below.left:
        return "\n"  # turned or right-to-left: the boxes say nothing
    if above.text[-1].isdigit() and names_a_page(above.text, below.text):
        return "\n"
    if same_row(above, below):  # the same row: a raised sign, or the next cell of a table
        distance = below.left - above.right
        return " " if abs(distance) < height else "\n"
    if gap < 0:  # up again: the next column
        return space_between(above, below) if not ends and continues(below) else "\n\n"
    if gap > PARAGRAPH_GAP * max(usual_gap, 0.8 * height) or not same_size(height, below.height):
        return "\n\n"
    if ends and below.left - above.left > 0.6 * height:
        return "\n\n"
    slack = SPACE_WIDTH if ends or not continues(below) else RAGGED_SPACE
    if reach - above.right <= below.word_width + slack * height:
        return space_between(above, below)
    return "\n\n" if ends and not continues(below) else "\n"


def names_a_page(above: str, below: str) -> bool:
    """Whether a line that ends in a digit is one of a table of contents: by its dots, or by the next line."""
    if LEADER.search(above):
        return True
    return below[-1].isdigit() and bool(PAGE_AT_END.search(above) and PAGE_AT_END.search(below))


def continues(line: PlacedLine) -> bool:
    """Whether a line starts in the middle of a sentence."""
    return line.text.lstrip()[:1].islower()


def space_between(above: PlacedLine, below: PlacedLine) -> str:
    """A space where the script has spaces; a newline after a plain hyphen, which cleaning decides upon."""
    last, first = above.text.rstrip()[-1], below.text.lstrip()[0]
    if last == "-":
        return "\n"
    return "" if ord(last) >= WIDE and ord(first) >= WIDE else " "
