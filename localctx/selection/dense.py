"""How like a question's vectors blocks are → scores, weights in a fusion, a second look, variety.

Pure arithmetic on vectors; knows no embedder, no texts and no files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from localctx.selection.fuse import fuse
from localctx.values import Scores

__all__ = [
    "always_in",
    "dense_scores",
    "diverse",
    "hybrid",
    "max_sim",
    "max_sim_weight",
    "reranked",
    "with_max_sims",
]

LEXICAL_WEIGHT = 0.6
"""Of words in a block that holds all of the question; measured with SHARE_POWER (docs/measurements.md)."""
SHARE_POWER = 2
"""A block that holds half of the question's words says little: its words count a quarter."""
RANK_SHARE = 0.3
"""Of the lexical part, how much BM25 decides among blocks that hold as much."""
SECOND_WEIGHT = 0.5
"""Of a second look, beside the first one."""
MAX_SIM_WEIGHT = 0.6
"""Of MaxSim, where no block leads by the question's words; measured with LEAD_FACTOR."""
LED_WEIGHT = 0.7
"""Of words beside the MaxSim of all blocks, where a few lead."""
FEW = 8
"""Blocks that may hold the question alike and still lead: one answer can stand in several places."""
LEAD_FACTOR = 2
"""Where a block holds half of the question more than any other does, it is meant: MaxSim has no say."""


def dense_scores(similarities: NDArray[np.float32]) -> Scores:
    """How far each block stands out, in standard deviations over the blocks that have a vector; 0 for those
    below the mean and for those without (NaN). All alike: no evidence.
    """
    known = np.isfinite(similarities)
    if known.sum() < 2:
        values = np.where(known, np.maximum(np.nan_to_num(similarities), 0.0), 0.0)
        return Scores("dense", tuple(values.tolist()))
    mean, spread = float(similarities[known].mean()), float(similarities[known].std())
    if spread < 1e-4:  # f16 rows of one text differ by rounding
        return Scores("dense", (0.0,) * len(similarities))
    values = np.where(known, np.maximum(np.nan_to_num(similarities) - mean, 0.0) / spread, 0.0)
    return Scores("dense", tuple(values.tolist()))


def hybrid(words: Scores, shares: Sequence[float], vectors: Scores) -> Scores:
    """Words and vectors: in [0, 1].

    Vectors count in proportion to the best block's, words by how much of the question a block holds, whatever
    others hold: a block with all of its rare words is surely meant, and where no block has them vectors
    decide. Ranks, and sums in proportion to each one's best, lose on one kind of question or the other.
    Raises ValueError for scores of different documents.
    """
    ranks, held, likeness = _arrays(words.values, shares, vectors.values)
    lexical = _by_words(held, ranks)
    values = LEXICAL_WEIGHT * lexical + (1 - LEXICAL_WEIGHT) * _of_best(likeness)
    return Scores(f"{words.selector}+{vectors.selector}", tuple(values.tolist()))


def with_max_sims(words: Scores, shares: Sequence[float], sims: NDArray[np.float32]) -> Scores:
    """Words and the MaxSim of every block (NaN where it is not known): in [0, 1].

    MaxSim counts in proportion to the best block's, as far as blocks stand out; words by how much of the
    question a block holds, and the more, the further the few that hold most lead: where many hold as much,
    words tell nothing apart, and where one holds an identifier, a number or a rare word, it is meant.
    Raises ValueError for scores of different documents.
    """
    ranks, held, tokens = _arrays(words.values, shares, dense_scores(sims).values)
    ranked = np.sort(held)[::-1]
    lead = float(ranked[0] - ranked[min(FEW, len(ranked) - 1)]) if len(ranked) else 0.0
    sure = min(1.0, LEAD_FACTOR * lead)
    lexical = _by_words((1 - sure) * held + sure * _of_best(held), ranks)
    weight = LED_WEIGHT * sure
    values = weight * lexical + (1 - weight) * _of_best(tokens)
    return Scores(f"{words.selector}+dense+maxsim", tuple(values.tolist()))


def _arrays(*opinions: Sequence[float]) -> list[NDArray[np.float64]]:
    """The values as arrays. Raises ValueError unless they are of as many blocks."""
    if len({len(values) for values in opinions}) > 1:
        raise ValueError(f"opinions of {', '.join(str(len(values)) for values in opinions)} blocks")
    return [np.array(values, np.float64) for values in opinions]


def _by_words(held: NDArray[np.float64], ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """What words say of each block that holds so much of the question, in [0, 1]; ranks: BM25."""
    found: NDArray[np.float64] = held**SHARE_POWER * (1 - RANK_SHARE + RANK_SHARE * _of_best(ranks))
    return found


def _of_best(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """In proportion to the best; zeros where there is no evidence."""
    best = values.max(initial=0.0)
    return values / best if best > 0 else np.zeros(len(values))


def max_sim(question: NDArray[np.float32], block: NDArray[np.float32]) -> float:
    """The mean, over the question's tokens [n, dim], of the best cosine with one of the block's [m, dim]."""
    if not len(question) or not len(block):
        return 0.0
    return float((question @ block.T).max(axis=1).mean())


def max_sim_weight(shares: Sequence[float]) -> float:
    """What MaxSim weighs beside the first look, in [0, 1]: the less, the further one block leads by the share
    of the question's words that it holds. Rare words, identifiers, numbers and quotes make such leads; on
    them vectors of tokens are vague.
    """
    if len(shares) < 2:
        return MAX_SIM_WEIGHT
    second, best = sorted(shares)[-2:]
    return MAX_SIM_WEIGHT * max(0.0, 1 - LEAD_FACTOR * (best - second))


def reranked(
    first: Scores, second: Mapping[int, float], name: str = "maxsim", weight: float = SECOND_WEIGHT
) -> Scores:
    """The first look's scores, the blocks that were looked at twice being judged by both and before all
    others; `weight`, in [0, 1], is that of the second look.
    """
    if not second:
        return first
    numbers, values = list(second), np.array(first.values)
    judged = np.array([second[number] for number in numbers])
    looked_at, found = np.zeros(len(values)), np.zeros(len(values))
    looked_at[numbers] = values[numbers]
    found[numbers] = judged - judged.min() + 1e-6
    both = fuse(
        [Scores(first.selector, tuple(looked_at.tolist())), Scores(name, tuple(found.tolist()))],
        [1 - weight, weight],
    )
    fused = np.array(both.values)
    rest = fused[numbers].min() * _of_best(values)
    rest[numbers] = fused[numbers]
    return Scores(both.selector, tuple(rest.tolist()))


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
