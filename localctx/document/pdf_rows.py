"""Tables without upright lines: rows whose parts stand in columns that a free strip parts. Pure; y upwards.

Careful rather than complete: what may be prose, a list or program code is no table. Knows no ruled grids.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence, Set
from itertools import pairwise
from statistics import median

from localctx.document.pdf_cells import Part, Table, cell_text
from localctx.document.pdf_columns import Row, extents, free_strips, rows_of, spanned_columns
from localctx.document.pdf_judging import is_table
from localctx.document.pdf_objects import Rule

__all__ = ["open_tables"]

ROW_GAP = 2.6
"""Base lines farther apart than this, by the height of the text, are of different tables."""
CLOSE = 1.12
"""Lines whose base lines are no farther apart, by the height of the text, are of one cell or paragraph."""
MOST_SINGLE = 3
"""Rows of a single part that may follow one another inside a table."""
TIGHT = 0.82
"""Rows nearer than this share of the table's usual distance belong together."""
CODE_SHARE = 0.75
WIDE_CHARACTERS = 40
"""A single part with more, over most of a table's width, is prose."""


def open_tables(parts: Sequence[Part], level: Sequence[Rule], typewriter: Set[int]) -> list[Table]:
    """The tables among the parts of a page's lines (cut at wide gaps); level lines tell headers and rows;
    `typewriter`: numbers of lines that look monospaced, as program code is."""
    found: list[Table] = []
    rows = rows_of(parts)
    start = used = 0
    while start < len(rows):
        if len(rows[start].parts) < 2:
            start += 1
            continue
        end = run_end(rows, start)
        begin = run_start(rows, start, used)
        strips = free_strips(rows[begin:end])
        if begin == start > used and heads_columns(rows[start - 1], rows[start:end], strips):
            begin -= 1
        inside = rows[begin:end]
        table = None if is_code(inside, typewriter) else table_of(inside, strips, level)
        if table is not None:
            found.append(table)
            used = end
        start = end
    return found


def is_code(rows: Sequence[Row], typewriter: Set[int]) -> bool:
    """Whether the rows of several words are set in a typewriter's font, nearly all."""
    lines = {part.line for row in rows for part in row.parts}
    n_words = dict.fromkeys(lines, 0)
    for row in rows:
        for part in row.parts:
            n_words[part.line] += part.text.count(" ") + 1
    longer = {number for number in lines if n_words[number] > 1}
    return len(longer & typewriter) > CODE_SHARE * len(longer)


def run_end(rows: Sequence[Row], start: int) -> int:
    """One behind the last row that may belong to a table whose first row with several parts is `start`."""
    end = last = start + 1
    while end < len(rows):
        above, row = rows[end - 1], rows[end]
        distance, height = above.bottom - row.bottom, max(above.height, row.height)
        if distance > ROW_GAP * height:
            break
        if len(row.parts) > 1:
            last = end + 1
        elif end - last >= MOST_SINGLE or is_wide(row, rows[start:last]):
            break
        elif last == end and distance <= CLOSE * height:  # a cell goes on
            last = end + 1
        end += 1
    return last


def run_start(rows: Sequence[Row], start: int, least: int) -> int:
    """The first of the rows close above `start`, whose only part is the beginning of a cell."""
    while (
        start > least
        and len(rows[start - 1].parts) == 1
        and rows[start - 1].bottom - rows[start].bottom
        <= CLOSE * max(rows[start].height, rows[start - 1].height)
        and not is_wide(rows[start - 1], rows[start : start + 1])
    ):
        start -= 1
    return start


def is_wide(row: Row, before: Sequence[Row]) -> bool:
    """Whether a single part reaches over most of the rows before it: prose."""
    low, high = min(r.parts[0].left for r in before), max(r.parts[-1].right for r in before)
    part = row.parts[0]
    return part.right - part.left > 0.6 * (high - low) and len(part.text) > WIDE_CHARACTERS


def heads_columns(row: Row, below: Sequence[Row], strips: Sequence[float]) -> bool:
    """Whether the row's only part stands over the middle of several columns of the rows below it."""
    distance = row.bottom - below[0].bottom
    if len(row.parts) > 1 or not 0 < distance <= ROW_GAP * max(row.height, below[0].height) or not strips:
        return False
    return len(spanned_columns(row.parts[0], extents(below, strips))) > 1


