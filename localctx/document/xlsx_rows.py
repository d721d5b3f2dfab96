"""Rows of a sheet → lines: Markdown tables with merged cells filled. Knows neither XML nor number formats."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from localctx.document.archive import Archive
from localctx.errors import LimitExceeded

__all__ = ["Merges", "RowWriter", "column_name", "merges_of", "place_of"]

PLACE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
MERGE = re.compile(rb"""mergeCell\s[^<>]{0,200}?ref\s*=\s*["']([A-Z]{1,3}\d{1,7}):([A-Z]{1,3}\d{1,7})["']""")
MERGE_BYTES = 512
"""More than a tag of a merged cell takes."""
MAX_MERGES = 100_000
FILLED_COLUMNS = 64
"""A merged range's value is repeated in at most so many columns."""
SPARSE_GAP, SPARSE_SHARE = 64, 4
"""A row with so many more places than values names its cells instead of drawing empty ones."""


@dataclass(slots=True)
class Merges:
    """Merged ranges as (first row, first column, last row, last column), by row."""

    ranges: list[tuple[int, int, int, int]] = field(default_factory=list)


def place_of(reference: str) -> tuple[int, int]:
    """(column, row) of `BC12`, from 1; (0, 0) where it is no reference."""
    found = PLACE.fullmatch(reference)
    if found is None:
        return 0, 0
    column = 0
    for letter in found[1]:
        column = 26 * column + ord(letter) - 64
    return column, int(found[2])


def column_name(column: int) -> str:
    """The letters of a column, from 1."""
    name = ""
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name


def merges_of(archive: Archive, member: str) -> Merges:
    """The merged ranges of a sheet, which stand behind its rows. Raises InputError, LimitExceeded."""
    found: list[tuple[int, int, int, int]] = []
    held = b""
    n_before = archive.n_bytes_read
    for piece in archive.chunks(member):
        held += piece
        end = 0
        for match in MERGE.finditer(held):
            (left, top), (right, bottom) = (place_of(match[n].decode("ascii")) for n in (1, 2))
            found.append((top, left, bottom, right))
            end = match.end()
        held = held[max(end, len(held) - MERGE_BYTES) :]
        if len(found) > MAX_MERGES:
            break
    archive.n_bytes_read = n_before  # the same bytes are counted when the rows are read
    return Merges(sorted(found[:MAX_MERGES]))


class RowWriter:
    """Takes rows from above to below, gives lines. A table begins with the first row of several cells."""

    def __init__(self, merges: Merges, max_characters: int) -> None:
        self._pending = deque(merges.ranges)
        self._max_characters = max_characters
        self._active: dict[int, tuple[int, str]] = {}
        self._last_row = 0
        self._is_table = False
        self._has_lines = False
        self._first_column = 1

    def row(self, number: int, cells: dict[int, str]) -> list[str]:
        """The lines of a row of {column: text}. Raises LimitExceeded."""
        self._fill(number, cells)
        if sum(map(len, cells.values())) > self._max_characters:
            raise LimitExceeded(f"row {number:,} is longer than {self._max_characters:,} characters")
        cells = {column: one_line(text) for column, text in cells.items() if text.strip()}
        if not cells:
            return []
        lines = []
        if self._has_lines and number > self._last_row + 1:
            lines.append("\n")
            self._is_table = False
        self._last_row, self._has_lines = number, True
        width = max(cells) - min(cells) + 1
        if width > SPARSE_GAP + SPARSE_SHARE * len(cells):
            places = (f"{column_name(column)}{number}: {text}" for column, text in sorted(cells.items()))
            self._is_table = False
            return [*lines, "; ".join(places) + "\n"]
        if len(cells) == 1 and not self._is_table:
            return [*lines, *cells.values(), "\n"]
        if not self._is_table:
            self._first_column = min(cells)
        first = min(self._first_column, *cells)
        texts = [cells.get(column, "") for column in range(first, max(cells) + 1)]
        lines.append(f"| {' | '.join(texts)} |\n")
        if not self._is_table:
            lines.append("|" + "---|" * len(texts) + "\n")
            self._is_table = True
        return lines

    def _fill(self, number: int, cells: dict[int, str]) -> None:
        """Repeat the values of merged ranges in a row that has values of its own."""
        if cells and self._active:
            self._active = {column: one for column, one in self._active.items() if one[0] >= number}
        while self._pending and self._pending[0][0] <= number:
            top, left, bottom, right = self._pending.popleft()
            if top == number and (text := cells.get(left)):
                for column in range(left, min(right, left + FILLED_COLUMNS - 1) + 1):
                    self._active.setdefault(column, (bottom, text))  # ranges that overlap are no workbook's
        if cells:
            for column, (_, text) in self._active.items():
                cells.setdefault(column, text)


def one_line(text: str) -> str:
    """A cell's text as a Markdown table takes it."""
    return " ".join(text.split()).replace("|", "\\|")
