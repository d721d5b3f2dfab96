"""What a converter says of a document, in reading order. Knows neither offsets nor files.

A converter yields these; convert.py turns them into text at rest, spans and hashes. To add a format: one
module with `convert(source, options) -> Iterator[Event]`, and one row in formats.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from localctx.document.limits import Limits
from localctx.values import Progress

if TYPE_CHECKING:
    from localctx.document.source import Source

__all__ = [
    "OCR_ENGINE",
    "Converter",
    "Event",
    "Facts",
    "Heading",
    "NotThisFormat",
    "Notice",
    "Options",
    "PageMark",
    "Preview",
    "Text",
]

OCR_ENGINE = "rapidocr"
"""As the engine of a page: its text was recognised, its quality is the recogniser's confidence."""


@dataclass(frozen=True, slots=True)
class Text:
    """The next piece of text, of any length."""

    text: str


@dataclass(frozen=True, slots=True)
class PageMark:
    """A page begins here; it lasts until the next mark or the end."""

    number: int
    label: str | None = None
    quality: float = 1.0
    engine: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """A section begins here; its title is part of the text that follows. Level 1 is outermost."""

    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user should know; becomes one of the document's warnings."""

    message: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found out about the whole; a later value replaces an earlier one, None says nothing."""

    encoding: str | None = None
    replaced_characters: int | None = None


Event: TypeAlias = Text | PageMark | Heading | Notice | Facts


@dataclass(frozen=True, slots=True)
class Preview:
    """What a long conversion knows early: the outline as (level, title), and the text of the first pages."""

    source: str
    format: str
    n_pages: int
    n_pages_read: int
    outline: tuple[tuple[int, str], ...]
    text: str


@dataclass(frozen=True, slots=True)
class Options:
    """How to read one document. `pages` is 1-based and inclusive; on_progress counts bytes or pages;
    on_preview is told once, early, by formats whose conversion can take long.
    """

    encoding: str | None = None
    password: str | None = None
    pages: tuple[int, int] | None = None
    limits: Limits = field(default_factory=Limits)
    on_progress: Progress | None = None
    on_preview: Callable[[Preview], None] | None = None


class Converter(Protocol):
    """One format's way from bytes to events."""

    def __call__(self, source: Source, options: Options) -> Iterator[Event]:
        """The document's events. Raises InputError, or NotThisFormat to have it read as plain text."""


class NotThisFormat(Exception):
    """The bytes are not what they looked like (malformed); the reason completes "...: read as plain text"."""