def table_of(rows: Sequence[Row], strips: Sequence[float], level: Sequence[Rule]) -> Table | None:
    """The rows as a table; None where they are none."""
    if not strips:
        return None
    n_columns = len(strips) + 1
    height = median(row.height for row in rows)
    low, high = rows[0].parts[0].left, max(row.parts[-1].right for row in rows)
    lines = [r.at for r in level if r.high - r.low > 0.5 * (high - low) and r.low < high and r.high > low]
    columns = extents(rows[1:], strips)
    placed = [place(row, strips, columns if i == 0 else []) for i, row in enumerate(rows)]
    groups = grouped(rows, placed, lines, height)
    cells = [
        [cell_text([p for i in group for p in placed[i][j]]) for j in range(n_columns)] for group in groups
    ]
    n_ruled = sum(rows[-1].bottom - height < at < rows[0].bottom + 2.5 * height for at in lines)
    if not is_table(cells, [placed[i] for i in range(len(rows))], height, n_ruled):
        return None
    n_header = header_rows(rows, groups, lines, placed)
    used = frozenset(part.line for row in rows for part in row.parts)
    return Table(cells, min(n_header, len(cells) - 1), used, tuple(strips))


def place(row: Row, strips: Sequence[float], columns: Sequence[tuple[float, float]]) -> list[list[Part]]:
    """The row's parts by column; one that lies over several columns stands in each. `columns`, where the row
    has fewer parts: what is centred over several is theirs."""
    cells: list[list[Part]] = [[] for _ in range(len(strips) + 1)]
    is_group = len(row.parts) < len(columns)
    for part in row.parts:
        slack = min(0.5 * part.height, 0.3 * (part.right - part.left))
        first = bisect_left(strips, part.left + slack)
        last = max(first, bisect_left(strips, part.right - slack))
        over = spanned_columns(part, columns) if is_group else range(0)
        for j in over if len(over) > 1 else range(first, last + 1):
            cells[j].append(part)
    return cells


def grouped(
    rows: Sequence[Row], placed: Sequence[list[list[Part]]], lines: Sequence[float], height: float
) -> list[list[int]]:
    """Which rows of text are one row of the table: those a line encloses, or that stand close together and
    do not fill the same columns."""
    distances = [a.bottom - b.bottom for a, b in pairwise(rows)]
    inner = sorted(at for at in lines if rows[-1].bottom < at < rows[0].bottom)
    by_line = len(inner) >= max(3, len(rows) // 4)
    usual = usual_distance(distances, placed)
    groups = [[0]]
    for i, distance in enumerate(distances, 1):
        if by_line:
            is_same = not any(rows[i].bottom < at < rows[i - 1].bottom for at in inner)
        else:
            is_same = distance < TIGHT * usual and not all(
                a and b for a, b in zip(placed[i - 1], placed[i], strict=True)
            )
        if is_same:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def usual_distance(distances: Sequence[float], placed: Sequence[list[list[Part]]]) -> float:
    """Between base lines of rows that begin a row of the table: those with most columns filled, else all."""
    n_filled = [sum(map(bool, cells)) for cells in placed]
    most = max(n_filled)
    full = [d for d, a, b in zip(distances, n_filled, n_filled[1:], strict=False) if min(a, b) == most]
    largest = sorted(distances)[int(0.8 * (len(distances) - 1))] if distances else 0.0
    return max(median(full), 0.0) if len(full) > 1 else largest


def header_rows(
    rows: Sequence[Row],
    groups: Sequence[Sequence[int]],
    lines: Sequence[float],
    placed: Sequence[list[list[Part]]],
) -> int:
    """How many of the table's rows are its header: those above the first line below the first row, or with
    cells that span columns."""
    under = [at for at in lines if at < rows[0].bottom]
    if under:
        n_above = sum(rows[group[-1]].bottom > max(under) for group in groups)
        if 0 < n_above <= 3 and n_above < len(groups):
            return n_above
    n_header = 1
    while n_header < min(3, len(groups) - 1):
        cells = [cell for i in groups[n_header - 1] for cell in placed[i]]
        parts = [part for cell in cells for part in cell]
        if len(parts) == len(set(parts)):  # no part stands in several columns
            break
        n_header += 1
    return n_header
