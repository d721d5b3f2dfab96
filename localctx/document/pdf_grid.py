"""Ruled tables of a page: crossing lines → a grid of cells, each with its words. Pure geometry; y upwards.

A cell that spans several rows or columns is repeated in each. Knows nothing of tables without lines.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median

from localctx.document.pdf_cells import Part, Table, cell_text
from localctx.document.pdf_objects import Rule

__all__ = ["ruled_tables"]

NEAR = 3.0
"""Lines this near to one another, in points, touch; nearer than half of it they are one."""
MOST_RULES = 3_000
"""Of one page: more is a drawing."""
MOST_CELLS = 20_000
LEAST_FILLED = 0.3
"""A grid with fewer cells filled is a form, a chart or a frame."""
MOST_CELL_LINES = 30
"""A cell with more lines is a part of the page's layout."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Lines that touch one another. xs ascending, ys descending: edges of columns and rows."""

    xs: list[float]
    ys: list[float]
    level: list[Rule]
    upright: list[Rule]

    @property
    def n_rows(self) -> int:
        """Rows between the level lines."""
        return len(self.ys) - 1

    @property
    def n_columns(self) -> int:
        """Columns between the upright lines."""
        return len(self.xs) - 1

    def cell_of(self, part: Part) -> tuple[int, int] | None:
        """Row and column of a part of a line, None where it is outside."""
        y = (part.bottom + part.top) / 2
        x = part.left + min(0.25 * (part.top - part.bottom), 0.5 * (part.right - part.left))
        if not (self.xs[0] <= x <= self.xs[-1] and self.ys[-1] <= y <= self.ys[0]):
            return None
        row = sum(edge > y for edge in self.ys) - 1
        return max(0, row), min(bisect_right(self.xs, x) - 1, self.n_columns - 1)

    def owners(self) -> dict[tuple[int, int], tuple[int, int]]:
        """For each cell the first cell of those that it makes one with: no line lies between them."""
        owner = {(i, j): (i, j) for i in range(self.n_rows) for j in range(self.n_columns)}

        def find(cell: tuple[int, int]) -> tuple[int, int]:
            while owner[cell] != cell:
                owner[cell] = owner[owner[cell]]
                cell = owner[cell]
            return cell

        right_of = walls(self.upright, self.xs, middles(self.ys))
        below = walls(self.level, self.ys, middles(self.xs))
        for i in range(self.n_rows):
            for j in range(self.n_columns):
                if j + 1 < self.n_columns and not right_of[j + 1][i]:
                    first, second = sorted((find((i, j)), find((i, j + 1))))
                    owner[second] = first
                if i + 1 < self.n_rows and not below[i + 1][j]:
                    first, second = sorted((find((i, j)), find((i + 1, j))))
                    owner[second] = first
        return {cell: find(cell) for cell in owner}


def ruled_tables(parts: Sequence[Part], level: Sequence[Rule], upright: Sequence[Rule]) -> list[Table]:
    """The tables that the lines make with the parts of the page's text."""
    if not level or not upright or len(level) + len(upright) > MOST_RULES:
        return []
    found = (table_of(grid, parts) for grid in grids(joined(level), joined(upright)))
    return [table for table in found if table is not None]


def joined(rules: Iterable[Rule]) -> list[Rule]:
    """Pieces of one line as one."""
    whole: list[Rule] = []
    for rule in sorted(rules, key=lambda r: (round(r.at), r.low)):
        for i in range(len(whole) - 1, max(-1, len(whole) - 4), -1):
            other = whole[i]
            touches = other.low - NEAR <= rule.high and rule.low - NEAR <= other.high
            if touches and abs(other.at - rule.at) <= NEAR / 2:
                whole[i] = Rule(other.at, min(other.low, rule.low), max(other.high, rule.high))
                break
        else:
            whole.append(rule)
    return whole


