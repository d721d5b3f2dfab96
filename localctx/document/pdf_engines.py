"""The second opinions on a PDF: pdfminer.six and pypdf behind one interface, and what every reader answers.

Runs in the child process only. Knows nothing of which engine is preferred.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from localctx.document.pdf_layout import PlacedLine, flow

if TYPE_CHECKING:
    from pdfminer.pdfpage import PDFPage
    from pypdf import PageObject

    from localctx.document.pdf_lines import Hidden
    from localctx.document.pdf_objects import Box, Drawn

__all__ = ["PdfReader", "PdfminerReader", "PypdfReader", "Reading"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What an engine saw on one page: lines as drawn, from which the text is made, else the raw text; number
    of objects drawn; where it tells them, what they are, what is shown of the page, and hidden text."""

    text: str
    lines: tuple[PlacedLine, ...] = field(default=())
    n_drawn: int = 0
    drawn: Drawn | None = None
    box: Box | None = None
    hidden: tuple[Hidden, ...] = ()


class PdfReader(Protocol):
    """An open document. Page indices are 0-based."""

    @property
    def engine(self) -> str:
        """The engine's name."""

    @property
    def n_pages(self) -> int:
        """Number of pages."""

    def label(self, index: int) -> str | None:
        """The printed label of a page."""

    def outline(self) -> Iterator[tuple[int, str, int | None]]:
        """Bookmarks: level from 1, title, page index."""

    def read(self, index: int) -> Reading:
        """The raw text of a page."""


class PdfminerReader:
    """pdfminer.six: slow, but reads broken page trees, vertical writing and odd character maps."""

    engine = "pdfminer"

    def __init__(self, file: Any, password: str = "") -> None:
        from pdfminer.converter import PDFPageAggregator
        from pdfminer.layout import LAParams
        from pdfminer.pdfdocument import PDFDocument
        from pdfminer.pdfinterp import PDFPageInterpreter, PDFResourceManager
        from pdfminer.pdfpage import PDFPage
        from pdfminer.pdfparser import PDFParser

        resources = PDFResourceManager()
        self.device = PDFPageAggregator(resources, laparams=LAParams(detect_vertical=True, all_texts=True))
        self.interpreter = PDFPageInterpreter(resources, self.device)
        document = PDFDocument(PDFParser(file), password)
        self.pages: list[PDFPage] = list(PDFPage.create_pages(document))

    @property
    def n_pages(self) -> int:
        """Number of pages found."""
        return len(self.pages)

    def label(self, index: int) -> str | None:
        """The printed label of a page."""
        return self.pages[index].label

    def outline(self) -> Iterator[tuple[int, str, int | None]]:
        """No bookmarks: a document that only this engine opens is damaged."""
        return iter(())

    def read(self, index: int) -> Reading:
        """The page's text boxes in reading order, their lines flowing."""
        self.interpreter.process_page(self.pages[index])
        return Reading("\n\n".join(filter(None, box_texts(self.device.get_result()))))


def box_texts(container: Any) -> Iterator[str]:
    """The text of each box of pdfminer's layout, those inside figures too."""
    from pdfminer.layout import LTFigure, LTTextBoxVertical, LTTextContainer, LTTextLine

    for item in container:
        if isinstance(item, LTTextBoxVertical):
            yield "".join(line.get_text().strip() for line in item)
        elif isinstance(item, LTTextContainer):
            yield flow([placed(line) for line in item if isinstance(line, LTTextLine)])
        elif isinstance(item, LTFigure):
            yield from box_texts(item)


def placed(line: Any) -> PlacedLine:
    """pdfminer's line; the first word's width is its share of the characters."""
    text = line.get_text().rstrip("\r\n")
    share = len(text.split(None, 1)[0]) / len(text) if text.strip() else 1.0
    return PlacedLine(text, line.x0, line.x1, line.y0, line.y1, share * (line.x1 - line.x0))


class PypdfReader:
    """pypdf: pure Python, slow on long documents, sometimes right where the others are not."""

    engine = "pypdf"

    def __init__(self, file: Any, password: str = "") -> None:
        from pypdf import PdfReader as Reader

        reader = Reader(file, password=password or None)
        self.pages: list[PageObject] = list(reader.pages)

    @property
    def n_pages(self) -> int:
        """Number of pages found."""
        return len(self.pages)

    def label(self, index: int) -> str | None:
        """Labels are asked of the primary engine."""
        return None

    def outline(self) -> Iterator[tuple[int, str, int | None]]:
        """Bookmarks are asked of the primary engine."""
        return iter(())

    def read(self, index: int) -> Reading:
        """The page's text as pypdf orders it."""
        return Reading(self.pages[index].extract_text())
