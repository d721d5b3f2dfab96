"""What is told of a PDF once it is read: pages not read whole, text left out. Knows no engines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from localctx.document.pages import page_list
from localctx.document.pdf_quality import GOOD_ENOUGH
from localctx.names import display_name

if TYPE_CHECKING:
    from localctx.document.pdf import PdfPage

__all__ = ["Told"]

SHOWN_CHARACTERS = 80
"""Of text that was left out, in a warning."""


class Told:
    """Collects what to tell, page by page."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.unread: list[int] = []
        self.garbled: list[int] = []
        self.incomplete: list[int] = []
        self.recognised: list[int] = []
        self.running: list[tuple[int, str]] = []
        self.hidden: dict[str, list[tuple[int, str]]] = {}

    def note(self, page: PdfPage) -> None:
        """Take in what there is to tell of a page."""
        if page.text and page.quality < GOOD_ENOUGH:
            self.garbled.append(page.number)
        if page.is_incomplete:
            self.incomplete.append(page.number)
        if page.is_recognised:
            self.recognised.append(page.number)
        self.running += [(page.number, text) for text in page.running]
        for reason, text in page.hidden:
            self.hidden.setdefault(reason, []).append((page.number, text))

    def all(self) -> Iterator[str]:
        """The warnings, those of the document first."""
        yield from self.warnings
        if self.unread:
            yield f"{page_list(self.unread)}: damaged, no engine could read it"
        if self.garbled:
            yield f"{page_list(self.garbled)}: the text looks garbled in every engine"
        if self.incomplete:
            yield (
                f"{page_list(self.incomplete)}: more text is drawn than could be read; no second engine was "
                "asked, as it would not tell hidden text apart"
            )
        if self.running:
            n_rows = len(self.running)
            pages = page_list(sorted({number for number, _ in self.running}))
            yield (
                f"{pages}: {n_rows:,} row{'s' * (n_rows > 1)} of headers and footers that were said before "
                f"{'were' if n_rows > 1 else 'was'} left out, “{shortened(self.running[0][1])}”"
            )
        for reason, places in self.hidden.items():
            pages = page_list(sorted({number for number, _ in places}))
            n_characters = sum(len(text) for _, text in places)
            yield (
                f"{pages}: hidden text ({reason}) was left out, {n_characters:,} characters, "
                f"“{shortened(places[0][1])}”"
            )
        if self.recognised:
            yield (
                f"{page_list(self.recognised)}: the text is an invisible layer over a picture, as text "
                "recognition (OCR) writes it"
            )


def shortened(text: str) -> str:
    """The beginning of a text as one line."""
    line = display_name(" ".join(text.split()))
    return line if len(line) <= SHOWN_CHARACTERS else line[: SHOWN_CHARACTERS - 1].rstrip() + "…"