def grids(level: list[Rule], upright: list[Rule]) -> Iterable[Grid]:
    """Groups of lines that touch, those with two columns and two edges of rows at least."""
    group = list(range(len(level) + len(upright)))

    def find(n: int) -> int:
        while group[n] != n:
            group[n] = group[group[n]]
            n = group[n]
        return n

    for i, flat in enumerate(level):
        for j, tall in enumerate(upright):
            if (
                flat.low - NEAR <= tall.at <= flat.high + NEAR
                and tall.low - NEAR <= flat.at <= tall.high + NEAR
            ):
                group[find(len(level) + j)] = find(i)
    members: dict[int, tuple[list[Rule], list[Rule]]] = {}
    for i, flat in enumerate(level):
        members.setdefault(find(i), ([], []))[0].append(flat)
    for j, tall in enumerate(upright):
        members.setdefault(find(len(level) + j), ([], []))[1].append(tall)
    for flats, talls in members.values():
        if len(flats) < 2 or not talls:
            continue
        low, high = min(r.low for r in flats), max(r.high for r in flats)
        xs = edges([*(r.at for r in talls), low, high])
        ys = edges([*(r.at for r in flats), min(r.low for r in talls), max(r.high for r in talls)])[::-1]
        if len(xs) > 2 and len(ys) > 1 and len(xs) * len(ys) <= MOST_CELLS:
            yield Grid(xs, ys, flats, talls)


def edges(values: Iterable[float]) -> list[float]:
    """Values ascending, those near to one another as one."""
    kept: list[list[float]] = []
    for value in sorted(values):
        if kept and value - kept[-1][0] <= 2 * NEAR:
            kept[-1].append(value)
        else:
            kept.append([value])
    return [median(group) for group in kept]


def middles(edges: Sequence[float]) -> list[float]:
    """The middle between each edge and the next."""
    return [(a + b) / 2 for a, b in pairwise(edges)]


def walls(rules: Iterable[Rule], edges: Sequence[float], places: Sequence[float]) -> list[list[bool]]:
    """For each edge, and each place along it, whether a line lies there. Each line is looked at once."""
    ascending = sorted(range(len(edges)), key=lambda n: edges[n])
    ats = [edges[n] for n in ascending]
    is_reversed = len(places) > 1 and places[0] > places[-1]
    along = list(reversed(places)) if is_reversed else list(places)
    begun = [[0] * (len(places) + 1) for _ in edges]  # lines that begin at a place, less those that ended
    for rule in rules:
        first, end = bisect_left(along, rule.low - 1), bisect_right(along, rule.high + 1)
        if first < end:
            for n in ascending[bisect_left(ats, rule.at - 2 * NEAR) : bisect_right(ats, rule.at + 2 * NEAR)]:
                begun[n][first] += 1
                begun[n][end] -= 1
    found = [[n_lines > 0 for n_lines in accumulate(changes[:-1])] for changes in begun]
    return [row[::-1] for row in found] if is_reversed else found


def table_of(grid: Grid, parts: Sequence[Part]) -> Table | None:
    """The grid with its words; None where it is no table."""
    owners = grid.owners()
    held: dict[tuple[int, int], list[Part]] = {}
    inside: set[int] = set()
    outside: set[int] = set()
    for part in parts:
        cell = grid.cell_of(part)
        if cell is None:
            outside.add(part.line)
        else:
            held.setdefault(owners[cell], []).append(part)
            inside.add(part.line)
    n_cells = len(set(owners.values()))
    if len(held) < max(3, LEAST_FILLED * n_cells) or len({cell[1] for cell in held}) < 2:
        return None
    if any(len({part.line for part in cell}) > MOST_CELL_LINES for cell in held.values()):
        return None
    texts = {cell: cell_text(members) for cell, members in held.items()}
    rows = [[texts.get(owners[i, j], "") for j in range(grid.n_columns)] for i in range(grid.n_rows)]
    spanned = [spans(owners, i, grid) for i in range(grid.n_rows)]
    filled = [(row, spans_more) for row, spans_more in zip(rows, spanned, strict=True) if any(row)]
    top = next((i for i, row in enumerate(rows) if any(row)), 0)
    is_caption = len({owners[top, j] for j in range(grid.n_columns)}) == 1
    caption = filled.pop(0)[0][0] if filled and is_caption else ""
    used = frozenset(inside - outside)
    if len(filled) < 2 or not used:
        return None
    n_header = 1
    while n_header < min(3, len(filled) - 1) and filled[n_header - 1][1]:
        n_header += 1
    return Table([row for row, _ in filled], n_header, used, tuple(grid.xs), caption)


def spans(owners: dict[tuple[int, int], tuple[int, int]], i: int, grid: Grid) -> bool:
    """Whether a cell of row `i` spans columns, or the next row too."""
    row = [owners[i, j] for j in range(grid.n_columns)]
    below = [owners.get((i + 1, j)) for j in range(grid.n_columns)]
    return len(set(row)) < len(row) or any(a == b for a, b in zip(row, below, strict=True))
