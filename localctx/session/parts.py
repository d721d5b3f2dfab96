"""A document's blocks grouped into parts that are summarised one by one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localctx.session.reading import Reading

__all__ = ["Part", "cut_parts"]

MIN_SHARE = 0.25
"""A part smaller than this share of the limit goes on into the next section."""


@dataclass(frozen=True, slots=True)
class Part:
    """Blocks first..last (both included) of one reading, under the headings of the first."""

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
    def pages(self) -> str:
        """`p. 3` or `pp. 3-5` by printed labels; empty without pages."""
        start, end = self.span
        document = self.reading.document
        first, last = document.page_at(start), document.page_at(max(start, end - 1))
        if first is None or last is None:
            return ""
        labels = [page.label or str(page.number) for page in (first, last)]
        return f"p. {labels[0]}" if labels[0] == labels[1] else f"pp. {labels[0]}–{labels[1]}"

    @property
    def title(self) -> str:
        """The innermost headings, or the document's name where there are none."""
        return " › ".join(self.heading_path) or self.reading.document.source


def cut_parts(readings: Sequence[Reading], max_tokens: int) -> list[Part]:
    """Consecutive blocks of each document in parts of at most `max_tokens`, cut where a section begins.

    A block larger than max_tokens is a part of its own.
    """
    parts: list[Part] = []
    for reading in readings:
        first, n_tokens = 0, 0
        path: tuple[str, ...] = ()
        for index in range(reading.n_blocks):
            here = reading.heading_path(index)
            size = reading.block_tokens[index]
            starts_section = here != path and n_tokens >= MIN_SHARE * max_tokens
            if index > first and (n_tokens + size > max_tokens or starts_section):
                parts.append(Part(reading, first, index - 1, n_tokens, path))
                first, n_tokens = index, 0
            if n_tokens == 0:
                path = here
            n_tokens += size
        if n_tokens:
            parts.append(Part(reading, first, reading.n_blocks - 1, n_tokens, path))
    return parts
