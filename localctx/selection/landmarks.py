"""What a question's queries found in each block → one score a block. Pure arithmetic; knows no keys and no
files.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from localctx.values import Scores

__all__ = ["NEUTRAL_QUESTIONS", "head_scores", "landmark_scores", "positive_mean", "shared_lead"]

NEUTRAL_QUESTIONS = ("What does the document say?", "Is it so?", "What is it about?", "N/A")
"""Questions about nothing: what they find, every question finds."""

Matches = NDArray[np.float32]
"""[n_queries, n_heads, n_blocks]: the best product of each query with a key of each block."""


def shared_lead(questions: Sequence[Sequence[int]]) -> int:
    """How many tokens all questions begin with: their queries say nothing of what is asked. At least one of
    each is left.
    """
    shortest = min(len(tokens) for tokens in questions)
    for place in range(shortest):
        if len({tokens[place] for tokens in questions}) > 1:
            return place
    return max(0, shortest - 1)


def head_scores(found: Matches, neutral: Sequence[Matches]) -> Matches:
    """How far each block stands out for each head, beyond what neutral questions find: [n_heads,
    n_blocks], in standard deviations over the blocks.
    """
    beyond = _strength(found) - np.mean([_strength(matches) for matches in neutral], axis=0, dtype=np.float32)
    return _standard(beyond)


def landmark_scores(found: Matches, neutral: Sequence[Matches]) -> Scores:
    """One score a block, from all heads."""
    return Scores("landmarks", positive_mean(head_scores(found, neutral)))


def positive_mean(values: Matches) -> tuple[float, ...]:
    """The heads' mean; 0 for blocks that stand out less than the average one."""
    return tuple(map(float, np.maximum(values.mean(axis=0), 0.0)))


def _strength(found: Matches) -> Matches:
    """Over the queries, the root mean cube of what stands out: a few queries that find something count,
    all of them more. Measured beside the mean, the maximum and the mean of the best four.
    """
    stands_out = np.maximum(_standard(found), 0.0)
    strength: Matches = np.cbrt((stands_out**3).mean(axis=0))
    return strength


def _standard(values: Matches) -> Matches:
    """In standard deviations over the blocks; blocks without tokens are as low as the lowest."""
    finite = np.where(np.isfinite(values), values, np.nan)
    lowest = np.nanmin(finite, axis=-1, keepdims=True)
    finite = np.where(np.isnan(finite), lowest, finite)
    centred = finite - finite.mean(axis=-1, keepdims=True)
    spread = centred.std(axis=-1, keepdims=True)
    standard: Matches = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
    return standard
