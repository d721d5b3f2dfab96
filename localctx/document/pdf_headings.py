"""Headings of a PDF page: where a bookmark's title stands, or which lines are set larger than the body. Pure.

Font sizes are sampled from pages spread over the document, so that pages can be judged one by one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from localctx.document.pdf_clean import fold_title
from localctx.document.pdf_layout import PlacedLine

__all__ = ["HeadingSizes", "locate_titles", "sample_sizes"]

LARGER = 1.15
"""A heading is at least this much larger than the body text."""
MAX_LEVELS = 3
MAX_HEADING_CHARACTERS = 120
HAS_WORD = re.compile(r"[^\W\d_]{2}|[\u2e80-\U0003ffff]")


@dataclass(frozen=True, slots=True)
class HeadingSizes:
    """Rounded line heights that headings have, largest (level 1) first; empty where none stand out."""

    heights: tuple[float, ...]

    def headings(self, lines: Sequence[PlacedLine]) -> list[tuple[int, str]]:
        """Level and title of each heading among the lines; neighbours of one size are one heading."""
        if not self.heights:
            return []
        found: list[tuple[int, str]] = []
        previous = -2
        for i, line in enumerate(lines):
            height = rounded(line)
            if height not in self.heights or not line.text.strip():
                continue
            level = self.heights.index(height) + 1
            if previous == i - 1 and found[-1][0] == level:
                found[-1] = (level, f"{found[-1][1]}\n{line.text}")
            else:
                found.append((level, line.text))
            previous = i
        titles = [(level, fold_title(title)) for level, title in found]
        return [
            (n, title)
            for n, title in titles
            if HAS_WORD.search(title) and len(title) <= MAX_HEADING_CHARACTERS
        ]


def sample_sizes(pages: Iterable[Sequence[PlacedLine]]) -> HeadingSizes:
    """The sizes of headings, judged by the lines of some pages."""
    n_characters: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            n_characters[rounded(line)] += len(line.text)
    if not n_characters:
        return HeadingSizes(())
    body, n_body = n_characters.most_common(1)[0]
    larger = [h for h, n in n_characters.items() if h >= body * LARGER and n <= 0.2 * n_body]
    return HeadingSizes(tuple(sorted(larger, reverse=True)[:MAX_LEVELS]) if body else ())


def rounded(line: PlacedLine) -> float:
    """A line's height to half a point."""
    return round(line.height * 2) / 2


def locate_titles(titles: Sequence[tuple[int, str]], text: str) -> list[tuple[int, str, int]]:
    """Level, title and offset in the page's text of each title, in order; one that is not found gets the
    offset of the one before it (0 where there is none)."""
    located = []
    start = 0
    for level, title in titles:
        offset = find_title(title, text, start)
        start = max(start, offset)
        located.append((level, title, offset))
    return sorted(located, key=lambda heading: heading[2])


def find_title(title: str, text: str, start: int) -> int:
    """Where the title begins: as a line of its own (after a number perhaps), else anywhere, else `start`."""
    words = r"\s+".join(map(re.escape, title.split()))
    for pattern in (rf"^(?:[\dIVXLC.]+\s+)?{words}\s*$", words):
        for origin in (start, 0):
            if found := re.compile(pattern, re.IGNORECASE | re.MULTILINE).search(text, origin):
                return found.start()
    return start
