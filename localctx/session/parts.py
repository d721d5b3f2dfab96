"""A document's blocks grouped into parts that are summarised one by one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localctx.session.reading import Reading

__all__ = ["Part", "cut_parts", "join_pages"]

MIN_SHARE = 0.25
"""A part smaller than this share of the limit goes on into the next section."""


@dataclass(frozen=True, slots=True)
class Part:
    """Blocks first..last (both included) of one reading, under the headings that most of it stands under."""

    reading: Reading
    first: int
    last: int
    n_tokens: int
    heading_path: tuple[str, ...]

    @property
    def span(self) -> tuple[int, int]:
        """Code points [start, end)."""
        return self.reading.span(self.first, self.last)

    @property
    def pages(self) -> tuple[str, str] | None:
        """Printed labels of the first and the last page; None without pages."""
        start, end = self.span
        document = self.reading.document
        first, last = document.page_at(start), document.page_at(max(start, end - 1))
        if first is None or last is None:
            return None
        return first.label or str(first.number), last.label or str(last.number)

    @property
    def section(self) -> str:
        """The outermost heading, or the document's name where there is none."""
        return self.heading_path[0] if self.heading_path else self.reading.document.source

    @property
    def title(self) -> str:
        """All headings, or the document's name where there are none."""
        return " › ".join(self.heading_path) or self.reading.document.source


def cut_parts(readings: Sequence[Reading], max_tokens: int, min_share: float = MIN_SHARE) -> list[Part]:
    """Consecutive blocks of each document in parts of at most `max_tokens`, cut where a section begins if
    that leaves no less than `min_share` of it.

    A block larger than max_tokens is a part of its own.
    """
    parts: list[Part] = []
    for reading in readings:
        first, n_tokens = 0, 0
        for index in range(reading.n_blocks):
            size = reading.block_tokens[index]
            starts = index > 0 and reading.heading_path(index) != reading.heading_path(index - 1)
            is_full = n_tokens + size > max_tokens or (starts and n_tokens >= min_share * max_tokens)
            if index > first and is_full:
                parts.append(_part(reading, first, index - 1))
                first, n_tokens = index, 0
            n_tokens += size
        if n_tokens:
            parts.append(_part(reading, first, reading.n_blocks - 1))
    return parts


def _part(reading: Reading, first: int, last: int) -> Part:
    tokens: dict[tuple[str, ...], int] = {}
    for index in range(first, last + 1):
        path = reading.heading_path(index)
        tokens[path] = tokens.get(path, 0) + reading.block_tokens[index]
    return Part(reading, first, last, sum(tokens.values()), max(tokens, key=lambda path: tokens[path]))


def join_pages(pages: Sequence[tuple[str, str] | None]) -> str:
    """`p. 3`, `pp. 3–5`: from the first of the ranges to the last; empty without pages."""
    known = [labels for labels in pages if labels is not None]
    if not known:
        return ""
    first, last = known[0][0], known[-1][1]
    return f"p. {first}" if first == last else f"pp. {first}–{last}"
