"""Passages widened to the runs of KV that they lie in: what is read for them anyway is attended too.

Where many passages are attended, most lie across two runs. Widened they are half as many for as many tokens,
and so are the runs that are read and the header lines. Knows no scores.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Protocol, TypeAlias, runtime_checkable

import regex

from localctx.selection import sentences
from localctx.session.reading import Passage, Reading
from localctx.session.run import Run
from localctx.session.token_stream import TokenStream

__all__ = [
    "CONTENDING_SHARE",
    "MANY_PASSAGES",
    "Spell",
    "SpellingModel",
    "have_room",
    "in_whole_sentences",
    "runs_of_blocks",
    "start_of",
    "stretches_of",
    "widened",
]

MANY_PASSAGES = 16
"""A budget for more passages than these may widen them; with fewer, precision counts more."""
CONTENDING_SHARE = 0.5
"""Blocks that score as much of the best one must all have room, widened (docs/decisions/0002): else passages
that are found among 60 are not among 30.
"""
Spell: TypeAlias = Callable[[Sequence[int]], str]


@runtime_checkable
class SpellingModel(Protocol):
    """A model that says what its tokens stand for."""

    def text(self, tokens: Sequence[int]) -> str:
        """What content tokens stand for, without a character at the end that is not whole."""


def runs_of_blocks(run: Run, streams: Sequence[TokenStream]) -> Callable[[int], Mapping[Hashable, int]]:
    """For selection.choose(): the runs that a block lies in, with their tokens. streams: of each document."""

    @cache
    def units(number: int) -> Mapping[Hashable, int]:
        document, first, end = run.tokens_of(number)
        spans = streams[document].spans
        places = streams[document].runs_of(first, end)
        return {(document, place): spans[place][1] - spans[place][0] for place in places}

    return units


def have_room(
    ranking: Sequence[tuple[int, float]],
    units: Callable[[int], Mapping[Hashable, int]],
    budget: int,
    n_lead: int,
    share: float = CONTENDING_SHARE,
) -> bool:
    """Whether the budget holds all blocks that contend, widened, each with n_lead tokens before it.

    ranking: (block, score), best first.
    """
    taken: dict[Hashable, int] = {}
    for n_blocks, (number, score) in enumerate(ranking, 1):
        if score < share * ranking[0][1]:
            break
        taken.update(units(number))
        if sum(taken.values()) + n_blocks * n_lead > budget:
            return False
    return True


def start_of(run: Run, streams: Sequence[TokenStream], number: int, spell: Spell) -> Passage:
    """Where the first of the runs that a block lies in begins, up to the end of the block there."""
    document, first, _ = run.tokens_of(number)
    stream, reading = streams[document], run.readings[document]
    start = stream.spans[stream.run_at(first)][0]
    return reading.part(bisect_right(reading.first_tokens, start) - 1, start, reading.n_tokens, spell)


def widened(
    run: Run, streams: Sequence[TokenStream], numbers: Sequence[int], spell: Spell
) -> tuple[Passage, ...]:
    """The blocks with these running numbers, and what else lies in their runs, in document order: each block
    a passage of its own, as far as it lies in them. Passages that follow each other are neighbours.
    """
    wanted: dict[int, set[int]] = {}
    for number in numbers:
        document, first, end = run.tokens_of(number)
        wanted.setdefault(document, set()).update(streams[document].runs_of(first, end))
    return tuple(
        passage
        for document, places in sorted(wanted.items())
        for first, end in _spans(streams[document], places)
        for passage in _passages(run.readings[document], first, end, spell)
    )


def stretches_of(passages: Sequence[Passage]) -> list[tuple[Passage, ...]]:
    """The passages, those that follow each other in their document together."""
    stretches: list[list[Passage]] = []
    ends: tuple[int, int] | None = None
    for passage in passages:
        if ends != (passage.document, passage.first_token):
            stretches.append([])
        stretches[-1].append(passage)
        ends = passage.document, passage.first_token + passage.n_tokens
    return [tuple(stretch) for stretch in stretches]


def in_whole_sentences(run: Run, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The passages with the text of their whole sentences, where their runs cut others; the tokens stay.

    What is cut is no evidence: 71 is not held by a text whose 711 a run's border parts. Where no sentence is
    whole, lines are, or else words; without any, the text is empty.
    """
    return tuple(_in_whole_sentences(run.readings[one.document], one, run.language) for one in passages)


def _in_whole_sentences(reading: Reading, passage: Passage, language: str) -> Passage:
    number = reading.block_at(passage.start)
    start, end = reading.span(number, number)
    if (start, end) == (passage.start, passage.end):
        return passage
    text = reading.document.read(start, end)
    first, last = passage.start - start, passage.end - start

    def within(spans: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
        """From where the first of the spans that were not cut begins to where the last one ends."""
        found = [(a, b) for a, b in spans if first <= a and b <= last]
        return (found[0][0], found[-1][1]) if found else None

    kept = (
        within((one.start, one.end) for one in sentences(text, language))
        or within(match.span() for match in regex.finditer(r"[^\n]+", text))
        or within(match.span() for match in regex.finditer(r"\S+", text))
        or (first, first)
    )
    return replace(passage, start=start + kept[0], end=start + kept[1], text=text[kept[0] : kept[1]])


def _spans(stream: TokenStream, places: set[int]) -> Iterator[tuple[int, int]]:
    """The tokens [first, end) of the runs, neighbours as one."""
    first = end = -1
    for start, stop in (stream.spans[place] for place in sorted(places)):
        if start != end:
            if end > first:
                yield first, end
            first = start
        end = stop
    if end > first:
        yield first, end


def _passages(reading: Reading, first: int, end: int, spell: Spell) -> Iterator[Passage]:
    """The blocks of the tokens [first, end), the outer ones cut."""
    at = first
    while at < end:
        number = bisect_right(reading.first_tokens, at) - 1
        passage = reading.part(number, at, end, spell)
        yield passage
        at += passage.n_tokens
