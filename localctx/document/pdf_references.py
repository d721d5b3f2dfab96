"""Which raised marks of a page refer to a note, and which may be exponents. Pure; knows no engine.

Careful rather than complete: a mark that may be a unit's exponent refers to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from localctx.document.pdf_layout import SENTENCE_END_SET, WIDE, PlacedLine

__all__ = ["Reference", "references_to"]

Reference = tuple[int, int]
"""A line, by its index, and the mark's offset in its text."""
ENDS = SENTENCE_END_SET | frozenset(",'")
LETTERS = re.compile(r"[^\W\d_]+$")
BRACKETED = re.compile(r"\(([^()]*)\)$")
SAID = re.compile(r"[^\W\d_]{2,}|\d{2,}")
OPERATOR = re.compile(r"[=+*^·×÷−<>≤≥]")
FORMULA_GOES_ON = re.compile(r"[+⁺⁻−⁄/]|\s*[=<>≤≥≈×·^]")
"""Behind an exponent or an ion's charge."""
UNIT = re.compile("ft|in|yd|mi|ha|hr|oz|sec|min|rad|mol|ohm|μm|pa|bar|sin|cos|tan|cot|log|exp", re.IGNORECASE)
"""What has exponents, if it is not plain from having no vowel."""
VOWELS = frozenset("aeiouy")
LONGEST_SYMBOL = 3
"""Letters of a unit or a product without vowels."""


def references_to(
    mark: str, lines: Sequence[PlacedLine], start: int, marked: Sequence[int]
) -> frozenset[Reference]:
    """The marks that refer to the note which begins at line `start`: those behind the end of a sentence or a
    part of it, else the last one behind a word. `marked`: the lines that have raised
    marks, and are no note's.
    """
    found = [
        (i, offset)
        for i in marked
        if i < start or lines[i].bottom > lines[start].bottom
        for offset, raised in lines[i].raised
        if raised == mark and not is_exponent(lines[i].text, offset, mark)
    ]
    found = [reference for reference in found if reference[0] < start] or found
    ended = [(i, offset) for i, offset in found if lines[i].text[offset - 1 : offset] in ENDS]
    return frozenset(ended or found[-1:])


def is_exponent(text: str, offset: int, mark: str) -> bool:
    """Whether the mark at the offset may belong to a unit, a variable, a function or a formula before it."""
    before = text[:offset]
    if not before or before[-1].isdigit():
        return True
    if FORMULA_GOES_ON.match(text, offset + len(mark)):
        return True
    if bracketed := BRACKETED.search(before):
        return not SAID.search(bracketed[1]) or OPERATOR.search(bracketed[1]) is not None
    letters = LETTERS.search(before)
    return letters is not None and is_symbol(letters[0], mark)


def is_symbol(word: str, mark: str) -> bool:
    """Whether a word is a variable, or one of those that have a number as exponent."""
    if len(word) == 1:
        return ord(word) < WIDE
    if not mark.isdigit():
        return False
    is_short = len(word) <= LONGEST_SYMBOL and word.isascii() and word.islower()
    return UNIT.fullmatch(word) is not None or (is_short and VOWELS.isdisjoint(word))
