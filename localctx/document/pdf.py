"""PDF file → a stream of events: one PdfHeader, then PdfPages in order, then one PdfEnd. Knows no offsets.

Parsing happens in a child process (isolate.py): a page that crashes, stalls or eats memory costs that page.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from localctx.document.isolate import ChildFailed, IsolationLimits, isolated
from localctx.document.pages import PageRanges, page_ranges
from localctx.document.pdf_told import Told
from localctx.errors import InputError, LimitExceeded, UsageError
from localctx.names import display_name
from localctx.values import Progress

LAST_PAGE = 1 << 30
"""As the last page wanted: whatever is the last one."""

__all__ = [
    "OutlineEntry",
    "PdfEnd",
    "PdfEvent",
    "PdfHeader",
    "PdfHeading",
    "PdfLimits",
    "PdfPage",
    "extract_pdf",
]

Item: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PdfLimits:
    """Caps on one document: wall clock, CPU, address space of the child, pages lost before giving up."""

    open_seconds: float = 120.0
    page_seconds: float = 30.0
    cpu_seconds: int = 3600
    memory_bytes: int = 2 << 30
    max_lost_pages: int = 3


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A bookmark: level 1 is outermost; page is 1-based, None where the bookmark points nowhere."""

    level: int
    title: str
    page: int | None


