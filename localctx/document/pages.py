"""Page numbers for programs, as ranges, and for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

__all__ = ["PageRanges", "page_list", "page_name", "page_ranges"]

PageRanges: TypeAlias = list[list[int]]
MAX_SHOWN = 10


def page_ranges(pages: Sequence[int]) -> PageRanges:
    """Ascending 1-based page numbers as [first, last] ranges of indices."""
    if isinstance(pages, range) and pages.step == 1:
        return [[max(0, pages.start - 1), pages.stop - 2]]
    ranges: PageRanges = []
    for number in pages:
        if ranges and number - 1 == ranges[-1][1] + 1:
            ranges[-1][1] += 1
        elif number >= 1:
            ranges.append([number - 1, number - 1])
    return ranges


def page_list(numbers: Sequence[int]) -> str:
    """Page numbers for a person: "pages 3, 5-7"; at most ten groups."""
    groups = [str(a + 1) if a == b else f"{a + 1}-{b + 1}" for a, b in page_ranges(numbers)]
    more = len(groups) - MAX_SHOWN
    shown = ", ".join(groups[:MAX_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
    return f"page{'s' * (len(numbers) > 1)} {shown}"


def page_name(number: int | None, label: str | None) -> str:
    """A page for people who look for it: "12", or "12 (page 14 of the file)" where what is printed on it is
    not its number, which --pages takes; "" without pages.
    """
    if number is None:
        return label or ""
    return str(number) if label in (None, str(number)) else f"{label} (page {number} of the file)"
