"""Whether the lines beside a free strip of a page are columns of prose. Pure; y upwards. Points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from localctx.document.pdf_layout import SENTENCE_END_SET, WIDE, PlacedLine, continues

__all__ = ["GUTTER", "LEAST_LINES", "LEAST_WIDTH", "SAME_LEFT", "beside_one_another", "clusters", "has_words"]

LEAST_LINES = 5
"""Of prose on either side of a strip, somewhere on the page, that parts columns."""
SAME_LEFT = 2.0
"""Points within which lines of a column begin."""
INDENT = 4.0
"""How far to the right a column's lines may begin, by the height of the text."""
LEAST_WIDTH = 60.0
GUTTER = 0.7
"""Least width of the strip between two columns, by the height of the text."""
FULL, FULL_SHARE = 0.75, 0.4
"""Two of five lines of a column fill three quarters of it."""
CONTINUED_SHARE = 0.3
"""Of a column's lines, those whose sentence goes on in the next one."""
LEAST_WORDS, LEAST_WIDE = 4, 10
"""Words of a usual line of prose; characters where a script has no spaces."""
BREAK = 1.15
"""A distance of base lines this many times the usual one parts paragraphs, or rows of a table."""
SHARED_BREAKS = 0.8
"""Of the breaks of columns, those at one height where the columns are a table's."""
NEAR = 0.25
"""Of its width, how far a column may end from the strip's other lines."""
PITCH = 2.0
"""Most distance of base lines in a column, by the height of the text."""


def beside_one_another(left: Sequence[PlacedLine], right: Sequence[PlacedLine]) -> float | None:
    """Where the column begins that makes, with the next one, two of prose, of the lines left and right of a
    strip; None where there are none."""
    rights = clusters(right)
    if not rights:
        return None
    second = column(right, rights[0])
    most = min(line.left for line in second) - GUTTER * second[0].height
    edge = max(line.right for line in left)
    for first in sorted((column(left, at) for at in clusters(left)), key=len, reverse=True):
        low, high = min(line.left for line in first), max(line.right for line in first)
        is_next = edge - high <= NEAR * (high - low) and high <= most
        if is_next and is_prose(first) and is_prose(second):
            return None if are_cells(first, second) else low
    return None


def clusters(lines: Iterable[PlacedLine]) -> list[float]:
    """Where, from the left, enough lines begin."""
    lefts = sorted(line.left for line in lines)
    found: list[float] = []
    start = 0
    for i in range(1, len(lefts) + 1):
        if i == len(lefts) or lefts[i] - lefts[start] > SAME_LEFT:
            if i - start >= LEAST_LINES:
                found.append(lefts[start])
            start = i
    return found


def are_cells(left: Sequence[PlacedLine], right: Sequence[PlacedLine]) -> bool:
    """Whether the columns break at the same heights, as the cells of a table do."""
    first, second = breaks_of(left), breaks_of(right)
    return min(len(first), len(second)) > 1 and all(
        sum(any(low < top and bottom < high for bottom, top in others) for low, high in breaks)
        >= SHARED_BREAKS * len(breaks)
        for breaks, others in ((first, second), (second, first))
    )


def breaks_of(lines: Sequence[PlacedLine]) -> list[tuple[float, float]]:
    """From where to where the column is empty between its paragraphs."""
    pairs = list(pairwise(lines))
    usual = median(above.bottom - below.bottom for above, below in pairs)
    return [
        (below.top, max(above.bottom, below.top + 0.1))
        for above, below in pairs
        if above.bottom - below.bottom > BREAK * usual
    ]


def column(side: Iterable[PlacedLine], left: float) -> list[PlacedLine]:
    """The lines that begin there, some of them indented, from the top."""
    lines = [line for line in side if -SAME_LEFT <= line.left - left <= INDENT * line.height]
    return sorted(lines, key=lambda line: -line.bottom)


def is_prose(lines: Sequence[PlacedLine]) -> bool:
    """Whether the lines of a column, from the top, are full and go on from one to the next."""
    low, high = min(line.left for line in lines), max(line.right for line in lines)
    n_full = sum(line.right - low >= FULL * (high - low) for line in lines)
    pairs = list(pairwise(lines))
    pitch = median((above.bottom - below.bottom) / max(above.height, 1.0) for above, below in pairs)
    n_continued = sum(goes_on(above, below) for above, below in pairs)
    return (
        high - low >= LEAST_WIDTH
        and n_full >= FULL_SHARE * len(lines)
        and 0 < pitch <= PITCH
        and n_continued >= CONTINUED_SHARE * len(lines)
        and has_words(lines)
    )


def goes_on(above: PlacedLine, below: PlacedLine) -> bool:
    """Whether a sentence may go on from one line to the next."""
    if above.text.rstrip()[-1:] in SENTENCE_END_SET:
        return False
    return continues(below) or ord(below.text.lstrip()[:1] or " ") >= WIDE


def has_words(lines: Sequence[PlacedLine]) -> bool:
    """Whether a usual line has as many words as prose has; scripts without spaces count by characters."""
    return not lines or median(n_words(line.text) for line in lines) >= LEAST_WORDS


def n_words(text: str) -> int:
    """Words of a text, where a script has no spaces as many as its characters make."""
    n_wide = sum(ord(character) >= WIDE for character in text)
    return max(text.count(" ") + 1, n_wide * LEAST_WORDS // LEAST_WIDE)