@dataclass(frozen=True, slots=True)
class PdfHeader:
    """What is known before the first page. `outline` is empty where the file has no bookmarks."""

    n_pages: int
    outline: tuple[OutlineEntry, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PdfHeading:
    """A heading on a page: from the outline, else from the font size. `offset` counts code points of the
    page's text: the heading's first character; where the title does not stand on the page, that of the
    bookmark before it (0 for the first)."""

    level: int
    title: str
    offset: int


@dataclass(frozen=True, slots=True)
class PdfPage:
    """One page, cleaned: number is 1-based, label as printed, quality in [0, 1], engine that read it.

    `text` has a blank line between paragraphs and no trailing white space, tables as Markdown, no running
    headers and page numbers; "" for a page without text. hidden: why, and what, nobody sees: not in `text`.
    running: the headers and footers that went, since an earlier page or a bookmark says the same.
    is_recognised: the text is an invisible layer over a picture. is_incomplete: more text is drawn
    than was read.
    """

    number: int
    text: str
    label: str | None = None
    quality: float = 1.0
    engine: str = ""
    headings: tuple[PdfHeading, ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()
    running: tuple[str, ...] = ()
    is_recognised: bool = False
    is_incomplete: bool = False


@dataclass(frozen=True, slots=True)
class PdfEnd:
    """Comes last: what to tell the user about the whole document."""

    warnings: tuple[str, ...] = ()


PdfEvent: TypeAlias = PdfHeader | PdfPage | PdfEnd


def extract_pdf(
    path: str | PathLike[str],
    *,
    password: str | None = None,
    pages: Sequence[int] | None = None,
    limits: PdfLimits | None = None,
    on_progress: Progress | None = None,
    name: str | None = None,
) -> Generator[PdfEvent, None, None]:
    """The document's events; `pages` (1-based, ascending, for example range(10, 41)) limits which are read.

    on_progress counts pages (done, to be read). `name` stands for the path in messages. Closing the generator
    ends the child process at once.
    Raises PasswordNeeded, LimitExceeded, UsageError (no such page), InputError (damaged beyond all engines).
    A document without any text is no error here: every PdfPage then has text "".
    """
    shown = display_name(path if name is None else name)
    job = Job(os.fspath(path), shown, password, limits or PdfLimits())
    header, items = job.open(None if pages is None else page_ranges(pages))
    stream = PageStream(job, items)
    try:
        wanted = wanted_pages(pages, header, job.name)
        if pages is not None and pages[-1] > header.n_pages and pages[-1] != LAST_PAGE:
            stream.told.warnings.append(
                f"the document has {header.n_pages} pages; those beyond were left out"
            )
        yield header
        for n_done, number in enumerate(wanted, 1):
            page = stream.page(number, wanted[n_done:])
            if on_progress is not None:
                on_progress(n_done, len(wanted))
            yield page
    finally:
        stream.items.close()
    yield PdfEnd(tuple(stream.told.all()))


class PageStream:
    """The child's pages; a page on which the child dies is given up, the next asked of a new child."""

    def __init__(self, job: Job, items: Generator[Item, None, None]) -> None:
        self.job = job
        self.items = items
        self.told = Told()
        self.n_lost = 0
        self.has_read = False

    def page(self, number: int, following: Sequence[int]) -> PdfPage:
        """Page `number`; `following` are those that come after it. Raises LimitExceeded."""
        page = PdfPage(number, "", quality=0.0)
        try:
            for fields in self.items:
                headings = (PdfHeading(*heading) for heading in fields.pop("headings"))
                provisional = fields.pop("provisional", False)
                hidden = ((reason, text) for reason, text in fields.pop("hidden"))
                running = tuple(fields.pop("running"))
                page = PdfPage(**fields, headings=tuple(headings), hidden=tuple(hidden), running=running)
                self.has_read = True
                if not provisional:
                    break
            if not page.engine:
                self.told.unread.append(number)
        except ChildFailed as failure:
            if not self.has_read and failure.reason != "cpu":  # it may have been another page, sampled before
                self.has_read = True
                self.items = self.job.open(page_ranges([number, *following]), may_sample=False)[1]
                return self.page(number, following)
            self.give_up(number, failure, bool(page.text))
            if following:
                self.items = self.job.open(page_ranges(following), may_sample=False)[1]
        self.told.note(page)
        return page

    def give_up(self, number: int, failure: ChildFailed, has_text: bool) -> None:
        """Note that the child died on a page, or stop where that happened too often."""
        self.n_lost += 1
        if failure.reason == "cpu" or self.n_lost > self.job.limits.max_lost_pages:
            raise LimitExceeded(
                f"{self.job.name}: reading page {number} {failure.detail}",
                "leave such pages out with --pages, or print the file to a new PDF",
            ) from None
        what = "no second engine could check page" if has_text else "nothing was read of page"
        self.told.warnings.append(f"{what} {number}: its reading {failure.detail}")


@dataclass(frozen=True, slots=True)
class Job:
    """What to open, the name it has in messages, and how."""

    path: str
    name: str
    password: str | None
    limits: PdfLimits

    def open(
        self, ranges: PageRanges | None, *, may_sample: bool = True
    ) -> tuple[PdfHeader, Generator[Item, None, None]]:
        """The header and the pages to come; a document on which pdfium breaks is tried without it."""
        try:
            return self.start(ranges, "pdfium", may_sample)
        except ChildFailed as first:
            if first.reason == "cpu":
                raise LimitExceeded(f"{self.name}: opening it {first.detail}") from None
            try:
                return self.start(ranges, "pdfminer", may_sample)
            except ChildFailed as second:
                kind = InputError if second.reason == "error" else LimitExceeded
                raise kind(
                    f"{self.name}: not a readable PDF (pdfium {first.detail}; pdfminer {second.detail})",
                    "print the file to a new PDF from a PDF viewer and try that one",
                ) from None

    def start(
        self, ranges: PageRanges | None, engine: str, may_sample: bool
    ) -> tuple[PdfHeader, Generator[Item, None, None]]:
        """Start a child and read its header. Raises ChildFailed."""
        size_bytes = Path(self.path).stat().st_size
        items = isolated(
            "localctx.document.pdf_child:read_pdf",
            {
                "path": str(Path(self.path).absolute()),
                "name": self.name,
                "password": self.password,
                "ranges": ranges,
                "engine": engine,
                "may_sample": may_sample,
            },
            IsolationLimits(
                self.limits.open_seconds,
                self.limits.page_seconds,
                self.limits.cpu_seconds,
                self.limits.memory_bytes + size_bytes,  # some engines map the file
            ),
        )
        fields = next(items)
        entries = (
            OutlineEntry(level, title, None if index is None else index + 1)
            for level, title, index in fields.pop("outline")
        )
        warnings = tuple(fields.pop("warnings"))
        return PdfHeader(**fields, outline=tuple(entries), warnings=warnings), items


def wanted_pages(pages: Sequence[int] | None, header: PdfHeader, name: str) -> Sequence[int]:
    """The page numbers to read, those that exist. Raises UsageError where none does."""
    if pages is None:
        return range(1, header.n_pages + 1)
    wanted = [
        number
        for first, last in page_ranges(pages)
        for number in range(first + 1, min(last, header.n_pages - 1) + 2)
    ]
    if not wanted:
        raise UsageError(
            f"{name}: no such page; the document has {header.n_pages}", "give pages from 1 on, as 10-40"
        )
    return wanted
