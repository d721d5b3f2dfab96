"""Raised marks in the lines of a page, as pdfium places their characters. In the child; knows no notes."""

from __future__ import annotations

import re
import struct
from collections.abc import Collection

import pypdfium2.raw as c

from localctx.document.pdf_layout import PlacedLine

__all__ = ["box_fields", "char_box", "with_raised"]

MARK = re.compile(r"(?<=[^\W\d_]|[.,;:!?)\]\"'”’»…])(?:\d{1,3}|[*∗†‡§¶‖]{1,3})(?![\d\w])")
"""What may refer to a note: behind a letter, or the end of a sentence."""
HEIGHT = 0.85
"""Height of raised type beside that before it, at most."""
ASCENT = 0.75
"""Of a character's box, the part above the base line."""
RISE = 0.1
"""Least height above the base line of what is before it, by the height of that."""

char_box = c.FPDFText_GetLooseCharBox
box_fields = struct.Struct("4f").unpack
"""left, top, right, bottom: read at once in the time of one attribute."""


def with_raised(text_page: object, line: PlacedLine, start: int, marks: Collection[str]) -> PlacedLine:
    """The line, whose first character has the index `start`, with those marks that stand raised in it."""
    raised = tuple(
        (found.start(), found[0])
        for found in MARK.finditer(line.text)
        if found[0] in marks and is_raised(text_page, start + found.start())
    )
    return line._replace(raised=raised) if raised else line


def is_raised(text_page: object, character: int) -> bool:
    """Whether a character is smaller and stands higher than the one before it."""
    box = c.FS_RECTF()
    grounds: list[float] = []
    heights: list[float] = []
    for index in (character - 1, character):
        char_box(text_page, index, box)
        _, top, _, bottom = box_fields(box)
        heights.append(top - bottom)
        grounds.append(top - ASCENT * (top - bottom))
    return 0 < heights[1] <= HEIGHT * heights[0] and grounds[1] - grounds[0] > RISE * heights[0]
