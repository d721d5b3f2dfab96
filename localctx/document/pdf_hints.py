"""Where a table may be on a page, from lines roughly placed: a cheap look before words are measured. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from localctx.document.pdf_layout import PlacedLine

__all__ = ["WIDE_GAP", "may_hold_table"]

WIDE_GAP = 0.7
"""Space between two words, by the height of the line, from which it is measured."""
FAR = 130.0
"""Points within which a table's rows stand."""
LONG_PIECE = 40
"""Characters of a piece beside one other that is prose."""


def may_hold_table(lines: Sequence[PlacedLine], *, has_rules: bool) -> bool:
    """Whether rows of several pieces stand near one another: three, or two where level lines are drawn.

    Bullets and numbers beside a text do not count, nor, without lines, terms beside what they mean.
    """
    rows: dict[int, list[str]] = {}
    for line in lines:
        rows.setdefault(round(line.bottom), []).extend(pieces(line) if len(line.words) > 1 else [line.text])
    found = sorted(bottom for bottom, row in rows.items() if len(row) > 1 and is_row(row, has_rules))
    least = 2 if has_rules else 3
    return any(b - a <= FAR for a, b in zip(found, found[least - 1 :], strict=False))


def is_row(texts: Sequence[str], has_rules: bool) -> bool:
    """Whether the pieces of a row may be the cells of a table."""
    if len(texts) == 2:
        return len(texts[0]) > 3 and (has_rules or max(map(len, texts)) <= LONG_PIECE)
    return True


def pieces(line: PlacedLine) -> list[str]:
    """The words of a line, cut at wide gaps."""
    least = WIDE_GAP * line.height
    found = [[line.words[0].text]]
    for word, after in pairwise(line.words):
        if after.left - word.right > least:
            found.append([])
        found[-1].append(after.text)
    return [" ".join(words) for words in found]
