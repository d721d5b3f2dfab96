"""Which blocks the chosen passages refer to ("see Annex B"): they are read too. A few, within the budget.

Only references in the question, or beside its words in the best passages, are followed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from localctx.index.terms import content_words, stem
from localctx.selection import Reference, references, sentences, targets
from localctx.session.provenance import Pulled
from localctx.session.reading import Passage, Reading
from localctx.session.run import Run

__all__ = ["MAX_REFERENCED", "Room", "pull_referenced"]

MAX_REFERENCED = 2
"""Blocks pulled in at most: each competes with those that were found."""
N_FOLLOWED = 3
"""Passages whose references are followed, best first."""
N_LOOKED_AT = 4
"""Blocks of what a reference names among which the question chooses."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A reference, and the document in which it is to be found; None: any."""

    reference: Reference
    document: int | None


@dataclass(slots=True)
class Room:
    """The tokens that are left of a budget, what a block costs, and whether it may be taken at all."""

    n_tokens: int
    cost: Callable[[int], int]
    is_there: Callable[[int], bool]

    def take(self, number: int) -> bool:
        """Take a block's tokens off; False, and nothing taken, where it is not there or does not fit."""
        n_tokens = self.cost(number) if self.is_there(number) else self.n_tokens + 1
        if n_tokens > self.n_tokens:
            return False
        self.n_tokens -= n_tokens
        return True


def pull_referenced(
    run: Run, chosen: Sequence[int], scores: dict[int, float], question: str, room: Room
) -> list[int]:
    """The chosen blocks and at most MAX_REFERENCED that they or the question refer to, in document order.

    scores: of the blocks that the search found. What is pulled in is noted in `run.pulled`, what does not fit
    in a warning.
    """
    best = sorted(chosen, key=lambda number: (-scores.get(number, 0.0), number))[:N_FOLLOWED]
    taken: list[int] = []
    wanted = _wanted(question, [run.passage(number) for number in best])
    led = _targets(run, wanted, scores)
    for one in wanted:
        if len(taken) == MAX_REFERENCED:
            break
        number = led.get(one)
        if number is None or number in chosen or number in taken:
            continue
        if not room.take(number):
            run.note(f"{one.reference.text} is referred to, but does not fit the context")
            continue
        taken.append(number)
        passage = run.passage(number)
        span = (passage.start, passage.end)
        run.pulled.append(Pulled(one.reference.text, passage.source, *span, passage.page, passage.n_tokens))
    return sorted([*chosen, *taken])


def _wanted(question: str, passages: Sequence[Passage]) -> list[_Wanted]:
    """The question's own references, then the passages', those beside most of the question's words first."""
    asked = set(map(stem, content_words(question)))
    found = [(math.inf, _Wanted(reference, None)) for reference in references(question)]
    for passage in passages:
        for reference in references(passage.text):
            n_shared = len(asked & set(map(stem, content_words(_around(passage.text, reference)))))
            if n_shared:
                found.append((n_shared, _Wanted(reference, passage.document)))
    found.sort(key=lambda item: -item[0])
    first: dict[tuple[tuple[str, str], int | None], _Wanted] = {}
    for _, one in found:
        first.setdefault((one.reference.key, one.document), one)
    return list(first.values())


def _around(text: str, reference: Reference) -> str:
    """The sentence of the reference and the one before it."""
    spans = sentences(text)
    at = next((n for n, one in enumerate(spans) if one.end > reference.start), len(spans) - 1)
    return text[spans[max(0, at - 1)].start : spans[at].end] if spans else text


def _targets(run: Run, wanted: Sequence[_Wanted], scores: dict[int, float]) -> dict[_Wanted, int]:
    """The block that each reference leads to, in the first document that has one; of a longer part, the best
    of its first ones.
    """
    led: dict[_Wanted, int] = {}
    before = 0
    for reading in run.readings:
        open_ones = [one for one in wanted if one.document in (None, reading.ordinal) and one not in led]
        if open_ones:
            _look_up([one.reference for one in open_ones], reading)
            for one in open_ones:
                offset = reading.referenced[one.reference.key]
                if offset is not None:
                    led[one] = before + _best_block(reading, offset, before, scores)
        before += reading.n_blocks
    return led


def _look_up(wanted: Sequence[Reference], reading: Reading) -> None:
    """Have where they lead in `reading.referenced`: the text is gone through once for each that is new."""
    new = [reference for reference in wanted if reference.key not in reading.referenced]
    if new:
        offsets = targets(new, reading.document.text.stream())
        reading.referenced.update({reference.key: offsets.get(reference.key) for reference in new})


def _best_block(reading: Reading, offset: int, before: int, scores: dict[int, float]) -> int:
    """The block at the offset, or the best found of those that follow it under the same headings."""
    first = reading.block_at(offset)
    _, _, below = reading.document.read(offset, reading.span(first, first)[1]).partition("\n")
    if not below.strip() and first + 1 < reading.n_blocks:
        first += 1  # the block ends with the heading: what it heads is the next one
    path = reading.heading_path(first)
    same = [first]
    for number in range(first + 1, min(first + N_LOOKED_AT, reading.n_blocks)):
        if reading.heading_path(number) != path:
            break
        same.append(number)
    return max(same, key=lambda number: (scores.get(before + number, 0.0), -number))
