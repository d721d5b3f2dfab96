"""PDF → pages, sections and text, from the extractor's events (pdf.py). Knows no PDF libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

from localctx.document.events import Event, Heading, Notice, Options, PageMark, Preview, Text
from localctx.document.ocr import read_scans
from localctx.document.pdf import PdfEnd, PdfHeader, PdfLimits, PdfPage, extract_pdf
from localctx.document.pdf_layout import SENTENCE_ENDS
from localctx.document.source import Source

__all__ = ["convert"]

PREVIEW_PAGES = 24


def convert(source: Source, options: Options) -> Iterator[Event]:
    """The document's events. Raises what `extract_pdf` raises, with the source's own name in the message."""
    pages = None if options.pages is None else range(options.pages[0], options.pages[1] + 1)
    with source.named_path() as path:
        events = extract_pdf(
            path,
            password=options.password,
            pages=pages,
            limits=PdfLimits(memory_bytes=options.limits.child_bytes),
            on_progress=options.on_progress,
            name=source.name,  # the path is one that means nothing to the user
        )
        with closing(events):
            read = read_scans(events, path, options.password, options.limits)
            with closing(read):
                for event in previewed(read, source.name, options.on_preview):
                    yield from converted(event)


def previewed(
    events: Iterator[PdfHeader | PdfPage | PdfEnd], name: str, on_preview: Callable[[Preview], None] | None
) -> Iterator[PdfHeader | PdfPage | PdfEnd]:
    """The same events; on_preview is told after the first pages of a document that has many."""
    header = PdfHeader(0)
    texts: list[str] = []
    for event in events:
        yield event
        match event:
            case PdfHeader():
                header = event
            case PdfPage() if on_preview is not None and len(texts) < PREVIEW_PAGES < header.n_pages:
                texts.append(event.text)
                if len(texts) == PREVIEW_PAGES:
                    outline = tuple((entry.level, entry.title) for entry in header.outline)
                    on_preview(Preview(name, "pdf", header.n_pages, PREVIEW_PAGES, outline, "\n".join(texts)))


def converted(event: PdfHeader | PdfPage | PdfEnd) -> Iterator[Event]:
    """One of the extractor's events as the writer takes them."""
    match event:
        case PdfHeader():
            yield from map(Notice, event.warnings)
        case PdfPage():
            yield from page_events(event)
        case PdfEnd():
            yield from map(Notice, event.warnings)


def page_events(page: PdfPage) -> Iterator[Event]:
    """A page with the headings inside it. A page that stops in mid-sentence is joined by one line break."""
    yield PageMark(page.number, page.label, page.quality, page.engine)
    done = 0
    for heading in sorted(page.headings, key=lambda heading: heading.offset):
        offset = min(max(heading.offset, done), len(page.text))
        yield Text(page.text[done:offset])
        yield Heading(heading.level, heading.title)
        done = offset
    yield Text(page.text[done:])
    if page.text:
        yield Text("\n\n" if page.text.endswith(SENTENCE_ENDS) else "\n")
