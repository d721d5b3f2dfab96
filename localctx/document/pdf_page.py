"""A page's placed lines and drawn objects → its text: columns in order, tables as Markdown, the rest flowing.

Pure; knows no engine. Order of the lines is the engine's wherever that makes sense.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localctx.document.pdf_cells import Part, Table, parts_of
from localctx.document.pdf_engines import Reading
from localctx.document.pdf_grid import ruled_tables
from localctx.document.pdf_layout import PlacedLine, flow
from localctx.document.pdf_rows import open_tables

__all__ = ["NOTHING", "Composed", "compose"]

CELL_GAP = 0.75
"""Free space between two cells of a table without upright lines, by the height of the text."""
MONOSPACED = 0.06
"""How far from whole characters the words of a line in a typewriter's font may begin."""


@dataclass(frozen=True, slots=True)
class Composed:
    """A page's text, and the table that it ends with, of which the next page may have more."""

    text: str
    last_table: Table | None = None
    last_header: list[str] | None = None


NOTHING = Composed("")


def compose(reading: Reading, lines: Sequence[PlacedLine], before: Composed = NOTHING) -> Composed:
    """The text of the page's `lines`. A table that goes on from the page before gets the header that it has
    there."""
    tables = find_tables(lines, reading)
    first = {min(table.lines): table for table in tables}
    inside = frozenset().union(*(table.lines for table in tables))
    prose = [line for i, line in enumerate(lines) if i not in inside]
    parts: list[str] = []
    run: list[PlacedLine] = []
    last: Table | None = None
    header: list[str] | None = None
    for i, line in enumerate(lines):
        if i in first:
            parts.append(flow(run, prose))
            run, last = [], first[i]
            header = continued(last, before) if not any(parts) else None
            parts += [last.caption, last.markdown(header)]
            header = header or last.header
        elif i not in inside:
            run.append(line)
    parts.append(flow(run, prose))
    text = "\n\n".join(filter(None, parts))
    return Composed(text) if parts[-1] else Composed(text, last, header)


def continued(table: Table, before: Composed) -> list[str] | None:
    """The header of the table that `table` goes on from, None where it does not, or repeats it."""
    if before.last_table is None or not table.continues(before.last_table):
        return None
    return None if table.header == before.last_header else before.last_header


def find_tables(lines: Sequence[PlacedLine], reading: Reading) -> list[Table]:
    """The page's tables, none of whose lines is in two of them."""
    drawn = reading.drawn
    tables: list[Table] = []
    taken: set[int] = set()
    if drawn is not None and len(drawn.upright) > 1 and len(drawn.level) > 1:
        words = [part for i, line in enumerate(lines) for part in parts_of(i, line, 0)]
        for table in ruled_tables(words, drawn.level, drawn.upright):
            if taken.isdisjoint(table.lines):
                tables.append(table)
                taken |= table.lines
    level = drawn.level if drawn is not None else []
    rest = open_parts(lines, taken)
    typewriter = {i for i in {part.line for part in rest} if is_monospaced(lines[i])}
    for table in open_tables(rest, level, typewriter) if rest else []:
        if taken.isdisjoint(table.lines):
            tables.append(table)
            taken |= table.lines
    return tables


def open_parts(lines: Sequence[PlacedLine], taken: set[int]) -> list[Part]:
    """The parts of all lines that are not taken; none where no two lines have several."""
    parts: list[Part] = []
    n_cut = 0
    bottoms: set[int] = set()
    for i, line in enumerate(lines):
        if i in taken or not line.words:
            continue
        own = parts_of(i, line, CELL_GAP)
        n_cut += len(own) > 1
        base = round(line.bottom)
        n_cut += base in bottoms
        bottoms.add(base)
        parts += own
    return parts if n_cut > 1 else []


def is_monospaced(line: PlacedLine) -> bool:
    """Whether the words of a line begin at whole characters of one width."""
    if len(line.words) < 2:
        return False
    first = line.words[0]
    width, whole = line.word_width / len(first.text), line.right - line.left
    if not 0 < width <= whole:
        return False
    width = whole / round(whole / width)  # the first word may be a single character
    off = [(word.left - first.left) / width for word in line.words[1:]]
    return all(abs(place - round(place)) < MONOSPACED * (1 + len(line.words) / 20) for place in off)
