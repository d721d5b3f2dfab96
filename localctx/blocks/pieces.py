"""Over-long segments cut on: at line breaks, else white space, else marks, else anywhere. Knows no tokens."""

from __future__ import annotations

import regex

from localctx.blocks.boundaries import Rank, cut_in_white_space
from localctx.blocks.graphemes import is_boundary, last_boundary

__all__ = ["split_long"]

_LAST_WHITE_SPACE = regex.compile(r"(?r)\s")
# A mark after a letter or digit begins a new word for byte-pair tokenizers: JSON and other text without
# spaces is cut there.
_LAST_MARK = regex.compile(r"(?r)(?<=\w)[^\w\s]")


def split_long(text: str, size: int, after_line_breaks: bool) -> list[tuple[str, Rank]]:
    """Parts of at most `size` >= 1 code points with the rank of the cut before each; the first gets LIMIT.

    A grapheme cluster is cut only where it is itself longer than `size`.
    """
    parts: list[tuple[str, Rank]] = []
    at, rank = 0, Rank.LIMIT
    while len(text) - at > size:
        cut, next_rank = _cut(text, at, at + size, after_line_breaks)
        parts.append((text[at:cut], rank))
        at, rank = cut, next_rank
    parts.append((text[at:], rank))
    return parts


def _cut(text: str, start: int, high: int, after_line_breaks: bool) -> tuple[int, Rank]:
    """The best cut in (start, high]: a line break in the second half, the last white space, a mark."""
    middle = start + (high - start) // 2
    stop = high + 1
    while (space := _LAST_WHITE_SPACE.search(text, start + 1, stop)) is not None:
        line_break = max(text.rfind("\n", middle, stop), text.rfind("\r", middle, stop))
        at, rank = (line_break, Rank.LINE) if line_break >= 0 else (space.start(), Rank.WHITESPACE)
        cut = cut_in_white_space(text, at, after_line_breaks)
        if start < cut <= high and is_boundary(text, cut, start):
            return cut, rank
        if cut <= start:
            break
        stop = at
    if space is not None and is_boundary(text, space.start(), start):
        # White space reaches back to `start`; its last character still leads the next word.
        return space.start(), Rank.WHITESPACE
    mark = _LAST_MARK.search(text, middle, high + 1)
    cut = last_boundary(text, mark.start() if mark is not None else high, start)
    return (cut if cut > start else high), Rank.LIMIT
