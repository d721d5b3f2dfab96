"""A document → its clauses: numbered or headed stretches of text that together are the whole. Knows no model.

Where a format knows headings (`Document.sections`), clauses begin there as well as at numbered lines.
Sections stay what they are: they shape blocks and stored KV; clauses are for comparing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localctx.document.clause_heads import Head, Heads
from localctx.values import Section

__all__ = ["Clause", "clauses_of"]


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
    titles = {section.start: section.title for section in sections}
    starts: list[tuple[int, int, int, Head]] = []
    lines = list(_lines(text))
    heads = Heads()
    pending = sorted(titles)
    before, skip = "", False
    for place, line in enumerate(lines):
        if skip:
            skip, before = False, line.text
            continue
        after = lines[place + 1].text if place + 1 < len(lines) else ""
        end = line.start + len(line.text)
        told = None
        while pending and pending[0] < end + 1:
            told = titles[pending.pop(0)]
        head = heads.head(line.text, before, after)
        if head is None and told is not None:
            head = Head("", 1, 0, " ".join(told.split()))
        if head is not None:
            body = end if head.title else line.start + head.text_start
            is_bare = not line.text[head.text_start :].strip()
            if is_bare and (title := _own_line(after, lines, place)):
                head = Head(head.number, head.level, head.text_start, title)
                body, skip = lines[place + 1].start + len(after), True
            starts.append((line.start, line.start + head.text_start, body, head))
        before = line.text
    return _joined(text, starts)


def _own_line(after: str, lines: Sequence[_Line], place: int) -> str:
    """The title that stands in the line below a number alone, "" where that is no title."""
    title = after.strip("*_ \t")
    behind = lines[place + 2].text if place + 2 < len(lines) else ""
    is_title = bool(title) and len(title) <= 90 and title[-1] not in ".;:,!?。；：，！？"
    return title if is_title and (not behind.strip() or not behind.lstrip()[:1].islower()) else ""


def _joined(text: str, starts: Sequence[tuple[int, int, int, Head]]) -> tuple[Clause, ...]:
    """Clauses from head to head, with what stands before the first one."""
    found: list[Clause] = []
    first = starts[0][0] if starts else len(text)
    if text[:first].strip():
        found.append(Clause(0, "", "", 0, 0, 0, 0, first))
    ends = [start for start, _, _, _ in starts[1:]] + [len(text)]
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
