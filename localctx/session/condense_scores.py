"""The order in which a text's sentences are taken: for a question by words and meaning, else by coverage.

Texts are embedded in passages of neighbouring sentences where there are too many of them; what cannot be
embedded within bounded time is scored by words alone. Knows no particular embedder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localctx.blocks import Embed
from localctx.index.terms import content_words
from localctx.selection.coverage import CoveredTerms, cover
from localctx.selection.truncation import TextUnits, ranking_of
from localctx.selection.truncation_scores import fused, with_neighbours
from localctx.session.condense_scan import Scan, hashed_terms
from localctx.values import TextSource

__all__ = ["Ranked", "rankings"]

MOST_EMBEDDED = 4096
"""Passages of a text that are embedded at most: two minutes on two processor cores."""
PASSAGE_TOKENS = 192
"""A passage is no longer: embedders see some 256 tokens."""
EMBEDDED_AT_ONCE = 256
STRETCH_UNITS = 4096


@dataclass(frozen=True, slots=True)
class Ranked:
    """Rows in the order in which they are taken, list after list; `embedded`: share of the text."""

    orders: tuple[NDArray[np.int64], ...]
    embedded: float


def rankings(
    text: TextSource, found: Scan, question: str | None, embed: Embed | None, budget_tokens: int
) -> Ranked:
    """Sentences that say next to nothing are left out, unless they hold a word of the question or all others
    fit."""
    orders: list[NDArray[np.int64]] = []
    embedded = 0.0
    units = found.units
    if question is not None and found.words is not None:
        dense, embedded = (None, 0.0) if embed is None else _cosines(text, found, question, embed)
        scores = with_neighbours(fused(found.words.scores(), dense))
        orders.append(ranking_of(np.where(units.says_something, scores, 0)))
    n_ranked = sum(int(units.n_tokens[order].sum()) for order in orders)
    if n_ranked < budget_tokens:
        orders.append(_by_coverage(text, found, budget_tokens))
    low = np.flatnonzero(~units.says_something).astype(np.int64)
    if units.total_tokens - int(units.n_tokens[low].sum(dtype=np.int64)) < budget_tokens:
        orders.append(low[np.argsort(-units.information[low], kind="stable")])
    return Ranked(tuple(orders), embedded)


# --- by meaning -------------------------------------------------------------------------------------


def _cosines(text: TextSource, found: Scan, question: str, embed: Embed) -> tuple[NDArray[np.float32], float]:
    """Each sentence's cosine with the question (that of its passage), and the share that was embedded.

    Sentences of passages that were not embedded get the median.
    """
    units = found.units
    passages = _passages(units, MOST_EMBEDDED)
    if len(passages) > MOST_EMBEDDED:
        passages = _most_promising(passages, found)
    vector = embed([question])[0]
    values = np.full(len(units), np.nan, np.float32)
    for at in range(0, len(passages), EMBEDDED_AT_ONCE):
        some = passages[at : at + EMBEDDED_AT_ONCE]
        texts = [text.read(int(units.starts[a]), int(units.ends[b - 1])).strip() for a, b in some]
        for (first, end), cosine in zip(some, embed(texts) @ vector, strict=True):
            values[first:end] = cosine
    is_known = ~np.isnan(values)
    share = float(units.n_tokens[is_known].sum() / max(1, units.total_tokens))
    values[~is_known] = np.median(values[is_known]) if is_known.any() else 0
    return values, share


def _passages(units: TextUnits, most: int) -> list[tuple[int, int]]:
    """Rows [first, end) of neighbouring sentences: single ones where there are at most `most`, else as long
    as it takes, up to PASSAGE_TOKENS.
    """
    if len(units) <= most:
        return [(row, row + 1) for row in range(len(units))]
    size = min(PASSAGE_TOKENS, -(-5 * units.total_tokens // (4 * most)))
    passages: list[tuple[int, int]] = []
    first = n_tokens = 0
    for row, cost in enumerate(units.n_tokens.tolist()):
        if row > first and n_tokens + cost > size:
            passages.append((first, row))
            first, n_tokens = row, 0
        n_tokens += cost
    return [*passages, (first, len(units))]


def _most_promising(passages: Sequence[tuple[int, int]], found: Scan) -> list[tuple[int, int]]:
    """Half of what may be embedded by the question's words, the rest evenly spread."""
    lexical = found.words.scores() if found.words is not None else np.zeros(len(found.units), np.float32)
    best = np.array([lexical[first:end].max() for first, end in passages])
    by_words = ranking_of(best)[: MOST_EMBEDDED // 2].tolist()
    left = sorted(set(range(len(passages))) - set(by_words))
    n_left = MOST_EMBEDDED - len(by_words)
    spread = [left[number * len(left) // n_left] for number in range(min(n_left, len(left)))]
    return [passages[number] for number in sorted({*by_words, *spread})]


# --- by coverage ------------------------------------------------------------------------------------


def _by_coverage(text: TextSource, found: Scan, budget_tokens: int) -> NDArray[np.int64]:
    """Rows in the order in which they add most to what is covered, the stretches taking turns."""
    units = found.units
    covered = CoveredTerms(found.weights)
    share = budget_tokens / max(1, units.total_tokens)
    ranks: list[tuple[float, int]] = []
    for first, end in _stretches(len(units)):
        costs = units.n_tokens[first:end]
        quality = np.where(units.says_something, units.information, 0)[first:end]
        terms = _terms(text, found, first, end)
        room = int(share * costs.sum(dtype=np.int64)) + 1
        order = cover(terms, costs, quality, covered, room)
        ranks += [(place / len(order), first + row) for place, row in enumerate(order)]
    return np.array([row for _, row in sorted(ranks)], np.int64)


def _stretches(n_units: int) -> Iterator[tuple[int, int]]:
    for first in range(0, n_units, STRETCH_UNITS):
        yield first, min(first + STRETCH_UNITS, n_units)


def _terms(text: TextSource, found: Scan, first: int, end: int) -> list[list[int]]:
    """Hashed content words of the sentences [first, end), read in one go."""
    units = found.units
    base = int(units.starts[first])
    stretch = text.read(base, int(units.ends[end - 1]))
    return [
        hashed_terms(content_words(stretch[int(a) - base : int(b) - base], found.stops))
        for a, b in zip(units.starts[first:end], units.ends[first:end], strict=True)
    ]
