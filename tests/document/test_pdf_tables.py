"""Tables of PDFs become Markdown rows; prose, code, lists and tables of contents do not."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
from document.table_pdfs import PROSE, MadeTable, made_table, markdown_tables, n_right, table_pdf
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from localctx.document.pdf import PdfPage, extract_pdf

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
