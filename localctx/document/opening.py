"""Path or stream → `Document`: sniff, use in place or convert, keep the conversion. Knows no one format."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import regex
import xxhash

from localctx.document.cache import (
    CONVERTER_VERSION,
    NOT_KEPT,
    CacheFolder,
    CacheUnusable,
    Entry,
    TextCache,
    cache_folder,
)
from localctx.document.convert import Layout, Sink, lay_out
from localctx.document.document import Description, Document
from localctx.document.encodings import canonical_encoding, mark_of
from localctx.document.events import Event, Notice, NotThisFormat, Options, Preview
from localctx.document.formats import FORMATS
from localctx.document.limits import Limits
from localctx.document.ocr import engine_version, how_to_read
from localctx.document.pages import page_list
from localctx.document.sniff import Sniffed, sniff
from localctx.document.source import (
    GZIP_MAGIC,
    Source,
    inflated,
    open_path,
    os_errors,
    spooled,
    spooled_pipe,
    temporary_file,
)
from localctx.document.text_file import TextFile, TextScan
from localctx.errors import LimitExceeded, NoTextError, UnknownFormat, UsageError
from localctx.given_files import is_open_pipe
from localctx.values import Progress

__all__ = ["open_document"]

MAX_REPLACED_SHARE = 0.1
"""A file of which more cannot be decoded is no text, unless the user named its encoding."""


def open_document(
    source: str | bytes | os.PathLike[str] | BinaryIO,
    *,
    password: str | None = None,
    encoding: str | None = None,
    pages: tuple[int, int] | None = None,
    cache_dir: CacheFolder = "default",
    limits: Limits | None = None,
    on_progress: Progress | None = None,
    on_preview: Callable[[Preview], None] | None = None,
    stdin: BinaryIO | None = None,
) -> Document:
    """Open a document for reading.

    source: a path (bytes are a path too, as for open(); a pipe only as /dev/fd/N), an open binary stream, or
    "-" for `stdin`, which is standard input by default · pages: first and last, from 1, of a paged file ·
    cache_dir: where converted texts are kept, None for nowhere; what a given password opened is never kept,
    an encrypted PDF that opens with the empty password is · on_progress: (done, total), in pages of a paged
    file, else in bytes · on_preview: told early what a long conversion already knows.
    Raises InputError and its kinds, LimitExceeded, UsageError.
    """
    if encoding is not None:
        encoding = canonical_encoding(encoding)
    if pages is not None and not 1 <= pages[0] <= pages[1]:
        raise UsageError(f"pages {pages[0]}-{pages[1]} make no range", "for example --pages 10-40")
    options = Options(encoding, password, pages, limits or Limits(), on_progress, on_preview)
    opened = open_source(source, stdin, options.limits)
    try:
        with os_errors(opened.name):
            return Reading(opened, options).document(cache_folder(cache_dir))
    except BaseException:
        opened.close()
        raise


def open_source(
    source: str | bytes | os.PathLike[str] | BinaryIO, stdin: BinaryIO | None, limits: Limits
) -> Source:
    """A seekable source; streams are copied to an unlinked temporary file first."""
    if source == "-":
        return spooled(stdin if stdin is not None else sys.stdin.buffer, "-", limits)
    if isinstance(source, str | bytes | os.PathLike):
        return spooled_pipe(source, limits) if is_open_pipe(source) else open_path(source)
    name = getattr(source, "name", None)
    return spooled(source, name if isinstance(name, str) else "-", limits)


@dataclass(slots=True)
class Reading:
    """One document on its way from source to text."""

    source: Source
    options: Options

    def document(self, folder: Path | None) -> Document:
        """The opened document."""
        is_packed = self.source.head(3) == GZIP_MAGIC
        if not is_packed:
            sniffed = sniff(self.source, self.options.limits)
            self.check_pages(sniffed)
            if (found := self.in_place(sniffed)) is not None:
                return found
        warning = None
        if folder is not None and not self.source.is_private and self.options.password is None:
            try:
                return self.cached(TextCache(folder))
            except CacheUnusable as error:
                warning = f"{NOT_KEPT}: the cache cannot be written ({error})"
        return self.temporary(warning)

    def in_place(self, sniffed: Sniffed) -> Document | None:
        """The document over the file itself, where that already is clean UTF-8 text."""
        if not sniffed.format.is_text or self.options.encoding not in (None, "utf-8"):
            return None
        if mark_of(self.source.head(4)) is not None:
            return None
        needle = b"\\u" if sniffed.format.name in ("json", "jsonl") else b""
        scan = TextScan(self.source.file, needle, self.options.on_progress)
        if not scan.is_valid or scan.index.n_nul or scan.found:
            return None
        layout = Layout(scan.index.n_code_points, encoding="utf-8")
        if sniffed.format.name == "markdown":
            events = sniffed.format.converter()(self.source, replace(self.options, on_progress=None))
            layout = lay_out(events, None, self.options.limits)
        self.source.check_unchanged()
        text = TextFile(self.source.file, scan, self.source.name)
        facts = facts_of(sniffed)
        layout = replace(layout, notices=(*sniffed.notices, *layout.notices))
        return self.finished((text, layout, facts))

    def cached(self, cache: TextCache) -> Document:
        """The document over an entry of the cache, made now where there is none. Raises CacheUnusable."""
        key = self.key()
        entry = cache.load(key, self.source.name)
        if entry is None:
            entry = cache.save(key, self.source.name, self.convert, self.source.path)
        document = self.finished(entry)
        self.source.close()
        return document

    def temporary(self, warning: str | None) -> Document:
        """The document over an unlinked temporary file."""
        file = temporary_file()
        try:
            layout, facts = self.convert(file)
            file.flush()
            if warning is not None:
                layout = replace(layout, notices=(*layout.notices, warning))
            document = self.finished((TextFile(file, TextScan(file), self.source.name), layout, facts))
        except BaseException:
            file.close()
            raise
        self.source.close()
        return document

    def key(self) -> str:
        """The name of the conversion: the input's bytes and everything else that shapes the text."""
        hasher = xxhash.xxh3_128()
        for chunk in self.source.chunks():
            hasher.update(chunk)
        shape = [CONVERTER_VERSION, self.source.extension, self.options.encoding, self.options.pages]
        if self.options.limits.ocr and (engine := engine_version()) is not None:
            shape.append(engine)
        hasher.update(json.dumps(shape).encode())
        return hasher.hexdigest()

    def convert(self, out: Sink) -> tuple[Layout, dict[str, str]]:
        """Write the text to `out`. Raises InputError and its kinds."""
        source = self.source
        if source.head(3) == GZIP_MAGIC:
            source = inflated(source, self.options.limits)
        try:
            sniffed = sniff(source, self.options.limits)
            self.check_pages(sniffed)
            layout, sniffed = converted(source, sniffed, self.options, out)
        except LimitExceeded as error:
            name = self.source.name
            if error.message.startswith(name):
                raise
            raise LimitExceeded(f"{name}: {error.message}", error.hint or "split the file") from None
        finally:
            if source is not self.source:
                source.close()
        self.source.check_unchanged()
        self.check_decoded(layout)
        return layout, facts_of(sniffed)

    def check_pages(self, sniffed: Sniffed) -> None:
        """Refuse a page range for a format without pages."""
        if self.options.pages is not None and not sniffed.format.has_pages:
            raise UsageError(
                f"{self.source.name}: {sniffed.format.label} has no pages", "leave --pages out for this file"
            )

    def check_decoded(self, layout: Layout) -> None:
        """Raises UnknownFormat where most of the file turned out not to be text."""
        too_many = layout.replaced_characters > MAX_REPLACED_SHARE * max(1, layout.n_code_points)
        if too_many and self.options.encoding is None and layout.replaced_characters > 100:
            raise UnknownFormat(
                f"{self.source.name}: is no text ({layout.replaced_characters:,} undecodable characters)",
                "if it is text, name its encoding with --encoding",
            )

    def finished(self, entry: Entry) -> Document:
        """The document over its text. Raises NoTextError where there is nothing to read."""
        text, layout, facts = entry
        try:
            refuse_blank(text, layout, self.source.name, self.options.limits)
        except BaseException:
            text.close()
            raise
        description = Description(
            self.source.name,
            facts["format"],
            self.source.size_bytes,
            facts.get("code_language"),
            self.source.path,
        )
        return Document(text, layout, description, tuple(warnings_of(layout)))


