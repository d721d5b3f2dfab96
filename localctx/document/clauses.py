"""A document → its clauses: numbered or headed stretches of text that together are the whole. Knows no model.

Where a format knows headings (`Document.sections`), clauses begin there as well as at numbered lines.
Sections stay what they are: they shape blocks and stored KV; clauses are for comparing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import regex

from localctx.document.clause_heads import Head, Heads
from localctx.values import Section

__all__ = ["Clause", "clauses_of"]

FULL_LINES = 0.9
"""Share of the lines that are no longer than a full one."""
MAX_TITLE = 90
_INLINE = regex.compile(
    r"[.;:。；：][\"”»」)）]?\s*(?=\p{Nd}{1,3}\.\p{Nd}{1,3}(?:\.\p{Nd}{1,3})*\.?\s*[\p{Lu}\p{Han}\"“„])"
)
"""Where a clause may begin inside a line: paragraphs whose last line is full are one line in many a PDF."""


@dataclass(frozen=True, slots=True)
class Clause:
    """Text [start, end) in code points, without the clauses below it. body_start: behind number and title ·
    title_start: behind the number · number: "2.1" or "" · level: 1 is outermost, 0 what stands before all
    heads.
    """

    index: int
    number: str
    title: str
    level: int
    start: int
    title_start: int
    body_start: int
    end: int

    @property
    def name(self) -> str:
        """Number and title, as a person would name it; "" for text without either."""
        return " ".join(part for part in (self.number, self.title) if part)


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    text: str


def clauses_of(text: str, sections: Sequence[Section] = ()) -> tuple[Clause, ...]:
    """The clauses of a whole text in order, from its first character to its last; none of an empty one."""
    lines = list(_lines(text))
    finding = _Finding(lines, sorted((section.start, section.level, section.title) for section in sections))
    for place in range(len(lines)):
        finding.line(place)
    return _joined(text, finding.starts)


@dataclass(slots=True)
class _Finding:
    """Heads found so far, as (start, behind the number, behind the title, head)."""

    lines: Sequence[_Line]
    pending: list[tuple[int, int, str]]
    heads: Heads = field(default_factory=Heads)
    starts: list[tuple[int, int, int, Head]] = field(default_factory=list)
    skipped: int = -1
    width: int = 0

    def __post_init__(self) -> None:
        self.pending.reverse()
        lengths = sorted(len(line.text) for line in self.lines if line.text.strip())
        self.width = lengths[int(FULL_LINES * len(lengths))] if lengths else 0

    def line(self, place: int) -> None:
        """Find the heads of one line: at its beginning, and where a clause begins inside it."""
        if place == self.skipped:
            return
        line = self.lines[place]
        head = self._first(place)
        if head is not None:
            self._add(place, line.start, line.start + head.text_start, head)
        if head is None or not head.title:
            for match in _INLINE.finditer(line.text):
                inner = self.heads.inline(line.text, match.end())
                if inner is not None:
                    behind = line.start + inner.text_start
                    self.starts.append((line.start + match.end(), behind, behind, inner))

    def _first(self, place: int) -> Head | None:
        """The head that the line is; a heading that the format knows is one too."""
        line = self.lines[place]
        told = None
        while self.pending and self.pending[-1][0] <= line.start + len(line.text):
            told = self.pending.pop()
        before = self.lines[place - 1].text if place else ""
        head = self.heads.head(line.text, before, self._text(place + 1), width=self.width)
        if head is None and told is not None:
            return Head("", told[1], 0, " ".join(told[2].split()))
        return head

    def _add(self, place: int, start: int, behind: int, head: Head) -> None:
        line = self.lines[place]
        body = line.start + len(line.text) if head.title else behind
        if not line.text[head.text_start :].strip() and (title := self._own_line(place + 1)):
            head = replace(head, title=title)
            body = self.lines[place + 1].start + len(self.lines[place + 1].text)
            self.skipped = place + 1
        self.starts.append((start, behind, body, head))

    def _own_line(self, place: int) -> str:
        """The title that stands in the line below a number alone, "" where that is no title."""
        title, behind = self._text(place).strip("*_ \t"), self._text(place + 1)
        is_title = bool(title) and len(title) <= MAX_TITLE and title[-1] not in ".;:,!?。；：，！？"
        return title if is_title and (not behind.strip() or not behind.lstrip()[:1].islower()) else ""

    def _text(self, place: int) -> str:
        return self.lines[place].text if place < len(self.lines) else ""


def _joined(text: str, starts: Sequence[tuple[int, int, int, Head]]) -> tuple[Clause, ...]:
    """Clauses from head to head, with what stands before the first one."""
    found: list[Clause] = []
    first = starts[0][0] if starts else len(text)
    if text[:first].strip():
        found.append(Clause(0, "", "", 0, 0, 0, 0, first))
    ends = [*(start for start, _, _, _ in starts[1:]), len(text)] if starts else []
    for (start, title_start, body, head), end in zip(starts, ends, strict=True):
        found.append(
            Clause(len(found), head.number, head.title, head.level, start, title_start, min(body, end), end)
        )
    return tuple(found)


def _lines(text: str) -> Iterator[_Line]:
    """The lines with where they start; form feeds end a line too."""
    at = 0
    for line in text.splitlines(keepends=True):
        yield _Line(at, line.rstrip("\r\n\f\v\x1c\x1d\x1e\x85\u2028\u2029"))
        at += len(line)
