"""From the extractor's events to a document: the early preview, and what is said of pages without text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from document.conftest import Open
from document.inputs import line, pdf

from localctx.document import from_pdf, open_document
from localctx.document.events import Preview
from localctx.document.from_pdf import PREVIEW_PAGES, previewed
from localctx.document.pdf import OutlineEntry, PdfEnd, PdfHeader, PdfPage
from localctx.errors import NoTextError


def events(n_pages: int) -> Iterator[PdfHeader | PdfPage | PdfEnd]:
    """What the extractor tells of a document of so many pages."""
    yield PdfHeader(n_pages, (OutlineEntry(1, "One", 1), OutlineEntry(2, "Two", None)))
    for number in range(1, n_pages + 1):
        yield PdfPage(number, f"text {number}")
    yield PdfEnd()


@pytest.mark.parametrize("n_pages", [PREVIEW_PAGES + 1, 3 * PREVIEW_PAGES])
def test_a_long_document_is_previewed_once_after_its_first_pages(n_pages: int) -> None:
    told: list[Preview] = []
    seen: list[int] = []
    for event in previewed(events(n_pages), "a.pdf", told.append):
        if isinstance(event, PdfPage):
            seen.append(event.number)
            assert bool(told) == (event.number > PREVIEW_PAGES)
    assert seen == list(range(1, n_pages + 1))
    (preview,) = told
    assert (preview.source, preview.format) == ("a.pdf", "pdf")
    assert (preview.n_pages, preview.n_pages_read) == (n_pages, PREVIEW_PAGES)
    assert preview.outline == ((1, "One"), (2, "Two"))
    assert preview.text.split("\n") == [f"text {number}" for number in range(1, PREVIEW_PAGES + 1)]


@pytest.mark.parametrize("n_pages", [0, 1, PREVIEW_PAGES])
def test_a_short_document_is_not_previewed(n_pages: int) -> None:
    told: list[Preview] = []
    assert list(previewed(events(n_pages), "a.pdf", told.append)) == list(events(n_pages))
    assert list(previewed(events(99), "a.pdf", None)) == list(events(99))
    assert told == []


def test_a_real_document_is_previewed(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(*(line(b"Page %d." % n) for n in range(PREVIEW_PAGES + 2))))
    told: list[Preview] = []
    open_document(path, cache_dir=None, on_preview=told.append).close()
    assert [preview.source for preview in told] == [str(path)]
    assert told[0].text.startswith("Page 0.\nPage 1.")


def unread(number: int) -> PdfPage:
    """A page that no engine could load."""
    return PdfPage(number, "", quality=0.0)


def picture(number: int) -> PdfPage:
    """A page without text."""
    return PdfPage(number, "", quality=0.0, engine="pdfium")


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ([unread(1), unread(2)], r"2 pages, none of which could be loaded"),
        ([unread(1)], r"1 page, none of which could be loaded"),
        ([unread(1), picture(2), picture(3)], r"3 pages, 1 of them damaged, the others images only"),
        ([picture(1), picture(2)], r"2 pages, images only\)"),
    ],
)
def test_pages_that_did_not_load_are_not_called_images(
    open_bytes: Open, monkeypatch: pytest.MonkeyPatch, pages: list[PdfPage], message: str
) -> None:
    def extracted(*_: object, **__: object) -> Iterator[PdfHeader | PdfPage | PdfEnd]:
        yield PdfHeader(len(pages))
        yield from pages
        yield PdfEnd()

    monkeypatch.setattr(from_pdf, "extract_pdf", extracted)
    with pytest.raises(NoTextError, match=message) as caught:
        open_bytes(pdf(line(b"x")), "a.pdf")
    assert ("OCR" in caught.value.hint) == ("images" in message)
