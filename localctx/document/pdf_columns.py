"""Rows of text on a page, and the free strips that part their columns. Pure geometry; y upwards."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from localctx.document.pdf_cells import SAME_ROW, Part

__all__ = ["Row", "extents", "free_strips", "rows_of", "spanned_columns"]

STRIP = 0.3
"""Least width of the free strip between two columns, by the height of the text."""
CROSSING_SHARE = 0.25
"""A strip is free where no more of the rows than this cross it."""
CENTRED = 0.35
"""How far a text may be off the middle of what it heads, by its height."""


@dataclass(frozen=True, slots=True)
class Row:
    """Parts on one base line, from the left."""

    parts: list[Part]

    @property
    def bottom(self) -> float:
        """The base line."""
        return self.parts[0].bottom

    @property
    def height(self) -> float:
        """Height of the text."""
        return max(part.height for part in self.parts)


def rows_of(parts: Sequence[Part]) -> list[Row]:
    """The parts by base line, from the top."""
    rows: list[list[Part]] = []
    for part in sorted(parts, key=lambda p: (-p.bottom, p.left)):
        if rows and abs(rows[-1][0].bottom - part.bottom) < SAME_ROW * part.height:
            rows[-1].append(part)
        else:
            rows.append([part])
    return [Row(sorted(row, key=lambda p: p.left)) for row in rows]


def free_strips(rows: Sequence[Row]) -> list[float]:
    """The middles of the strips that few rows cross, from the left."""
    many = [row for row in rows if len(row.parts) > 1]
    if len(many) < 2:
        return []
    height = median(row.height for row in many)
    allowed = int(CROSSING_SHARE * len(many))
    edges = sorted({x for row in many for part in row.parts for x in (part.left, part.right)})
    crossed = [0] * len(edges)
    for row in many:
        for part in row.parts:
            for k in range(bisect_left(edges, part.left), bisect_left(edges, part.right)):
                crossed[k] += 1
    strips: list[float] = []
    k = 0
    while k < len(edges) - 1:
        if crossed[k] > allowed:
            k += 1
            continue
        first = k
        while k < len(edges) - 1 and crossed[k] <= allowed:
            k += 1
        if (
            first > 0
            and k < len(edges) - 1
            and (at := strip_at(edges, crossed, first, k, height)) is not None
        ):
            strips.append(at)
    return strips


def strip_at(
    edges: Sequence[float], crossed: Sequence[int], first: int, end: int, height: float
) -> float | None:
    """Where two columns part between edges `first` and `end`: where fewest rows cross; None if too narrow."""
    levels = sorted(set(crossed[first:end]))
    widest: list[tuple[float, float]] = []
    for level in levels:
        spans = [(edges[m], edges[m + 1]) for m in range(first, end) if crossed[m] <= level]
        widest.append(max(merged(spans), key=lambda span: span[1] - span[0]))
        if widest[-1][1] - widest[-1][0] >= STRIP * height:
            return (widest[0][0] + widest[0][1]) / 2
    return None


def merged(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Neighbouring spans as one."""
    whole = [spans[0]]
    for left, right in spans[1:]:
        if left <= whole[-1][1]:
            whole[-1] = (whole[-1][0], right)
        else:
            whole.append((left, right))
    return whole


def extents(rows: Sequence[Row], strips: Sequence[float]) -> list[tuple[float, float]]:
    """How far each column reaches from left to right."""
    columns: list[list[Part]] = [[] for _ in range(len(strips) + 1)]
    for row in rows:
        for part in row.parts:
            first, last = bisect_left(strips, part.left), bisect_left(strips, part.right)
            if first == last:
                columns[first].append(part)
    return [
        (min(p.left for p in parts), max(p.right for p in parts)) if parts else (inf, -inf)
        for parts in columns
    ]


def spanned_columns(part: Part, columns: Sequence[tuple[float, float]]) -> range:
    """The neighbouring columns in whose common middle a part of a header stands; its own, where it stands at
    the edge or in the middle of that."""
    slack = CENTRED * part.height
    middle = (part.left + part.right) / 2
    own = next((j for j, (low, high) in enumerate(columns) if low - slack <= middle <= high + slack), None)
    if own is not None:
        low, high = columns[own]
        offs = (part.left - low, part.right - high, middle - (low + high) / 2)
        if min(map(abs, offs)) < slack:
            return range(own, own + 1)
    best = range(0)
    least = slack
    for i in range(len(columns)):
        for j in range(i + 1, len(columns)):
            low, high = columns[i][0], columns[j][1]
            off = abs(middle - (low + high) / 2)
            if low - slack <= part.left and part.right <= high + slack and off < least:
                best, least = range(i, j + 1), off
    return best
