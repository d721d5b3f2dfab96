"""Seeded PDFs with tables of known cells: ruled, unruled, spanning; and how many cells came out right."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, TypeAlias

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Spacer, Table

Rows: TypeAlias = list[list[str]]

WORDS = (
    "account",
    "annual",
    "asset",
    "balance",
    "board",
    "budget",
    "capital",
    "cash",
    "claim",
    "contract",
    "credit",
    "debt",
    "delivery",
    "demand",
    "draft",
    "equity",
    "export",
    "fund",
    "grant",
    "growth",
    "harbour",
    "import",
    "income",
    "index",
    "labour",
    "lease",
    "loan",
    "margin",
    "market",
    "order",
    "outlay",
    "plant",
    "price",
    "profit",
    "quota",
    "rate",
    "reserve",
    "review",
    "sales",
    "share",
    "stock",
    "supply",
    "tariff",
    "tax",
    "term",
    "trade",
    "value",
    "yield",
)
PROSE = (
    "It is with great satisfaction that I meet you here to consider the efficient use of the revenue, the "
    "state of our commerce with all nations, and what remains to be done for the public good. The accounts "
    "of the past year were laid before the House in March, and nothing in them gave cause for alarm. "
)
BODY = ParagraphStyle("body", fontName="Times-Roman", fontSize=10, leading=12, spaceAfter=6)
CELL = ParagraphStyle("cell", fontName="Helvetica", fontSize=8.5, leading=10)
LINES = {
    "ruled": [("GRID", (0, 0), (-1, -1), 0.5, colors.black)],
    "unruled": [],
    "booktabs": [
        ("LINEABOVE", (0, 0), (-1, 0), 0.8, colors.black),
        ("LINEBELOW", (0, 0), (-1, 0), 0.4, colors.black),
        ("LINEBELOW", (0, -1), (-1, -1), 0.8, colors.black),
    ],
    "shaded": [
        ("BACKGROUND", (0, 0), (-1, 0), colors.darkblue),
        ("TEXTCOLOR", (0, 0), (-1, 0), colors.white),
        ("ROWBACKGROUNDS", (0, 1), (-1, -1), [colors.white, colors.lightgrey]),
    ],
}


@dataclass(frozen=True, slots=True)
class MadeTable:
    """A table as it is drawn, and its cells: what spans several is expected in each."""

    drawn: list[list[Any]]
    commands: list[Any]
    cells: Rows
    widths: list[float] | None = None


def words(random_: random.Random, least: int, most: int) -> str:
    """Some words, the first with a capital."""
    return " ".join(random_.choices(WORDS, k=random_.randint(least, most))).capitalize()


def value(random_: random.Random, kind: str) -> str:
    """A cell of a column of that kind."""
    if kind == "text":
        return words(random_, 1, 3)
    if kind == "amount":
        return f"{random_.randint(-9_999, 999_999):,}"
    if kind == "share":
        return f"{random_.uniform(0, 100):.1f}%"
    return f"{random_.choice('ABKQ')}-{random_.randint(100, 9_999)}"


def made_table(random_: random.Random, style: str, *, spans: bool = False, wraps: bool = False) -> MadeTable:
    """A table of 4 to 12 rows; `spans`: a header of two rows, groups of rows; `wraps`: long cells."""
    kinds = ["text", *random_.choices(["amount", "share", "code", "text"], k=random_.randint(2, 5))]
    n_rows = random_.randint(4, 12)
    header = [words(random_, 1, 2) for _ in kinds]
    cells = [header, *([value(random_, kind) for kind in kinds] for _ in range(n_rows))]
    commands: list[Any] = [*LINES[style]]
    if spans and style == "booktabs":  # the line below the header's last row
        commands[1] = ("LINEBELOW", (0, 1), (-1, 1), 0.4, colors.black)
    for column, kind in enumerate(kinds):
        if kind in ("amount", "share"):
            commands.append(
                ("ALIGN", (column, 1), (column, -1), random_.choice(["RIGHT", "RIGHT", "CENTER"]))
            )
    if not spans:
        for _ in range(random_.randint(0, 2)):  # a few empty cells, none that empty a row or a column
            cells[random_.randint(1, n_rows)][random_.randint(1, len(kinds) - 1)] = ""
    commands.append(("VALIGN", (0, 0), (-1, -1), random_.choice(["TOP", "MIDDLE"])))
    drawn: list[list[Any]] = [list(row) for row in cells]
    widths = None
    if wraps:
        for row in range(1, n_rows + 1):
            cells[row][0] = words(random_, 4, 12)
            for column, kind in enumerate(kinds):
                if kind == "text":
                    drawn[row][column] = Paragraph(cells[row][column], CELL)
        header[:] = [words(random_, 1, 1) for _ in kinds]
        drawn[0][:] = header
        widths = [130.0, *([330.0 / (len(kinds) - 1)] * (len(kinds) - 1))]
    if spans:
        add_spans(random_, cells, drawn, commands)
        if style == "ruled":
            span_rows(random_, cells, drawn, commands)
    return MadeTable(drawn, commands, cells, widths)


def add_spans(random_: random.Random, cells: Rows, drawn: list[list[Any]], commands: list[Any]) -> None:
    """Put a row above the header with a cell that spans two columns."""
    n_columns = len(cells[0])
    top = [words(random_, 1, 1) for _ in range(n_columns)]
    above = [""] * n_columns
    first = random_.randint(1, n_columns - 2)
    above[first] = top[first]
    commands.append(("SPAN", (first, 0), (first + 1, 0)))
    commands.append(("ALIGN", (first, 0), (first + 1, 0), "CENTER"))
    drawn.insert(0, list(above))
    above[first + 1] = above[first]
    cells[0] = [f"{group} {name}".strip() for group, name in zip(above, cells[0], strict=True)]


def span_rows(random_: random.Random, cells: Rows, drawn: list[list[Any]], commands: list[Any]) -> None:
    """Let cells of the first column span up to three rows below the header."""
    row = 2
    while row < len(drawn):
        n_spanned = min(random_.randint(1, 3), len(drawn) - row)
        if n_spanned > 1:
            commands.append(("SPAN", (0, row), (0, row + n_spanned - 1)))
            for more in range(1, n_spanned):
                drawn[row + more][0] = ""
                cells[row + more - 1][0] = cells[row - 1][0]
        row += n_spanned


def table_pdf(tables: Sequence[MadeTable], *, prose: bool = True) -> bytes:
    """The tables one under another on A4, prose between them."""
    story: list[Flowable] = []
    for table in tables:
        if prose:
            story.append(Paragraph(PROSE * 2, BODY))
        story += [Table(table.drawn, style=table.commands, colWidths=table.widths), Spacer(1, 14)]
    if prose:
        story.append(Paragraph(PROSE, BODY))
    out = io.BytesIO()
    SimpleDocTemplate(out, pagesize=A4, invariant=1).build(story)
    return out.getvalue()


def markdown_tables(text: str) -> list[Rows]:
    """The tables of a text, without the rows of dashes."""
    tables: list[Rows] = []
    inside = False
    for line in text.split("\n"):
        is_row = line.startswith("|") and line.endswith("|")
        if is_row and not inside:
            tables.append([])
        inside = is_row
        if is_row:
            cells = [cell.strip().replace("\\|", "|") for cell in line.replace("\\|", "\0").split("|")[1:-1]]
            cells = [cell.replace("\0", "|") for cell in cells]
            if not all(cell and not cell.strip(":-") for cell in cells):
                tables[-1].append(cells)
    return tables


def n_right(wanted: Rows, found: Sequence[Rows]) -> tuple[int, int]:
    """Cells of `wanted` that stand in their place in the best of the found tables, and all of them."""
    return max((matching(wanted, rows) for rows in found), default=0), sum(map(len, wanted))


def matching(wanted: Rows, found: Rows) -> int:
    """Cells that agree, rows aligned by their content; a row of another number of cells has none right."""
    keys = [["".join(row) for row in rows] for rows in (wanted, found)]
    right = 0
    for tag, a, b, c, d in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if tag == "equal":
            right += sum(len(w) for w, f in zip(wanted[a:b], found[c:d], strict=True) if len(w) == len(f))
        elif tag == "replace":
            for w, f in zip(wanted[a:b], found[c:d], strict=False):
                right += sum(x == y for x, y in zip(w, f, strict=True)) if len(w) == len(f) else 0
    return right
