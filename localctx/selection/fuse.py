"""Several selectors' scores → one. Pure arithmetic on ranks or values; knows neither text nor files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from localctx.values import Scores

__all__ = ["blend", "fuse"]

RANK_OFFSET = 60


def fuse(opinions: Sequence[Scores], weights: Mapping[str, float] | None = None) -> Scores:
    """Weighted reciprocal rank fusion (Cormack et al., SIGIR 2009): sum of weight / (60 + rank).

    Blocks without evidence (score 0) get nothing from that selector; equal scores share the better rank; the
    weight of a selector that `weights` does not name is 1. The best possible block scores 1. Raises
    ValueError when the opinions are of different documents or there are none.
    """
    if not opinions or len({len(opinion.values) for opinion in opinions}) != 1:
        raise ValueError("scores of one document and at least one selector are needed")
    weights = weights or {}
    fused = [0.0] * len(opinions[0].values)
    total = sum(weights.get(opinion.selector, 1.0) for opinion in opinions)
    for opinion in opinions:
        weight = weights.get(opinion.selector, 1.0) / total if total else 0.0
        ranking = sorted(
            (i for i, value in enumerate(opinion.values) if value > 0), key=lambda i: -opinion.values[i]
        )
        rank, previous = 0, None
        for place, index in enumerate(ranking):
            if opinion.values[index] != previous:
                rank, previous = place, opinion.values[index]
            fused[index] += weight * (RANK_OFFSET + 1) / (RANK_OFFSET + 1 + rank)
    return Scores("+".join(opinion.selector for opinion in opinions), tuple(fused))


def blend(opinions: Sequence[Scores], weights: Mapping[str, float] | None = None) -> Scores:
    """The weighted sum of each selector's values, its best block being 1: how far blocks lie apart is kept,
    which ranks forget. Weights and errors as in fuse().
    """
    if not opinions or len({len(opinion.values) for opinion in opinions}) != 1:
        raise ValueError("scores of one document and at least one selector are needed")
    weights = weights or {}
    blended = [0.0] * len(opinions[0].values)
    total = sum(weights.get(opinion.selector, 1.0) for opinion in opinions)
    for opinion in opinions:
        best = max(opinion.values, default=0.0)
        share = weights.get(opinion.selector, 1.0) / (total * best) if total and best > 0 else 0.0
        for index, value in enumerate(opinion.values):
            blended[index] += share * max(0.0, value)
    return Scores("+".join(opinion.selector for opinion in opinions), tuple(blended))
