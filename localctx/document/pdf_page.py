"""A page's placed lines and drawn objects → its text: columns in order, tables as Markdown, the rest flowing.

Pure; knows no engine. Order of the lines is the engine's wherever that makes sense.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from localctx.document.pdf_cells import Part, Table, parts_of
from localctx.document.pdf_engines import Reading
from localctx.document.pdf_footnotes import notes_of, parted, with_notes, without_notes
from localctx.document.pdf_grid import ruled_tables
from localctx.document.pdf_layout import PlacedLine, flow
from localctx.document.pdf_objects import Rule
from localctx.document.pdf_order import Placed, Strip, reading_order
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


def compose(
    reading: Reading,
    lines: Sequence[PlacedLine],
    before: Composed = NOTHING,
    strips: Sequence[Strip] = (),
) -> Composed:
    """The text of the page's `lines`. A table that goes on from the page before gets the header that it has
    there; `strips` part columns on other pages."""
    pieces = parted(lines)
    notes = notes_of(pieces)
    while notes:
        page = composed(reading, list(without_notes(pieces, notes)), before, strips)
        said = [note for note in notes if f"[^{note.mark}]" in page.text]
        if len(said) == len(notes):
            return replace(page, text=with_notes(page.text, notes))
        notes = said  # what only a table refers to stays where it is
    return composed(reading, lines, before, strips)


def composed(
    reading: Reading, lines: Sequence[PlacedLine], before: Composed, strips: Sequence[Strip]
) -> Composed:
    """The text of lines none of which is a footnote's."""
    runs = in_order(lines, reading, strips)
    ordered = [item for run in runs for item in run]
    starts = {run[0].line for run in runs[1:] if run}
    prose = [item.line for item in ordered if item.table is None]
    parts: list[str] = []
    run: list[PlacedLine] = []
    last: Table | None = None
    header: list[str] | None = None
    for item in ordered:
        if item.table is not None:
            parts.append(flow(run, prose, starts))
            run, last = [], item.table
            header = continued(last, before) if not any(parts) else None
            parts += [last.caption, last.markdown(header)]
            header = header or last.header
        else:
            run.append(item.line)
    parts.append(flow(run, prose, starts))
    text = "\n\n".join(filter(None, parts))
    return Composed(text) if parts[-1] else Composed(text, last, header)


def in_order(lines: Sequence[PlacedLine], reading: Reading, strips: Sequence[Strip]) -> list[list[Placed]]:
    """Runs of the page's lines and tables as they are read, one for a column. Where there are columns of
    prose, a table without upright lines is looked for in each of them."""
    drawn = reading.drawn
    level, upright = (drawn.level, drawn.upright) if drawn is not None else ([], [])
    items = [Placed(i, line) for i, line in enumerate(lines)]
    if len(upright) > 1 and len(level) > 1:
        words = [part for i, line in enumerate(lines) for part in parts_of(i, line, 0)]
        items = with_tables(items, ruled_tables(words, level, upright))
    runs = reading_order(items, strips) or [items]
    return [with_tables(run, tables_without_grid(run, level)) for run in runs]


def with_tables(items: Sequence[Placed], tables: Sequence[Table]) -> list[Placed]:
    """The items with each table in the place of its lines (their indices in `items`), none of which is in two
    of them."""
    taken: set[int] = set()
    first: dict[int, Table] = {}
    for table in tables:
        if taken.isdisjoint(table.lines):
            first[min(table.lines)] = table
            taken |= table.lines
    return [
        Placed(item.number, outline(items, first[i]), first[i]) if i in first else item
        for i, item in enumerate(items)
        if i in first or i not in taken
    ]


def outline(items: Sequence[Placed], table: Table) -> PlacedLine:
    """A table's place as a line without text."""
    lines = [items[i].line for i in table.lines]
    left, right = min(line.left for line in lines), max(line.right for line in lines)
    return PlacedLine(
        "", left, right, min(line.bottom for line in lines), max(line.top for line in lines), 0.0
    )


def continued(table: Table, before: Composed) -> list[str] | None:
    """The header of the table that `table` goes on from, None where it does not, or repeats it."""
    if before.last_table is None or not table.continues(before.last_table):
        return None
    return None if table.header == before.last_header else before.last_header


def tables_without_grid(items: Sequence[Placed], level: Sequence[Rule]) -> list[Table]:
    """The tables among the items that no upright lines part; their lines are indices of items."""
    lines = [item.line for item in items]
    rest = open_parts(lines)
    typewriter = {i for i in {part.line for part in rest} if is_monospaced(lines[i])}
    return open_tables(rest, level, typewriter) if rest else []


def open_parts(lines: Sequence[PlacedLine]) -> list[Part]:
    """The parts of all lines; none where no two lines have several."""
    if not any(len(line.words) > 1 for line in lines):
        return []
    parts: list[Part] = []
    n_cut = 0
    bottoms: set[int] = set()
    for i, line in enumerate(lines):
        if not line.words:
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