def converted(source: Source, sniffed: Sniffed, options: Options, out: Sink) -> tuple[Layout, Sniffed]:
    """Convert by the sniffed format; what turns out malformed is read again as plain text."""
    try:
        return lay_out(events_of(source, sniffed, options), out, options.limits), sniffed
    except NotThisFormat as error:
        out.seek(0)
        out.truncate()
        as_text = Sniffed(FORMATS["text"], notices=(*sniffed.notices, f"{error}: read as plain text"))
        return lay_out(events_of(source, as_text, options), out, options.limits), as_text


def events_of(source: Source, sniffed: Sniffed, options: Options) -> Iterator[Event]:
    """The notices of sniffing, then the converter's events."""
    yield from map(Notice, sniffed.notices)
    yield from sniffed.format.converter()(source, options)


def facts_of(sniffed: Sniffed) -> dict[str, str]:
    """What is remembered of sniffing."""
    facts = {"format": sniffed.format.name}
    if sniffed.code_language is not None:
        facts["code_language"] = sniffed.code_language
    return facts


_VISIBLE = regex.compile(r"[^\s\p{Cc}\p{Cf}]")
"""Neither white space nor a control or format character, as zero-width ones are."""


def refuse_blank(text: TextFile, layout: Layout, name: str, limits: Limits) -> None:
    """Raises NoTextError where there is nothing to be seen."""
    n_pages = len(layout.pages)
    if n_pages and len(layout.pages_without_text) == n_pages:
        raise no_page_with_text(layout, name, limits)
    if not any(_VISIBLE.search(piece) for piece in text.stream()):
        what = "only white space" if text.n_bytes else "nothing readable in it"
        raise NoTextError(f"{name}: no text, {what}", "check that it is the right file")


def no_page_with_text(layout: Layout, name: str, limits: Limits) -> NoTextError:
    """The error for a document whose pages hold no text: pictures, or pages that no engine could load."""
    n_pages = len(layout.pages)
    n_unread = sum(not page.engine and page.quality == 0 for page in layout.pages)
    count = f"{n_pages} page{'s' * (n_pages > 1)}"
    if n_unread == n_pages:
        return NoTextError(
            f"{name}: no text ({count}, none of which could be loaded: the file is damaged)",
            "open it in a PDF viewer and print it to a new PDF, then try that file",
        )
    others = f"{n_unread} of them damaged, the others images only" if n_unread else "images only"
    return NoTextError(f"{name}: no extractable text ({count}, {others})", how_to_read(limits))


def warnings_of(layout: Layout) -> Iterator[str]:
    """What the user should know, one line each."""
    yield from layout.notices
    if layout.pages_without_text:
        yield f"no text on {page_list(layout.pages_without_text)}"
    if layout.replaced_characters:
        n = layout.replaced_characters
        yield (
            f"{n:,} character{'s' * (n > 1)} could not be decoded ({layout.encoding or 'mixed'}), "
            "shown as \ufffd; --encoding names another encoding"
        )
