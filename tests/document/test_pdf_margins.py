"""Running headers, footers and page numbers leave the text of a PDF; the numbers become page labels."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from document.table_pdfs import PROSE
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from localctx.document.pdf import PdfEnd, PdfPage, extract_pdf

WORDS = PROSE.split()


def book(n_pages: int, header: str, footer: str) -> bytes:
    """Pages of prose of their own between a header and a footer; {n} is the printed number: i, ii, 1, 2, …"""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, invariant=1)
    for page in range(n_pages):
        printed = ["i", "ii"][page] if page < 2 else str(page - 1)
        canvas.setFont("Times-Roman", 10)
        canvas.drawString(72, 800, header.format(n=printed))
        canvas.drawRightString(520, 40, footer.format(n=printed))
        for line in range(12):
            words = (WORDS[(page * 7 + line * 11 + k) % len(WORDS)] for k in range(10))
            canvas.drawString(72, 740 - 12 * line, " ".join(words))
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def pages_of(path: Path, data: bytes, **options: object) -> list[PdfPage]:
    """The pages of a document."""
    path.write_bytes(data)
    events = extract_pdf(path, **options)  # type: ignore[arg-type]  # the options of each test
    return [event for event in events if isinstance(event, PdfPage)]


def test_page_numbers_become_labels_and_headers_stay_once(tmp_path: Path) -> None:
    pages = pages_of(tmp_path / "a.pdf", book(12, "Annual Report", "{n}"))
    assert [page.label for page in pages] == ["i", "ii", *map(str, range(1, 11))]
    assert pages[0].text.startswith("Annual Report\n\n")
    assert sum("Annual Report" in page.text for page in pages) == 1
    assert not any(page.text.endswith(f"\n{page.label}") for page in pages)
    assert all(len(page.text.split()) >= 118 for page in pages)


def test_numbers_within_the_header_count(tmp_path: Path) -> None:
    pages = pages_of(tmp_path / "a.pdf", book(12, "Report 2024 – page {n} of 40", ""))
    assert [page.label for page in pages[2:]] == [str(n) for n in range(1, 11)]
    assert not any("page" in page.text for page in pages[3:])


def test_lines_that_are_all_there_is_stay(tmp_path: Path) -> None:
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, invariant=1)
    for page in range(6):
        canvas.drawString(72, 790, f"Slide {page + 1}")
        canvas.showPage()
    canvas.save()
    pages = pages_of(tmp_path / "a.pdf", out.getvalue())
    assert [page.text for page in pages] == [f"Slide {n}" for n in range(1, 7)]


def test_titles_at_one_height_stay(tmp_path: Path) -> None:
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, invariant=1)
    for page in range(6):
        canvas.setFont("Times-Bold", 16)
        canvas.drawString(72, 790, f"Part {page + 1}")
        canvas.setFont("Times-Roman", 10)
        for line in range(10):
            canvas.drawString(72, 740 - 12 * line, " ".join(WORDS[page * 3 + line : page * 3 + line + 10]))
        canvas.showPage()
    canvas.save()
    pages = pages_of(tmp_path / "a.pdf", out.getvalue())
    assert all(page.text.startswith(f"Part {n}\n") for n, page in enumerate(pages, 1))


def test_part_of_a_document_has_the_same_labels(tmp_path: Path) -> None:
    pages = pages_of(tmp_path / "a.pdf", book(12, "Annual Report", "{n}"), pages=range(5, 8))
    assert [(page.number, page.label) for page in pages] == [(5, "3"), (6, "4"), (7, "5")]


def end_of(path: Path) -> tuple[str, ...]:
    """What is told of a document."""
    events = list(extract_pdf(path))
    assert isinstance(events[-1], PdfEnd)
    return events[-1].warnings


@pytest.mark.parametrize("first", [10_001, 1])
def test_what_counts_something_else_is_no_page_number(tmp_path: Path, first: int) -> None:
    """Invoices of a page each, printed into one file."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, invariant=1)
    for page in range(6):
        canvas.setFont("Times-Roman", 10)
        canvas.drawString(72, 800, f"Invoice No. {first + page}")
        canvas.drawString(72, 786, "Department: Sales")
        for line in range(12):
            canvas.drawString(72, 740 - 12 * line, " ".join(WORDS[page * 3 + line : page * 3 + line + 10]))
        canvas.showPage()
    canvas.save()
    pages = pages_of(tmp_path / "a.pdf", out.getvalue())
    assert [f"Invoice No. {first + n}" in page.text for n, page in enumerate(pages)] == [True] * 6
    assert [page.label for page in pages] == [None] * 6
    assert end_of(tmp_path / "a.pdf") == (
        "pages 2-6: 5 rows of headers and footers that were said before were left out, “Department: Sales”",
    )


def test_page_numbers_alone_are_not_told(tmp_path: Path) -> None:
    """They are labels; numbers that begin far from 1 too where they stand alone or after a word for pages."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, invariant=1)
    for page in range(6):
        canvas.setFont("Times-Roman", 10)
        canvas.drawString(72, 40, f"Page {1233 + page}")
        for line in range(12):
            canvas.drawString(72, 740 - 12 * line, " ".join(WORDS[page * 3 + line : page * 3 + line + 10]))
        canvas.showPage()
    canvas.save()
    pages = pages_of(tmp_path / "a.pdf", out.getvalue())
    assert [page.label for page in pages] == [str(1233 + n) for n in range(6)]
    assert not any("Page" in page.text for page in pages)
    assert end_of(tmp_path / "a.pdf") == ()
