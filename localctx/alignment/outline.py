"""A document's clauses → passages: headings, sentences, list items, with their words. Knows no other one.

Line breaks inside a paragraph are no boundaries, so that a PDF and a DOCX of one text have the same passages.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex
import sentencex

from localctx.alignment.contents import contents_of
from localctx.alignment.words import LEADERS, Alphabet, Words, words_of
from localctx.document.clauses import Clause

__all__ = ["Outline", "Passage", "outline_of"]

FEW_WORDS = 2
LONGEST_PARAGRAPH = 200_000
"""Code points of a paragraph that are looked at for sentences in one go."""
_ITEM = (
    r"[ \t\u3000]{0,40}(?:[-*•‣▪●○◦–][ \t]|\(?(?:\p{Nd}{1,3}|[a-zäöü]{1,2}|[ivxlc]{1,6})\)[ \t]{0,9}"
    r"|[（(](?:[一二三四五六七八九十]{1,3}|\p{Nd}{1,2})[)）]\s{0,9}|[①-⑳]\s{0,9}"
    r"|(?:\p{Nd}{1,3}|[a-z])[.、][ \t])"
)
_ITEM_HEAD = regex.compile(_ITEM)
_ENDED = r"[.;:,!?)。；：，！？）](?:\s{0,3}(?:and|or|und|oder|sowie))?"
_BRACKETED = r"[(（](?:\p{Nd}{1,2}|[a-z]{1,2}|[ivx]{1,5}|[一二三四五六七八九十]{1,3})[)）]\s{0,9}\p{L}"
_PARAGRAPH = regex.compile(
    rf"(?P<gap>\n[ \t\r]*\n\s*)|{_ENDED}(?P<gap>[ \t\r]{{0,9}}\n)(?={_ITEM})"
    rf"|(?P<gap>\n)(?=[ \t]{{0,40}}[-*•‣▪●○◦][ \t])|(?P<gap>[\f\v])"
    rf"|{_ENDED}(?P<gap>\s{{1,9}})(?={_BRACKETED})"
    r"|(?:\.{3}|…)\s{0,9}\p{Nd}{1,4}(?P<gap>[ \t\r]{0,9}\n)"
)
"""Within a paragraph an item begins behind a mark: "thirty" may end a line, "(30)" begin the next."""

_LEADERS = regex.compile(LEADERS)


@dataclass(frozen=True, slots=True)
class Passage:
    """text[start:end] of the document · clause: its index · code, masked: its words as characters."""

    index: int
    clause: int
    start: int
    end: int
    words: Words
    code: str
    masked: str
    is_title: bool = False


@dataclass(frozen=True, slots=True)
class Outline:
    """A document as it is compared. first[c]: index of the first passage of clause c; one more at the end."""

    text: str
    language: str
    clauses: tuple[Clause, ...]
    passages: tuple[Passage, ...]
    first: tuple[int, ...]

    def passages_of(self, clause: int) -> Sequence[Passage]:
        """The passages of one clause."""
        return self.passages[self.first[clause] : self.first[clause + 1]]

    def text_of(self, clause: int) -> str:
        """The text of a clause behind its number."""
        return self.text[self.clauses[clause].title_start : self.clauses[clause].end]

    def passage_text(self, passage: Passage) -> str:
        """A passage as it stands in the document."""
        return self.text[passage.start : passage.end]

    @property
    def n_words(self) -> int:
        """Words of all passages."""
        return sum(len(passage.code) for passage in self.passages)


def outline_of(text: str, clauses: Sequence[Clause], alphabet: Alphabet, language: str = "en") -> Outline:
    """The outline of a whole text; documents that are compared share `alphabet`."""
    passages: list[Passage] = []
    first: list[int] = []
    contents = contents_of(text, clauses)
    for clause in clauses:
        first.append(len(passages))
        spans = [(clause.title_start, clause.body_start, True)] if clause.title else []
        body = clause.body_start if clause.title else clause.title_start
        for part in _between(contents, body, clause.end):
            spans += [(start, end, False) for start, end in _sentences(text, *part, language)]
        for start, end, is_title in spans:
            words = words_of(text[start:end], start)
            if words.texts:
                span = (words.starts[0], max(words.ends[-1], _closed(text, words.ends[-1], end)))
                code, masked = alphabet.spell(words.texts), alphabet.masked(words.texts)
                passages.append(Passage(len(passages), clause.index, *span, words, code, masked, is_title))
    return Outline(text, language, tuple(clauses), tuple(passages), (*first, len(passages)))


def _between(skipped: Sequence[tuple[int, int]], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of [start, end) outside the spans that are skipped, which are in order."""
    for first, last in skipped[bisect_left(skipped, start, key=lambda span: span[1]) :]:
        if first >= end:
            break
        if start < first:
            yield start, first
        start = max(start, last)
    if start < end:
        yield start, end


def _closed(text: str, at: int, end: int) -> int:
    """Where the closing mark behind the last word ends, within the passage."""
    return at + 1 if at < end and text[at] in "\"'”’»」』)）" else at


def _sentences(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    """Spans of the sentences of [start, end), list items apart and without their marks."""
    at = start
    for gap in [*(match.span("gap") for match in _PARAGRAPH.finditer(text, start, end)), (end, end)]:
        while at < gap[0]:
            stop = min(gap[0], at + LONGEST_PARAGRAPH)
            yield from _of_paragraph(text, at, stop, language)
            at = stop
        at = max(at, gap[1])


def _of_paragraph(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    """The sentences of one paragraph; one of a word or two goes with the next."""
    if item := _ITEM_HEAD.match(text, start, end):
        start = item.end()
    paragraph = text[start:end].replace("\n", " ").replace("\r", " ")
    paragraph = _LEADERS.sub(lambda match: " " * len(match[0]), paragraph)  # they end no sentence
    if not paragraph.strip():
        return
    held: int | None = None
    for cut in sentencex.get_sentence_boundaries(language, paragraph):
        first, last = start + cut["start_index"], start + cut["end_index"]
        first = first if held is None else held
        n_words = len(words_of(text[first:last]).texts)
        if n_words <= FEW_WORDS and last < end:
            held = first
            continue
        held = None
        yield first, last
    if held is not None:
        yield held, end
