"""In which order passages stand before a question, and which of them are led by header lines. Knows no KV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from localctx.assemble import best_last
from localctx.session.reading import Passage
from localctx.session.run import Run
from localctx.session.whole_runs import stretches_of

__all__ = ["N_NAMED", "ordered"]

N_NAMED = 12
"""The best of many blocks are led by header lines, which are evaluated with every question, where nothing
else is: fewer lose answers, and so do many, each of which sees little of the others (docs/decisions/0002).
What ranks lower is there for what only it says: its KV was made behind its own heading.
"""


def ordered(
    run: Run, passages: Sequence[Passage], numbers: Sequence[int], ranked: Iterable[int], n_named: int
) -> tuple[list[Passage], set[Passage]]:
    """The passages as they are put in, and those of them that no header line leads.

    In the document's order, where they are many the stretch with the best block is the last. numbers: the
    blocks that were chosen · ranked: blocks, best first · n_named: what is in none of so many best ones, nor
    in one that has no rank, is unnamed; stretches of nothing else stand before all others.
    """
    chosen = set(numbers)
    best_first = [number for number in ranked if number in chosen]
    if not best_first:
        return list(passages), set()
    stretches = stretches_of(passages)
    named: set[Passage] = set()
    for number in chosen.difference(best_first[n_named:]):
        named |= _of_block(run, passages, number)
    unnamed = [place for place, stretch in enumerate(stretches) if named.isdisjoint(stretch)]
    best = _of_block(run, passages, best_first[0])
    holding = next((place for place, stretch in enumerate(stretches) if not best.isdisjoint(stretch)), None)
    if holding is None:
        return list(passages), set()
    return best_last(stretches, holding, unnamed), set(passages) - named


def _of_block(run: Run, passages: Sequence[Passage], number: int) -> set[Passage]:
    """The passages in which the block lies; widened, one may begin in a block's middle."""
    document, first, end = run.tokens_of(number)
    return {
        one
        for one in passages
        if one.document == document and one.first_token < end and first < one.first_token + one.n_tokens
    }
