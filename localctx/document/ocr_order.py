"""Boxes of recognised lines → text in reading order: columns, rows, paragraphs. Pure; knows no engine.

Coordinates are pixels, y downwards.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from localctx.document.pdf_clean import clean_text
from localctx.document.pdf_layout import PlacedLine, flow

__all__ = ["Box", "text_of_boxes"]

MIN_COLUMN_LINES = 4
COLUMN_WIDTH = 8.0
"""A column of prose is at least so many line heights wide; narrower ones are a table's."""
MAX_CROSSING = 0.2
"""Share of lines that may stand across both columns: titles."""
SAME_ROW = 0.5
USUAL_HEIGHT = (0.7, 1.4)
"""Heights of boxes vary with the letters in them: within these bounds a line has the usual size."""


class Box(NamedTuple):
    """A recognised line."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        """Height of the box."""
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        """Height at which the line stands."""
        return (self.top + self.bottom) / 2


def text_of_boxes(boxes: Sequence[Box]) -> str:
    """The page's text: paragraphs as flowing lines, the cells of a row with bars between them."""
    boxes = [box for box in boxes if box.text.strip() and box.height > 0 and box.right > box.left]
    if not boxes:
        return ""
    usual = median(box.height for box in boxes)
    parts = []
    for is_table, rows in itertools.groupby(ordered(boxes, usual), key=lambda row: len(row) > 1):
        if is_table:
            parts.append("\n".join(" | ".join(box.text.strip() for box in row) for row in rows))
        else:
            parts.append(flow([placed(row[0], usual) for row in rows]))
    return clean_text("\n\n".join(parts))


def ordered(boxes: Sequence[Box], usual: float) -> list[list[Box]]:
    """The rows of the page in reading order, each from left to right."""
    gutter = find_gutter(boxes, usual)
    if gutter is None:
        return rows_of(boxes)
    across = sorted((box for box in boxes if box.left < gutter < box.right), key=lambda box: box.middle)
    rows: list[list[Box]] = []
    above = float("-inf")
    for title in [*across, None]:
        below = float("inf") if title is None else title.middle
        band = [box for box in boxes if above <= box.middle < below and box not in across]
        for side in sides_of(band, gutter):
            if side:
                rows += ordered(side, usual)
        if title is not None:
            rows.append([title])
            above = below
    return rows


def find_gutter(boxes: Sequence[Box], usual: float) -> float | None:
    """Where two columns of prose are parted; None where there is one column or a table."""
    best: tuple[int, float] | None = None
    edges = sorted({box.right for box in boxes})
    for edge in edges:
        right = [box.left for box in boxes if box.left > edge]
        if not right:
            continue
        gutter = (edge + min(right)) / 2
        sides = sides_of(boxes, gutter)
        n_across = len(boxes) - len(sides[0]) - len(sides[1])
        if n_across > MAX_CROSSING * len(boxes) or min(map(len, sides)) < MIN_COLUMN_LINES:
            continue
        if min(median(box.right - box.left for box in side) for side in sides) < COLUMN_WIDTH * usual:
            continue
        if best is None or n_across < best[0]:
            best = (n_across, gutter)
    return None if best is None else best[1]


def sides_of(boxes: Sequence[Box], gutter: float) -> tuple[list[Box], list[Box]]:
    """The boxes left and right of a gutter."""
    return [box for box in boxes if box.right <= gutter], [box for box in boxes if box.left >= gutter]


def rows_of(boxes: Sequence[Box]) -> list[list[Box]]:
    """Boxes that stand side by side, from above to below."""
    rows: list[list[Box]] = []
    for box in sorted(boxes, key=lambda box: (box.middle, box.left)):
        last = rows[-1] if rows else []
        if last and all(
            abs(box.middle - one.middle) < SAME_ROW * min(box.height, one.height)
            and (box.left >= one.right - one.height or box.right <= one.left + one.height)
            for one in last
        ):
            last.append(box)
        else:
            rows.append([box])
    return [sorted(row, key=lambda box: box.left) for row in rows]


def placed(box: Box, usual: float) -> PlacedLine:
    """A line of prose as a line of the page's text, y upwards; of the usual size where it is about that."""
    low, high = USUAL_HEIGHT
    height = usual if low * usual <= box.height <= high * usual else box.height
    text = box.text.strip()
    word_width = len(text.split(None, 1)[0]) / len(text) * (box.right - box.left)
    bottom, top = -box.middle - height / 2, -box.middle + height / 2
    return PlacedLine(text, box.left, box.right, bottom, top, word_width)
