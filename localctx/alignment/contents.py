"""A text and its clauses → the lines of its tables of contents, whose page numbers are no text. Pure.

A price list looks much the same ("Fee ..... 100"), so that a line counts only where at least three in a row
name later headings of the text, in their order, with numbers that can be those headings' pages.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from localctx.alignment.words import LEADERS, words_of
from localctx.document.clauses import Clause

__all__ = ["contents_of"]

FEWEST = 3
"""Lines of a table of contents."""
MAX_LINE = 300
MAX_WORDS = 24
LEAST_ON_PAGE = 40
"""Code points of a page on average at least: numbers that leap further than the text are no pages."""
_SPACE = r"[ \t\u00A0\u3000]"
_ENTRY = regex.compile(
    rf"(?P<words>[^\n]{{1,{MAX_LINE}}}?){_SPACE}{{0,9}}(?:{LEADERS}|\.{{3}}|…){_SPACE}{{0,9}}"
    rf"(?P<page>\p{{Nd}}{{1,4}}|[ivxlc]{{1,6}}){_SPACE}{{0,9}}"
)
_NUMBER = regex.compile(
    rf"{_SPACE}*(?:\p{{L}}+{_SPACE}+|§+{_SPACE}*|第)?[\p{{Nd}}.]{{1,16}}[.)、条章节]?{_SPACE}*|{_SPACE}+"
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line [start, end) that ends in leaders and a number. page: 0 for a Roman one, of a preface."""

    start: int
    end: int
    keys: tuple[tuple[str, ...], ...]
    page: int


def contents_of(text: str, clauses: Sequence[Clause]) -> list[tuple[int, int]]:
    """Spans of the lines of tables of contents, in order."""
    found: list[tuple[int, int]] = []
    places: dict[tuple[str, ...], list[int]] | None = None
    for run in _runs(text):
        places = _heading_places(text, clauses) if places is None else places
        named = list(_named(run, places))
        if len(named) >= FEWEST and _are_pages([(entry.page, at) for entry, at in named]):
            found += [(entry.start, entry.end) for entry, _ in named]
    return found


def _runs(text: str) -> Iterator[list[_Entry]]:
    """Such lines in a row, with nothing but blank lines between them."""
    run: list[_Entry] = []
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end] if end - at <= 2 * MAX_LINE else ""
        if line.strip() or end - at > 2 * MAX_LINE:
            match = _ENTRY.fullmatch(line.rstrip("\r"))
            if match is not None:
                page = int(match["page"]) if match["page"].isdecimal() else 0
                run.append(_Entry(at, end, _keys(match["words"]), page))
            else:
                if len(run) >= FEWEST:
                    yield run
                run = []
        at = end + 1
    if len(run) >= FEWEST:
        yield run


def _keys(line: str) -> tuple[tuple[str, ...], ...]:
    """The words of an entry, with and without what numbers it."""
    number = _NUMBER.match(line)
    rest = line[number.end() :] if number else line
    return tuple(dict.fromkeys(key for one in (line, rest) if (key := words_of(one).texts)))


def _heading_places(text: str, clauses: Sequence[Clause]) -> dict[tuple[str, ...], list[int]]:
    """Where clauses begin, by the words of their headings; by all their first words where they have none."""
    places: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for clause in clauses:
        if clause.title:
            keys = {words_of(clause.title).texts, words_of(clause.name).texts}
        elif clause.number:
            end = min(clause.end, clause.title_start + MAX_LINE)
            first = words_of(text[clause.title_start : end]).texts[:MAX_WORDS]
            keys = {first[:n] for n in range(1, len(first) + 1)}
        else:
            continue
        for key in keys:
            places[key].append(clause.start)
    return places


def _named(
    run: Sequence[_Entry], places: Mapping[tuple[str, ...], Sequence[int]]
) -> Iterator[tuple[_Entry, int]]:
    """The entries that name a heading behind the run and behind the entry before, with its place."""
    least = run[-1].end
    for entry in run:
        for key in entry.keys:
            known = places.get(key, ())
            at = bisect_left(known, least)
            if at < len(known):
                least = known[at]
                yield entry, least
                break


def _are_pages(named: Sequence[tuple[int, int]]) -> bool:
    """Whether the numbers never fall, and leap no further than the text between the headings allows."""
    pages = [(page, at) for page, at in named if page]
    if not pages or any(later < page for (page, _), (later, _) in pairwise(pages)):
        return not pages
    return (pages[-1][0] - pages[0][0]) * LEAST_ON_PAGE <= pages[-1][1] - pages[0][1]
