"""A summary in figures: facts told by decile, parts of the text it speaks of, repetition. Pure text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from localctx.index.terms import content_words, stem

__all__ = ["N_SLICES", "coverage", "redundancy", "terms"]

N_SLICES = 20
"""Equal parts of the text, of which a summary speaks or not."""


def terms(text: str) -> Counter[str]:
    """The stems of a text's content words, counted."""
    return Counter(stem(word) for word in content_words(text))


def coverage(lines: Sequence[str], text: str) -> float:
    """Share of the text's slices that a line of the summary is nearest to, by words that are rare in it.

    With fewer lines than slices, of as many slices as there are lines.
    """
    n = max(1, min(N_SLICES, len(text)))
    slices = [terms(text[len(text) * k // n : len(text) * (k + 1) // n]) for k in range(n)]
    n_holding = Counter(term for held in slices for term in held)
    weight = {term: math.log(1 + n / count) for term, count in n_holding.items()}
    hit = set()
    for line in lines:
        said = terms(line)
        scores = [sum(weight[term] for term in said if term in held) for held in slices]
        if max(scores, default=0.0) > 0:
            hit.add(scores.index(max(scores)))
    return len(hit) / min(n, len(lines)) if lines else 0.0


def redundancy(lines: Sequence[str]) -> float:
    """Mean over the lines of the largest share of a line's content words that one other line holds."""
    held = [set(terms(line)) for line in lines]
    shares = [
        max((len(one & other) / len(one) for k, other in enumerate(held) if k != number), default=0.0)
        for number, one in enumerate(held)
        if one
    ]
    return sum(shares) / len(shares) if shares else 0.0
