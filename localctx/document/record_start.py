"""Beginning of a text without a name that says what it is → whether it is a table or JSON. Reads no more.

Prose has commas too, and may begin with a bracket. So a table's lines are all divided alike, by a character
that no space follows in the first, under names of columns; JSON is what parses as it, as far as it is seen.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence

__all__ = ["records_name"]

DELIMITERS = "\t,;|"
MIN_LINES, MIN_LINES_OF_TWO = 2, 3
"""Of a table, its names among them; two columns are told from prose by one more."""
LONGEST_NAME = 80
SENTENCE_ENDS = ".!?:"


def records_name(text: str, is_whole: bool) -> str | None:
    """`json`, `jsonl`, `csv` or None. is_whole: nothing follows `text`."""
    begun = text.lstrip("\ufeff \t\r\n")
    if begun[:1] in ("{", "["):
        return _json_name(begun, is_whole)
    lines = text.lstrip("\ufeff\r\n").splitlines(keepends=True)
    if not is_whole:
        lines = lines[:-1]
    return "csv" if any(_is_table(lines, mark, is_whole) for mark in DELIMITERS) else None


def _json_name(text: str, is_whole: bool) -> str | None:
    """An object a line, or one value; of the beginning of a value, that it goes wrong at its end only."""
    lines = [line for line in text.split("\n") if line.strip()]  # strings may hold other line ends
    whole = lines if is_whole else lines[:-1]
    if len(whole) > 1 and all(_is_object(line) for line in whole):
        return "jsonl"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        is_cut = error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip()) - len("false")
        return "json" if is_cut and not is_whole else None
    except (RecursionError, ValueError):  # too deep, a number too long
        return None
    return "json"


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (RecursionError, ValueError):
        return False


def _is_table(lines: Sequence[str], mark: str, is_whole: bool) -> bool:
    """Whether the lines are rows of as many cells as the first, which are names of columns."""
    if not lines or mark not in lines[0]:
        return False
    rows: list[list[str]] = []
    reader = csv.reader(lines, delimiter=mark, strict=True)
    try:
        rows.extend(reader)
    except csv.Error:
        if is_whole or reader.line_num < len(lines):
            return False
    while rows and not rows[-1]:
        rows.pop()
    n_cells = len(rows[0]) if rows else 0
    if n_cells < 2 or len(rows) < (MIN_LINES_OF_TWO if n_cells == 2 else MIN_LINES):
        return False
    return all(len(row) == n_cells for row in rows) and _are_names(rows[0], all(row[0] for row in rows[1:]))


def _are_names(cells: Sequence[str], is_numbered: bool) -> bool:
    """Whether cells can be names of columns: each once, short, no text that goes on after a comma or ends as
    a sentence does; the first no date or number (years may follow), or empty above row numbers.
    """
    filled = cells[1:] if not cells[0] and is_numbered else cells
    if not all(cell and cell == cell.strip() and len(cell) <= LONGEST_NAME for cell in filled):
        return False
    begins = filled[0][0].isalpha() or filled[0][0] in "_#"
    return begins and len(set(filled)) == len(filled) and filled[-1][-1] not in SENTENCE_ENDS
