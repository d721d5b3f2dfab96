"""Columns of a PDF are read one after another, whatever order they are drawn in; tables are no columns."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from document.column_pdfs import ORDERS, Page, story
from document.table_pdfs import made_table, markdown_tables, n_right, table_pdf
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.document.pdf import PdfPage, extract_pdf
from localctx.document.pdf_layout import PlacedLine, Word
from localctx.document.pdf_order import Placed, reading_order


def paragraphs(path: Path, data: bytes) -> list[str]:
    """The paragraphs of a document of one page."""
    path.write_bytes(data)
    (text,) = [event.text for event in extract_pdf(path) if isinstance(event, PdfPage)]
    return text.split("\n\n")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n_columns", [2, 3])
def test_columns_are_read_one_after_another(tmp_path: Path, n_columns: int, order: str) -> None:
    texts = [story(column + 1, 14) for column in range(n_columns)]
    page = Page()
    page.heading("What was found in the archive of the town")
    page.columns(texts, order)
    assert paragraphs(tmp_path / "a.pdf", page.pdf()) == [
        "What was found in the archive of the town",
        *texts,
    ]


@pytest.mark.parametrize("order", ORDERS)
def test_what_spans_columns_parts_them(tmp_path: Path, order: str) -> None:
    upper, lower = [story(1, 8), story(2, 8)], [story(3, 8), story(4, 8)]
    page = Page()
    page.heading("The first part of what the clerk wrote down")
    page.columns(upper, order)
    page.figure("Figure 1: the harbour as it was seen from the tower")
    page.columns(lower, order)
    assert paragraphs(tmp_path / "a.pdf", page.pdf()) == [
        "The first part of what the clerk wrote down",
        *upper,
        "Figure 1: the harbour as it was seen from the tower",
        *lower,
    ]


def test_a_sentence_goes_on_in_the_next_column(tmp_path: Path) -> None:
    words = story(1, 30).split()
    half = len(words) // 2
    page = Page()
    page.columns([" ".join(words[:half]), " ".join(words[half:])], "rows")
    (text,) = paragraphs(tmp_path / "a.pdf", page.pdf())
    assert text.split() == words


def test_paragraphs_of_columns_stay_apart(tmp_path: Path) -> None:
    texts = ["\n\n".join(story(n, n) for n in lengths) for lengths in ((3, 6, 4), (5, 2, 7))]
    page = Page()
    page.columns(texts, "last first")
    assert paragraphs(tmp_path / "a.pdf", page.pdf()) == [p for text in texts for p in text.split("\n\n")]


@pytest.mark.parametrize("style", ["unruled", "ruled"])
def test_cells_that_wrap_are_no_columns(tmp_path: Path, style: str) -> None:
    table = made_table(random.Random(5), style, wraps=True)
    path = tmp_path / "a.pdf"
    path.write_bytes(table_pdf([table]))
    (text,) = [event.text for event in extract_pdf(path) if isinstance(event, PdfPage)]
    n, of = n_right(table.cells, markdown_tables(text))
    assert n >= 0.9 * of


def test_commands_beside_their_meanings_stay_rows(tmp_path: Path) -> None:
    names = ["update", "upgrade", "install", "remove", "search", "policy", "show", "list"]
    page = Page()
    page.canvas.setFont("Times-Roman", 10)
    for row, name in enumerate(names):
        page.canvas.drawString(60, 700 - 12 * row, f"old tool {name} ->")
        page.canvas.drawString(190, 700 - 12 * row, f"new tool {name}")
    lines = paragraphs(tmp_path / "a.pdf", page.pdf())
    assert all(f"old tool {name} ->" in "\n".join(lines) for name in names)
    flat = " ".join(lines).replace("|", " ").split()
    assert flat.index("new") < flat.index("upgrade")


LINE = st.builds(
    lambda left, row, width, text: PlacedLine(
        text, left, left + width, 12.0 * row, 12.0 * row + 10, 20.0, (Word(text, left, left + width),)
    ),
    st.sampled_from([60.0, 62.0, 200.0, 310.0, 330.0]),
    st.integers(0, 60),
    st.sampled_from([40.0, 230.0, 240.0, 480.0]),
    st.sampled_from(
        ["and then it went on to say that", "It ended.", "of which nothing more was heard", "12"]
    ),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(LINE, max_size=80))
def test_no_line_is_lost_or_doubled(lines: list[PlacedLine]) -> None:
    items = [Placed(i, line) for i, line in enumerate(lines)]
    runs = reading_order(items)
    if runs is not None:
        assert sorted(item.number for run in runs for item in run) == list(range(len(lines)))
