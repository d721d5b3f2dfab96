"""Tables of PDFs become Markdown rows; prose, code, lists and tables of contents do not."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from document.table_pdfs import PROSE, MadeTable, made_table, markdown_tables, n_right, table_pdf
from hypothesis import given, settings
from hypothesis import strategies as st
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from localctx.document.pdf import PdfPage, extract_pdf
from localctx.document.pdf_grid import NEAR, Grid, middles, walls
from localctx.document.pdf_objects import Rule

GRID = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]


def texts(path: Path, data: bytes) -> list[str]:
    """The text of each page."""
    path.write_bytes(data)
    return [event.text for event in extract_pdf(path) if isinstance(event, PdfPage)]


@pytest.mark.parametrize("style", ["ruled", "unruled", "booktabs", "shaded"])
def test_nineteen_of_twenty_cells_are_right(tmp_path: Path, style: str) -> None:
    right = wanted = 0
    for kind, options in enumerate(({}, {"spans": True}, {"wraps": True})):
        random_ = random.Random(kind)
        tables = [made_table(random_, style, **options) for _ in range(2)]
        found = markdown_tables("\n\n".join(texts(tmp_path / "a.pdf", table_pdf(tables))))
        for table in tables:
            n, of = n_right(table.cells, found)
            right, wanted = right + n, wanted + of
    assert right >= 0.95 * wanted, (right, wanted)


def test_a_spanning_cell_stands_in_each_row_and_column(tmp_path: Path) -> None:
    drawn = [["Region", "Sales", ""], ["", "2023", "2024"], ["North", "1", "2"], ["", "3", "4"]]
    spans = [("SPAN", (0, 0), (0, 1)), ("SPAN", (1, 0), (2, 0)), ("SPAN", (0, 2), (0, 3))]
    (text,) = texts(tmp_path / "a.pdf", table_pdf([MadeTable(drawn, [*GRID, *spans], [])]))
    assert markdown_tables(text) == [
        [["Region", "Sales 2023", "Sales 2024"], ["North", "1", "2"], ["North", "3", "4"]]
    ]


def test_text_stands_around_the_table_in_order(tmp_path: Path) -> None:
    cells = [["Name", "Amount"], ["a|b", "1,000"], ["c", "2,500"]]
    (text,) = texts(tmp_path / "a.pdf", table_pdf([MadeTable(cells, GRID, cells)]))
    before, table, after = text.split("\n\n")
    assert before == (PROSE * 2).strip()
    assert table == "| Name | Amount |\n| --- | --- |\n| a\\|b | 1,000 |\n| c | 2,500 |"
    assert after == PROSE.strip()


@pytest.mark.parametrize("commands", [GRID, []])
def test_a_table_that_goes_on_overleaf_has_its_header_there(tmp_path: Path, commands: list[object]) -> None:
    cells = [["Item", "Count", "Code"], *([f"Item {n}", str(n * 7 % 90), f"K-{n}"] for n in range(1, 61))]
    pages = texts(tmp_path / "a.pdf", table_pdf([MadeTable(cells, list(commands), cells)], prose=False))
    assert len(pages) == 2
    rows = [markdown_tables(page)[0] for page in pages]
    assert [part[0] for part in rows] == [cells[0]] * 2
    assert rows[0][1:] + rows[1][1:] == cells[1:]


@pytest.mark.parametrize("first", [["0", "0"], ["–", "–"]])
def test_a_first_row_of_equal_cells_stays_a_row(tmp_path: Path, first: list[str]) -> None:
    cells = [first, ["7", "8"], ["9", "5"]]
    (text,) = texts(tmp_path / "a.pdf", table_pdf([MadeTable(cells, GRID, cells)]))
    assert markdown_tables(text) == [cells]


def test_a_first_row_of_one_cell_is_a_caption(tmp_path: Path) -> None:
    drawn = [["Sales", ""], ["North", "South"], ["9", "5"]]
    (text,) = texts(tmp_path / "a.pdf", table_pdf([MadeTable(drawn, [*GRID, ("SPAN", (0, 0), (1, 0))], [])]))
    assert markdown_tables(text) == [drawn[1:]]
    assert "\n\nSales\n\n| North" in text


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_walls_are_where_lines_lie(data: st.DataObject) -> None:
    """Edges ascend or descend; a line may lie near two of them, and reach beyond the grid."""
    spot = st.integers(0, 400).map(float)
    spots = st.lists(spot, min_size=2, max_size=6, unique=True)
    order = data.draw(st.booleans())
    edges = sorted(data.draw(spots), reverse=order)
    places = middles(sorted(data.draw(spots), reverse=not order))
    rules = [Rule(at, min(a, b), max(a, b)) for at, a, b in data.draw(st.lists(st.tuples(spot, spot, spot)))]
    assert walls(rules, edges, places) == [
        [
            any(abs(r.at - at) <= 2 * NEAR and r.low - 1 <= place <= r.high + 1 for r in rules)
            for place in places
        ]
        for at in edges
    ]


class CountedRules(list[Rule]):
    """Rules that count how often one of them is looked at."""

    n_looks = 0

    def __iter__(self) -> Iterator[Rule]:
        for rule in super().__iter__():
            self.n_looks += 1
            yield rule


def test_each_line_of_a_grid_is_looked_at_once() -> None:
    edges = [20.0 * n for n in range(31)]
    level = CountedRules(Rule(y, x, x + 20) for y in edges for x in edges[:-1])
    upright = CountedRules(Rule(x, y, y + 20) for x in edges for y in edges[:-1])
    grid = Grid(edges, edges[::-1], level, upright)
    assert all(cell == owner for cell, owner in grid.owners().items())
    assert level.n_looks == upright.n_looks == 31 * 30


def page_of(lines: list[list[tuple[float, str]]], font: str = "Times-Roman") -> bytes:
    """A page of lines, each of texts at places from the left."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, invariant=1)
    canvas.setFont(font, 10)
    for number, line in enumerate(lines):
        for left, text in line:
            canvas.drawString(left, 760 - 12 * number, text)
    canvas.save()
    return out.getvalue()


@pytest.mark.parametrize(
    ("lines", "font"),
    [
        ([[(72, PROSE[n * 30 : n * 30 + 80])] for n in range(8)], "Times-Roman"),
        ([[(72, f"{n}."), (92, "a point of a list that says this")] for n in range(1, 8)], "Times-Roman"),
        ([[(72, "•"), (92, "a point of a list that says this")] for _ in range(8)], "Times-Roman"),
        ([[(72, f"Chapter {n}"), (400, str(n * 11))] for n in range(1, 9)], "Times-Roman"),
        ([[(72, f"x = f({n})"), (192, f"# says {n}")] for n in range(8)], "Courier"),
        ([[(72, f"term{n}"), (160, PROSE[n * 20 : n * 20 + 60])] for n in range(8)], "Times-Roman"),
        ([[(72, "alone"), (300, "in a row")]], "Times-Roman"),
    ],
    ids=["prose", "numbered", "bullets", "contents", "code", "terms", "one row"],
)
def test_what_is_no_table_stays_text(tmp_path: Path, lines: list[list[tuple[float, str]]], font: str) -> None:
    (text,) = texts(tmp_path / "a.pdf", page_of(lines, font))
    assert markdown_tables(text) == []
