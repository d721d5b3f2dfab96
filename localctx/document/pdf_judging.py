"""Whether rows of cells without upright lines are a table: prose, lists and contents are none. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from localctx.document.pdf_cells import Part, Rows

__all__ = ["is_table"]

ALIGNED_SHARE = 0.6
LONG_CELL = 40
"""Characters a line: two columns of such cells are prose, or terms and what they mean."""
NUMBERED = re.compile(r"(?:[•·◦▪■*–—-]|\(?(?:\d{1,3}|[A-Za-z]|[ivxlc]+)[.):\]]|\[\d+\]|\d+(?:\.\d+)+\.?)$")
PAGE_NUMBER = re.compile(r"(?:\d{1,4}|[ivxlc]{1,7})$")
LEADER = re.compile(r"(?:\. ?){3,}[\d\s]*$")
SPANNING_SHARE = 0.34


def is_table(cells: Rows, placed: Sequence[list[list[Part]]], height: float, n_ruled: int) -> bool:
    """Whether rows of cells are a table, and not a list, prose in columns or a table of contents."""
    n_columns = len(cells[0])
    n_filled = [sum(map(bool, row)) for row in cells]
    n_many = sum(n > 1 for n in n_filled)
    if len(cells) < (2 if n_ruled > 1 else 3) or n_many < (2 if n_ruled > 1 else 3):
        return False
    if n_many < 0.6 * len(cells) or sum(n_filled) < 0.5 * n_columns * len(cells):
        return False
    columns = [[row[j] for row in cells if row[j]] for j in range(n_columns)]
    if sum(any(map(LEADER.search, row)) for row in cells) > 0.25 * len(cells) or names_pages(columns):
        return False
    if says_nothing(columns):
        return False
    if sum(bool(NUMBERED.match(text)) for text in columns[0]) > 0.5 * len(columns[0]) and n_columns == 2:
        return False
    n_spanning = sum(
        len(set(flat)) < len(flat) for row in placed if (flat := [p for cell in row for p in cell])
    )
    is_plain = n_ruled < 2 or len(cells) < 4
    if is_plain and (n_spanning > SPANNING_SHARE * len(cells) or is_prose(columns, placed, n_columns)):
        return False
    return n_ruled > 1 or is_aligned(placed, n_columns, height)


def names_pages(columns: Sequence[Sequence[str]]) -> bool:
    """Whether the last column are page numbers that grow, as in a table of contents."""
    last = columns[-1]
    if len(last) < 3 or not all(PAGE_NUMBER.match(text) for text in last[1:]):
        return False
    numbers = [int(text) for text in last[1:] if text.isdecimal()]
    grows = all(a <= b for a, b in pairwise(numbers))
    numbered = len(columns) == 3 and sum(bool(re.match(r"[\dA-Z.]+$", t)) for t in columns[0]) > 0.6 * len(
        columns[0]
    )
    return grows and (len(columns) == 2 or numbered)


def says_nothing(columns: Sequence[Sequence[str]]) -> bool:
    """Whether an outer column holds ornaments only, or the second of two always says the same."""
    if any(
        not any(map(str.isalnum, text)) for column in (columns[0], columns[-1]) for text in ["".join(column)]
    ):
        return True
    return len(columns) == 2 and len(set(columns[1][1:])) < 2


def is_prose(columns: Sequence[Sequence[str]], placed: Sequence[list[list[Part]]], n_columns: int) -> bool:
    """Whether two columns are running text, or terms and their meaning; or cells go on in lower case."""
    widest = [max((len(p.text) for cells in placed for p in cells[j]), default=0) for j in range(n_columns)]
    if n_columns == 2 and max(widest) > LONG_CELL:
        return True
    lengths = [len(p.text) for cells in placed for cell in cells for p in cell]
    return sum(lengths) / max(1, len(lengths)) > LONG_CELL


def is_aligned(placed: Sequence[list[list[Part]]], n_columns: int, height: float) -> bool:
    """Whether the cells of each column begin, end or are centred at one place, most of them."""
    for j in range(n_columns):
        spans = [(cells[j][0].left, cells[j][-1].right) for cells in placed if len(cells[j]) == 1]
        if len(spans) < 3:
            continue
        best = 0
        for values in ([a for a, _ in spans], [b for _, b in spans], [(a + b) / 2 for a, b in spans]):
            middle = median(values)
            best = max(best, sum(abs(value - middle) < 0.35 * height for value in values))
        if best < ALIGNED_SHARE * len(spans):
            return False
    return True
