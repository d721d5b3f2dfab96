"""In which order passages stand before a question, and which of them are led by header lines. Knows no KV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from localctx.assemble import best_last
from localctx.session.reading import Passage
from localctx.session.run import Run
from localctx.session.whole_runs import stretches_of

__all__ = ["N_NAMED", "ordered"]

N_NAMED = 16
"""The best of many blocks are led by header lines, which are evaluated with every question. What ranks lower
is there for what only it says: its KV was made behind its own heading (docs/decisions/0002-stored-kv.md).
"""


def ordered(
    run: Run, passages: Sequence[Passage], numbers: Sequence[int], ranked: Iterable[int], n_named: int
) -> tuple[list[Passage], int]:
    """The passages as they are put in, and how many of them, the first ones, no header line leads.

    In the document's order, where they are many the stretch with the best block is the last. numbers: the
    blocks that were chosen · ranked: blocks, best first · n_named: what holds none of so many best ones, nor
    one that has no rank, stands unnamed before all others.
    """
    chosen = set(numbers)
    best_first = [number for number in ranked if number in chosen]
    if not best_first:
        return list(passages), 0
    stretches = stretches_of(passages)
    held = {_holding(run, stretches, number) for number in chosen.difference(best_first[n_named:])}
    unnamed = [place for place in range(len(stretches)) if place not in held]
    in_order = best_last(stretches, _holding(run, stretches, best_first[0]), unnamed)
    return in_order, sum(len(stretches[place]) for place in unnamed)


def _holding(run: Run, stretches: Sequence[Sequence[Passage]], number: int) -> int:
    """The place of the stretch that the chosen block lies in; widened, one may begin in a block's middle."""
    document, first, end = run.tokens_of(number)
    return next(
        place
        for place, stretch in enumerate(stretches)
        if stretch[0].document == document
        and stretch[0].first_token < end
        and first < stretch[-1].first_token + stretch[-1].n_tokens
    )
