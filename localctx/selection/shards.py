"""A question's passages where no index holds all documents: shards score by common weights, one threshold.

Pure. Every shard counts the blocks that hold each of the question's terms; the sums give each term the rarity
that it has in all documents together; with that a shard scores its blocks as one index of all would, and
sends its best k. The k-th best score of all is the threshold, and what reaches it is read: nothing is lost by
sending k each, since no shard can have more than k of the best k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["TermHolders", "best_of_shard", "common_weights", "merged"]


@dataclass(frozen=True, slots=True)
class TermHolders:
    """A term of the question: how much it counts, and the blocks of one shard that hold it."""

    weight: float
    blocks: tuple[int, ...]


def common_weights(
    terms: Sequence[float], n_blocks: Sequence[int], n_holding: Sequence[Sequence[int]]
) -> list[float]:
    """Each term's share of the question over all shards; they sum to 1 where any term is held at all.

    terms: what each counts · n_blocks: of each shard · n_holding: of each shard, blocks that hold each term.
    """
    total = sum(n_blocks)
    held = [sum(counts) for counts in zip(*n_holding, strict=True)]
    weights = [
        weight * math.log(1 + (total - n + 0.5) / (n + 0.5)) for weight, n in zip(terms, held, strict=True)
    ]
    whole = sum(weights)
    return [weight / whole for weight in weights] if whole else weights


def best_of_shard(
    holders: Sequence[TermHolders], weights: Sequence[float], k: int
) -> list[tuple[float, int]]:
    """The shard's best k blocks as (score, block), best first, the earlier one of equals."""
    scores: dict[int, float] = {}
    for term, weight in zip(holders, weights, strict=True):
        for block in term.blocks:
            scores[block] = scores.get(block, 0.0) + weight
    ranked = sorted(((score, block) for block, score in scores.items()), key=lambda one: (-one[0], one[1]))
    return ranked[:k]


def merged(
    best: Sequence[Sequence[tuple[float, int]]], k: int
) -> tuple[float, list[list[tuple[float, int]]]]:
    """(threshold, what of each shard reaches it): the threshold is the k-th best score of all shards."""
    scores = sorted((score for shard in best for score, _ in shard), reverse=True)
    threshold = scores[min(k, len(scores)) - 1] if scores else 0.0
    return threshold, [[one for one in shard if one[0] >= threshold] for shard in best]
