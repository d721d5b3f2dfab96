"""How like a question's vectors blocks are → scores, weights in a fusion, a second look, variety.

Pure arithmetic on vectors; knows no embedder, no texts and no files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from localctx.selection.fuse import fuse
from localctx.values import Scores

__all__ = ["always_in", "dense_scores", "diverse", "hybrid", "max_sim", "reranked"]

LEXICAL_WEIGHT = 0.6
"""Of words in a block that holds all of the question; measured with SHARE_POWER (docs/measurements.md)."""
SHARE_POWER = 2
"""A block that holds half of the question's words says little: its words count a quarter."""
RANK_SHARE = 0.3
"""Of the lexical part, how much BM25 decides among blocks that hold as much."""
MAX_SIM_WEIGHT = 0.5
"""Of the second look, beside the first one."""


def dense_scores(similarities: NDArray[np.float32]) -> Scores:
    """How far each block stands out, in standard deviations over the blocks that have a vector; 0 for those
    below the mean and for those without (NaN). All alike: no evidence.
    """
    known = np.isfinite(similarities)
    if known.sum() < 2:
        values = np.where(known, np.maximum(np.nan_to_num(similarities), 0.0), 0.0)
        return Scores("dense", tuple(map(float, values)))
    mean, spread = float(similarities[known].mean()), float(similarities[known].std())
    if spread < 1e-4:  # f16 rows of one text differ by rounding
        return Scores("dense", (0.0,) * len(similarities))
    values = np.where(known, np.maximum(np.nan_to_num(similarities) - mean, 0.0) / spread, 0.0)
    return Scores("dense", tuple(map(float, values)))


def hybrid(words: Scores, shares: Sequence[float], vectors: Scores) -> Scores:
    """Words and vectors: in [0, 1].

    Vectors count in proportion to the best block's, words by how much of the question a block holds, whatever
    others hold: a block with all of its rare words is surely meant, and where no block has them vectors
    decide. Ranks, and sums in proportion to each one's best, lose on one kind of question or the other.
    Raises ValueError for scores of different documents.
    """
    best_words, best_vector = max(words.values, default=0.0), max(vectors.values, default=0.0)
    values = []
    for word, share, vector in zip(words.values, shares, vectors.values, strict=True):
        rank = word / best_words if best_words > 0 else 0.0
        lexical = share**SHARE_POWER * (1 - RANK_SHARE + RANK_SHARE * rank)
        dense = vector / best_vector if best_vector > 0 else 0.0
        values.append(LEXICAL_WEIGHT * lexical + (1 - LEXICAL_WEIGHT) * dense)
    return Scores(f"{words.selector}+{vectors.selector}", tuple(values))


def max_sim(question: NDArray[np.float32], block: NDArray[np.float32]) -> float:
    """The mean, over the question's tokens [n, dim], of the best cosine with one of the block's [m, dim]."""
    if not len(question) or not len(block):
        return 0.0
    return float((question @ block.T).max(axis=1).mean())


def reranked(first: Scores, second: Mapping[int, float], name: str = "maxsim") -> Scores:
    """The first look's scores, the blocks that were looked at twice being judged by both and before all
    others.
    """
    if not second:
        return first
    found = [0.0] * len(first.values)
    floor = min(second.values())
    for number, value in second.items():
        found[number] = value - floor + 1e-6
    looked_at = tuple(value if number in second else 0.0 for number, value in enumerate(first.values))
    both = fuse(
        [Scores(first.selector, looked_at), Scores(name, tuple(found))],
        [1 - MAX_SIM_WEIGHT, MAX_SIM_WEIGHT],
    )
    least = min((both.values[number] for number in second), default=0.0)
    best = max(first.values, default=0.0)
    rest = (least * value / best if best else 0.0 for value in first.values)
    values = tuple(
        value if number in second else other
        for number, (value, other) in enumerate(zip(both.values, rest, strict=True))
    )
    return Scores(both.selector, values)


def always_in(scores: Scores, numbers: Sequence[int]) -> Scores:
    """The same, some blocks being as good as the best, whatever they say."""
    if not numbers:
        return scores
    best = max(scores.values, default=0.0) or 1.0
    values = tuple(best if number in numbers else value for number, value in enumerate(scores.values))
    return Scores(scores.selector, values)


def diverse(
    scores: Scores, candidates: Sequence[int], vectors: NDArray[np.float32], share: float
) -> list[int]:
    """The candidates in the order of maximal marginal relevance: each next one is the best by its score, the
    best being 1, less `share` of its cosine with the most similar one before (Carbonell and Goldstein 1998).

    vectors: of the candidates, [n_candidates, dim], of length 1 or 0. share 0 is the order of the scores.
    """
    best = max((scores.values[number] for number in candidates), default=0.0)
    if best <= 0:
        return list(candidates)
    relevance = np.array([scores.values[number] / best for number in candidates])
    alike = np.zeros(len(candidates))
    left, order = list(range(len(candidates))), []
    while left:
        values = (1 - share) * relevance[left] - share * alike[left]
        place = left.pop(int(np.argmax(values)))
        order.append(candidates[place])
        alike = np.maximum(alike, vectors @ vectors[place])
    return order
