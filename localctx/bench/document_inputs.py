"""Inputs of the document benchmark: a long PDF, a large text, a large XML. Seeded: equal sizes, equal bytes.

Knows nothing of how they are read. The prose is made of sentences of the message to the Congress of 1790.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO

__all__ = ["write_pdf", "write_text", "write_xml"]

SENTENCES = (
    "In meeting you again I feel much satisfaction in being able to repeat my congratulations on the "
    "favorable prospects which continue to distinguish our public affairs.",
    "The abundant fruits of another year have blessed our country with plenty and with the means of a "
    "flourishing commerce.",
    "The progress of public credit is witnessed by a considerable rise of American stock abroad as well as "
    "at home, and the revenues allotted for this and other national purposes have been productive beyond "
    "the calculations by which they were regulated.",
    "This latter circumstance is the more pleasing, as it is not only a proof of the fertility of our "
    "resources, but as it assures us of a further increase of the national respectability and credit.",
    "It has been heretofore known to Congress that frequent incursions have been made on our frontier "
    "settlements by certain banditti of Indians from the northwest side of the Ohio.",
    "Our fisheries and the transportation of our own produce offer us abundant means for guarding ourselves "
    "against this evil.",
    "The laws you have already passed for the establishment of a judiciary system have opened the doors of "
    "justice to all descriptions of persons.",
    "You will consider in your wisdom whether improvements in that system may yet be made.",
    "The establishment of the militia, of a mint, of standards of weights and measures, of the post office "
    "and post roads are subjects which I presume you will resume of course.",
    "The observations on the value of peace are not less just now than they were then.",
)

CHUNK_BYTES = 1 << 20
LINE_CHARACTERS = 92
LINES_PER_PAGE = 44
PAGES_PER_CHAPTER = 50


def paragraphs(seed: int) -> Iterator[str]:
    """Endless paragraphs of three to six shuffled sentences, no two of them alike."""
    order = random.Random(seed)  # noqa: S311 - reproducible, not secret
    for number in count(1):
        sentences = order.sample(SENTENCES, order.randint(3, 6))
        yield f"{number}. {' '.join(sentences)}"


def write_text(path: Path, size_bytes: int) -> None:
    """A text of `size_bytes` bytes: paragraphs and blank lines."""
    source = paragraphs(1)
    n_written = 0
    with path.open("wb") as file:
        while n_written < size_bytes:
            chunk = joined_bytes(source, CHUNK_BYTES)[: size_bytes - n_written]
            file.write(chunk)
            n_written += len(chunk)


def joined_bytes(source: Iterator[str], n_bytes: int) -> bytes:
    """At least `n_bytes` of paragraphs."""
    parts: list[str] = []
    n_gathered = 0
    while n_gathered < n_bytes:
        parts.append(next(source) + "\n\n")
        n_gathered += len(parts[-1])
    return "".join(parts).encode()


def write_xml(path: Path, size_bytes: int) -> int:
    """An XML file of at least `size_bytes` bytes; the number of its records."""
    source = paragraphs(2)
    n_written = n_records = 0
    with path.open("wb") as file:
        n_written += file.write(b"<?xml version='1.0' encoding='UTF-8'?>\n<records>\n")
        while n_written < size_bytes:
            parts = []
            for _ in range(1024):
                n_records += 1
                parts.append(
                    f'<record id="r{n_records}"><subject>Matter {n_records} &amp; others</subject>'
                    f"<body>{next(source)}</body></record>\n"
                )
            n_written += file.write("".join(parts).encode())
        file.write(b"</records>\n")
    return n_records


def write_pdf(path: Path, n_pages: int) -> None:
    """A PDF of `n_pages` full pages of prose, a chapter with a bookmark every fifty pages."""
    with path.open("wb") as file:
        writer = PdfWriter(file)
        source = paragraphs(3)
        lines: list[str] = []
        for page in range(n_pages):
            while len(lines) < LINES_PER_PAGE:
                lines += [*wrapped(next(source)), ""]
            title = "" if page % PAGES_PER_CHAPTER else f"Chapter {page // PAGES_PER_CHAPTER + 1}"
            writer.page(title, lines[:LINES_PER_PAGE], page + 1)
            del lines[:LINES_PER_PAGE]
        writer.finish()


def wrapped(text: str) -> Iterator[str]:
    """Lines of at most LINE_CHARACTERS."""
    line = ""
    for word in text.split():
        if len(line) + len(word) >= LINE_CHARACTERS:
            yield line
            line = word
        else:
            line = f"{line} {word}".lstrip()
    yield line


class PdfWriter:
    """Writes objects one after another: 1 catalogue, 2 page tree, 3 font, 4 outline, then the rest."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.offsets: dict[int, int] = {}
        self.next_number = 5
        self.pages: list[int] = []
        self.chapters: list[tuple[str, int]] = []
        file.write(b"%PDF-1.5\n")

    def page(self, title: str, lines: list[str], number: int) -> None:
        """One page: a title perhaps, lines of text, the page's number."""
        content = [b"BT 14 TL 56 780 Td"]
        if title:
            content.append(b"/F 18 Tf (%s) Tj T* T*" % title.encode())
        content.append(b"/F 10 Tf")
        content += [b"(%s) Tj T*" % line.encode() for line in lines]
        content.append(b"T* (%d) Tj ET" % number)
        packed = zlib.compress(b"\n".join(content))
        stream = self.add(b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed))
        fonts = b"/Resources<</Font<</F 3 0 R>>>>"
        page = self.add(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]%s/Contents %d 0 R>>" % (fonts, stream)
        )
        self.pages.append(page)
        if title:
            self.chapters.append((title, page))

    def add(self, body: bytes, number: int | None = None) -> int:
        """Write an object; its number."""
        if number is None:
            number, self.next_number = self.next_number, self.next_number + 1
        self.offsets[number] = self.file.tell()
        self.file.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
        return number

    def finish(self) -> None:
        """The outline, the page tree and the table of objects."""
        first = self.next_number
        for i, (title, page) in enumerate(self.chapters):
            links = b"/Prev %d 0 R" % (first + i - 1) if i else b""
            links += b"/Next %d 0 R" % (first + i + 1) if i + 1 < len(self.chapters) else b""
            self.add(b"<</Title(%s)/Parent 4 0 R%s/Dest[%d 0 R/Fit]>>" % (title.encode(), links, page))
        last = self.next_number - 1
        self.add(b"<</Type/Outlines/First %d 0 R/Last %d 0 R/Count %d>>" % (first, last, last - first + 1), 4)
        self.add(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>", 3)
        kids = b" ".join(b"%d 0 R" % page for page in self.pages)
        self.add(b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(self.pages), kids), 2)
        self.add(b"<</Type/Catalog/Pages 2 0 R/Outlines 4 0 R>>", 1)
        start = self.file.tell()
        table = b"".join(b"%010d 00000 n \n" % self.offsets[number] for number in range(1, self.next_number))
        self.file.write(b"xref\n0 %d\n0000000000 65535 f \n%s" % (self.next_number, table))
        self.file.write(
            b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (self.next_number, start)
        )
