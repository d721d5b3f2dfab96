"""The primary PDF engine: pdfium through its C interface, with every line's place. Runs in the child only.

pdfium is not thread-safe: one document, one thread, one process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

import pypdfium2 as pdfium
import pypdfium2.raw as c

from localctx.document.pdf_engines import Reading
from localctx.document.pdf_lines import LineReader
from localctx.document.pdf_objects import Box, drawn_on
from localctx.document.pdf_raised import box_fields

__all__ = ["PdfiumReader", "PdfiumRefusal"]

MAX_OUTLINE_DEPTH = 15

EVERYWHERE = Box(-1e9, -1e9, 1e9, 1e9)

REASONS = {
    c.FPDF_ERR_FILE: "cannot be opened",
    c.FPDF_ERR_FORMAT: "is not a PDF or is damaged",
    c.FPDF_ERR_PASSWORD: "needs a password",
    c.FPDF_ERR_SECURITY: "is encrypted in an unknown way",
    c.FPDF_ERR_PAGE: "has a page that cannot be loaded",
}


class PdfiumRefusal(Exception):
    """pdfium does not open the document; `needs_password` says why not."""

    def __init__(self, code: int) -> None:
        super().__init__(REASONS.get(code, "is refused"))
        self.needs_password = code in (c.FPDF_ERR_PASSWORD, c.FPDF_ERR_SECURITY)


class PdfiumReader:
    """A document that pdfium opened, from a path (any bytes) or from an open file."""

    engine = "pdfium"

    def __init__(self, source: str | BinaryIO, password: str = "") -> None:
        if isinstance(source, str):
            raw = c.FPDF_LoadDocument(os.fsencode(source), password.encode("utf-8", "surrogateescape"))
            if not raw:
                raise PdfiumRefusal(c.FPDF_GetLastError())
            self.document = pdfium.PdfDocument(raw)
        else:
            try:
                self.document = pdfium.PdfDocument(source)
            except pdfium.PdfiumError:
                raise PdfiumRefusal(c.FPDF_GetLastError() or c.FPDF_ERR_FORMAT) from None
        if len(self.document) == 0:
            raise PdfiumRefusal(c.FPDF_ERR_FORMAT)
        self.rectangle = c.FS_RECTF()
        self.usual_widths: dict[float, float] = {}
        self.places_words = False
        """Whether every word is placed: lines may have to be cut at columns."""

    @property
    def n_pages(self) -> int:
        """Number of pages."""
        return len(self.document)

    def label(self, index: int) -> str | None:
        """The printed label, None where the document has none."""
        return self.document.get_page_label(index) or None

    def outline(self) -> Iterator[tuple[int, str, int | None]]:
        """Bookmarks: level from 1, title, page index."""
        self.load_page_list()
        for bookmark in self.document.get_toc(max_depth=MAX_OUTLINE_DEPTH):
            destination = bookmark.get_dest()
            page = destination.get_index() if destination else None
            yield bookmark.level + 1, bookmark.get_title(), page

    def load_page_list(self) -> None:
        """Touch every page, after which pdfium finds the page of a bookmark ten times faster."""
        size = c.FS_SIZEF()
        for index in range(self.n_pages):
            c.FPDF_GetPageSizeByIndexF(self.document.raw, index, size)

    def read(self, index: int) -> Reading:
        """The page's lines as drawn, what else is drawn, and what of the text nobody sees."""
        page = c.FPDF_LoadPage(self.document.raw, index)
        if not page:
            raise PdfiumRefusal(c.FPDF_ERR_PAGE)
        text_page = c.FPDFText_LoadPage(page)
        try:
            n_drawn = c.FPDFPage_CountObjects(page)
            if not text_page:
                raise PdfiumRefusal(c.FPDF_ERR_PAGE)
            box = self.page_box(page)
            drawn = drawn_on(page, n_drawn, box)
            reader = LineReader(text_page, drawn, box, self.usual_widths, self.places_words)
            lines = tuple(reader.lines())
        finally:
            if text_page:
                c.FPDFText_ClosePage(text_page)
            c.FPDF_ClosePage(page)
        return Reading("", lines, n_drawn, drawn, box, tuple(reader.hidden))

    def page_box(self, page: object) -> Box:
        """What is shown of a page."""
        box = self.rectangle
        if not c.FPDF_GetPageBoundingBox(page, box):
            return EVERYWHERE
        left, top, right, bottom = box_fields(box)
        return Box(left, bottom, right, top)
