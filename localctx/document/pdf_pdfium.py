"""The primary PDF engine: pdfium through its C interface, with every line's place. Runs in the child only.

pdfium is not thread-safe: one document, one thread, one process.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
from collections.abc import Iterator
from typing import BinaryIO

import pypdfium2 as pdfium
import pypdfium2.raw as c

from localctx.document.pdf_engines import Reading
from localctx.document.pdf_layout import PlacedLine, flow

__all__ = ["PdfiumReader", "PdfiumRefusal"]

LINE = re.compile("[^\r\n\ufffe\x02]+[\ufffe\x02]?|[\ufffe\x02]")
"""A line without its end; pdfium's marks of a cut word end a line, and belong to it."""
MAX_OUTLINE_DEPTH = 15

char_box = c.FPDFText_GetLooseCharBox
box_fields = struct.Struct("4f").unpack
"""left, top, right, bottom: read at once in the time of one attribute."""

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
        """The page's text with its lines flowing, the lines as drawn, and how many objects are drawn."""
        page = c.FPDF_LoadPage(self.document.raw, index)
        if not page:
            raise PdfiumRefusal(c.FPDF_ERR_PAGE)
        text_page = c.FPDFText_LoadPage(page)
        try:
            n_drawn = c.FPDFPage_CountObjects(page)
            if not text_page:
                raise PdfiumRefusal(c.FPDF_ERR_PAGE)
            lines = tuple(self.placed_lines(text_page))
            text = flow(lines)
            n_text_drawn = count_text_objects(page, n_drawn) if n_drawn > len(text) else 0
        finally:
            if text_page:
                c.FPDFText_ClosePage(text_page)
            c.FPDF_ClosePage(page)
        return Reading(text, lines, n_drawn, n_text_drawn)

    def placed_lines(self, text_page: object) -> Iterator[PlacedLine]:
        """The lines of a page in pdfium's order, with their boxes."""
        n_characters = c.FPDFText_CountChars(text_page)
        if n_characters <= 0:
            return
        buffer = (ctypes.c_ushort * (2 * n_characters + 2))()
        n_units = c.FPDFText_GetText(text_page, 0, n_characters, buffer) - 1
        if n_units <= 0:
            return
        text = bytes(buffer)[: 2 * n_units].decode("utf-16-le", "surrogatepass")
        shift = 0  # code points beyond the basic plane take two units of pdfium's text
        one_to_one = n_units == n_characters == len(text)
        for found in LINE.finditer(text):
            line = found[0]
            words = line.split(None, 1)
            if not words:
                continue
            start = found.start()
            first = start + line.index(words[0])
            places = [first, first + len(words[0]) - 1, start + len(line.rstrip()) - 1]
            if not one_to_one:
                shifts = [shift + astral(line[: place - start]) for place in places]
                places = [
                    c.FPDFText_GetCharIndexFromTextIndex(text_page, place + more)
                    for place, more in zip(places, shifts, strict=True)
                ]
                shift += astral(line)
            yield self.place(text_page, line, places)

    def place(self, text_page: object, line: str, places: list[int]) -> PlacedLine:
        """The line's box from its first character, the end of its first word, and its last character."""
        box = self.rectangle
        char_box(text_page, places[0], box)
        left, top, _, bottom = box_fields(box)
        char_box(text_page, places[1], box)
        _, last_top, right, last_bottom = box_fields(box)
        word_width = right - left
        if places[2] != places[1]:
            char_box(text_page, places[2], box)
            _, last_top, right, last_bottom = box_fields(box)
        if abs(last_bottom - bottom) > max(top - bottom, last_top - last_bottom):  # the line is not level
            return PlacedLine(line, left, left, bottom, bottom, 0.0)
        return PlacedLine(line, left, right, bottom, top, word_width)


def count_text_objects(page: object, n_drawn: int) -> int:
    """How many of a page's objects are text."""
    kinds = (c.FPDFPageObj_GetType(c.FPDFPage_GetObject(page, i)) for i in range(n_drawn))
    return sum(kind == c.FPDF_PAGEOBJ_TEXT for kind in kinds)


def astral(text: str) -> int:
    """How many code points of `text` take two UTF-16 units."""
    return 0 if text.isascii() else sum(character > "\uffff" for character in text)
