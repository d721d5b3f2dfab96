"""What every later stage takes: text at rest, its pages, sections and reading report. Knows no formats."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from types import TracebackType

from localctx.document.convert import Layout
from localctx.document.events import OCR_ENGINE
from localctx.document.language import language_of
from localctx.document.text_file import TextFile
from localctx.values import Page, Section

__all__ = ["Document"]


@dataclass(frozen=True, slots=True)
class Description:
    """What is known of the file that a document was read from; path: None for what was no file."""

    source: str
    format: str
    size_bytes: int
    code_language: str | None = None
    path: str | None = None


class Document:
    """An opened document. Close it, or use it as a context manager; threads may read it side by side.

    source: name for display · path: where the file lies, None for a stream · format: a key of FORMATS ·
    code_language: of source code · encoding: of the
    file, None where the format has its own · replaced_characters: undecodable ones, now U+FFFD · size_bytes:
    of the file · confidences: {page: confidence} of what OCR read ·
    content_hash: xxh3-128 hex of the text's UTF-8, so that equal texts are one document,
    whatever their name, encoding or container.
    """

    def __init__(
        self, text: TextFile, layout: Layout, description: Description, warnings: tuple[str, ...]
    ) -> None:
        self.text = text
        self.source = description.source
        self.path = description.path
        self.format = description.format
        self.code_language = description.code_language
        self.size_bytes = description.size_bytes
        self.pages: tuple[Page, ...] = layout.pages
        self.sections: tuple[Section, ...] = layout.sections
        self.confidences = {
            page.number: page.quality
            for page in layout.pages
            if page.engine == OCR_ENGINE and page.number not in layout.pages_without_text
        }
        self.pages_without_text = layout.pages_without_text
        self.encoding = layout.encoding
        self.replaced_characters = layout.replaced_characters
        self.content_hash = text.content_hash
        self.warnings = warnings
        self._page_starts = [page.start for page in self.pages]
        self._section_starts = [section.start for section in self.sections]
        self._parents = parents_of(self.sections)
        self._language: str | None = None
        self._language_is_known = False

    def __enter__(self) -> Document:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def language(self) -> str | None:
        """ISO 639 code of the main language, from samples; None for source code and without prose."""
        if not self._language_is_known:
            self._language = None if self.format == "code" else language_of(self.text)
            self._language_is_known = True
        return self._language

    def read(self, start: int, end: int) -> str:
        """The text of [start, end), clamped to the text's end."""
        return self.text.read(start, end)

    def page_at(self, offset: int) -> Page | None:
        """The page that holds the code point, None without pages."""
        return self.pages[max(0, bisect_right(self._page_starts, offset) - 1)] if self.pages else None

    def heading_path_at(self, offset: int) -> tuple[str, ...]:
        """Titles of the sections that hold the code point, outermost first."""
        number: int | None = bisect_right(self._section_starts, offset) - 1
        titles: list[str] = []
        while number is not None and number >= 0:
            titles.append(self.sections[number].title)
            number = self._parents[number]
        return tuple(reversed(titles))

    def close(self) -> None:
        """Unmap and close the text; a temporary one is gone then."""
        self.text.close()


def parents_of(sections: tuple[Section, ...]) -> list[int | None]:
    """For each section the index of the one that holds it."""
    parents: list[int | None] = []
    open_ones: list[int] = []
    for number, section in enumerate(sections):
        while open_ones and sections[open_ones[-1]].level >= section.level:
            open_ones.pop()
        parents.append(open_ones[-1] if open_ones else None)
        open_ones.append(number)
    return parents
