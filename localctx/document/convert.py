"""Events of a converter → text at rest, page and section spans. The one place where offsets are counted.

NULs and lone surrogates are removed here, before any offset or hash. Knows neither formats nor the cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from localctx.document.events import Event, Facts, Heading, Notice, PageMark, Text
from localctx.document.limits import Limits
from localctx.errors import LimitExceeded
from localctx.values import Page, Section

__all__ = ["Layout", "Sink", "Writer", "lay_out"]

TITLE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Layout:
    """What is known of a text besides its characters."""

    n_code_points: int
    pages: tuple[Page, ...] = ()
    sections: tuple[Section, ...] = ()
    pages_without_text: tuple[int, ...] = ()
    encoding: str | None = None
    replaced_characters: int = 0
    notices: tuple[str, ...] = ()


class Sink(Protocol):
    """Where text goes: what a conversion needs of a file, so that it can also start again."""

    def write(self, data: bytes, /) -> int:
        """Write all of `data`."""

    def seek(self, offset: int, /) -> int:
        """Move to a place."""

    def truncate(self) -> int:
        """Cut the file off here."""


def lay_out(events: Iterable[Event], out: Sink | None, limits: Limits) -> Layout:
    """Write the events' text to `out` as UTF-8 (None: only count) and return what they say besides."""
    writer = Writer(out, limits)
    for event in events:
        writer.add(event)
    return writer.finish()


@dataclass(slots=True)
class _OpenPage:
    mark: PageMark
    start: int
    has_text: bool = False


@dataclass(slots=True)
class Writer:
    """Takes events one by one."""

    out: Sink | None
    limits: Limits
    n_code_points: int = 0
    n_bytes: int = 0
    n_removed: int = 0
    facts: Facts = field(default_factory=Facts)
    page: _OpenPage | None = None
    pages: list[Page] = field(default_factory=list)
    blank_pages: list[int] = field(default_factory=list)
    headings: list[tuple[int, str, int]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Take the next event. Raises LimitExceeded when the text grows beyond its cap."""
        match event:
            case Text(text):
                self.add_text(text)
            case Heading(level, title):
                self.add_heading(level, title)
            case PageMark():
                self.end_page()
                self.page = _OpenPage(event, self.n_code_points)
            case Notice(message):
                self.notices.append(message)
            case Facts():
                self.facts = merged(self.facts, event)

    def add_text(self, text: str) -> None:
        """Append text without its NULs and lone surrogates."""
        data, n_removed = clean_utf8(text)
        self.n_removed += n_removed
        if n_removed:
            text = data.decode("utf-8")
        self.n_bytes += len(data)
        if self.n_bytes > self.limits.text_bytes:
            raise LimitExceeded(f"more than {self.limits.text_bytes:,} bytes of text")
        if self.page is not None and not self.page.has_text:
            self.page.has_text = not (text == "" or text.isspace())
        if self.out is not None:
            self.out.write(data)
        self.n_code_points += len(text)

    def add_heading(self, level: int, title: str) -> None:
        """Remember where a section begins."""
        title = " ".join(clean_utf8(title)[0].decode("utf-8").split())[:TITLE_CHARACTERS]
        if not title:
            return
        if len(self.headings) < self.limits.headings:
            self.headings.append((max(1, level), title, self.n_code_points))
        elif len(self.headings) == self.limits.headings:
            self.headings.append((1, title, self.n_code_points))
            self.notices.append(f"only the first {self.limits.headings:,} headings are kept")

    def end_page(self) -> None:
        """Close the page that is open."""
        if self.page is None:
            return
        mark = self.page.mark
        if not self.page.has_text:
            self.blank_pages.append(mark.number)
        span = (self.page.start, self.n_code_points)
        self.pages.append(Page(mark.number, *span, mark.label, mark.quality, mark.engine))
        self.page = None

    def finish(self) -> Layout:
        """The spans and facts of the whole."""
        self.end_page()
        if self.n_removed:
            self.notices.append(f"{self.n_removed:,} NUL or lone surrogate characters were removed")
        return Layout(
            self.n_code_points,
            tuple(self.pages),
            sections_of(self.headings[: self.limits.headings], self.n_code_points),
            tuple(self.blank_pages),
            self.facts.encoding,
            self.facts.replaced_characters or 0,
            tuple(dict.fromkeys(self.notices)),
        )


def clean_utf8(text: str) -> tuple[bytes, int]:
    """UTF-8 of `text` without NULs and lone surrogates, and how many were removed; pairs are joined."""
    n_removed = text.count("\0")
    if n_removed:
        text = text.replace("\0", "")
    try:
        return text.encode("utf-8"), n_removed
    except UnicodeEncodeError:
        paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        data = paired.encode("utf-8", "ignore")
        return data, n_removed + len(paired) - len(data.decode("utf-8"))


def merged(old: Facts, new: Facts) -> Facts:
    """`new` where it says something, else `old`."""
    return Facts(
        old.encoding if new.encoding is None else new.encoding,
        old.replaced_characters if new.replaced_characters is None else new.replaced_characters,
    )


def sections_of(headings: list[tuple[int, str, int]], n_code_points: int) -> tuple[Section, ...]:
    """Sections in order: each ends where the next heading of its level or an outer one begins."""
    ends = [n_code_points] * len(headings)
    open_ones: list[int] = []
    for number, (level, _, start) in enumerate(headings):
        while open_ones and headings[open_ones[-1]][0] >= level:
            ends[open_ones.pop()] = start
        open_ones.append(number)
    return tuple(
        Section(level, title, start, end) for (level, title, start), end in zip(headings, ends, strict=True)
    )
