"""Several selectors' scores → one. Pure arithmetic on values; knows neither text nor files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from localctx.values import Scores

__all__ = ["fuse"]


def fuse(opinions: Sequence[Scores], weights: Sequence[float] | None = None) -> Scores:
    """The weighted mean of the selectors' values (alike without `weights`), each one's best block being 1:
    how far blocks lie apart is kept, which ranks forget. A selector without evidence (all 0) adds nothing.

    Raises ValueError when the opinions are of different documents or there are none, or the weights do not
    fit them.
    """
    if not opinions or len({len(opinion.values) for opinion in opinions}) != 1:
        raise ValueError("scores of one document and at least one selector are needed")
    weights = [1.0] * len(opinions) if weights is None else weights
    if len(weights) != len(opinions) or min(weights) < 0 or sum(weights) <= 0:
        raise ValueError(f"weights {list(weights)} for {len(opinions)} selectors")
    values = np.zeros(len(opinions[0].values))
    for opinion, weight in zip(opinions, weights, strict=True):
        found = np.array(opinion.values)
        best = found.max(initial=0.0)
        if best > 0:
            values += np.maximum(found, 0.0) / best * weight / sum(weights)
    return Scores("+".join(opinion.selector for opinion in opinions), tuple(values.tolist()))
