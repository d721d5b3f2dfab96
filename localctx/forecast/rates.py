"""Seconds of prefill and decoding from a few costs: pure arithmetic. Knows no machine and no model file.

A token costs a part of its own and a part for each token that it attends to; measured on an H200 and on CPUs
this is true within some per cent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

__all__ = ["Rates", "fit"]

_LEAST_SHARE = 1e-6
"""Of a token's own cost, what attending to one more costs at least: nothing is free."""
_TOLD_SHARE = 0.25
"""Of a token's own cost: more that attending costs, from the least to the most depth, is no noise."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Seconds. prefill_s, decode_s: a token · prefill_depth_s, decode_depth_s: for each token attended to ·
    stream_factor: prefilling into the store by plain prefill of the same tokens at the same depth.
    """

    prefill_s: float
    prefill_depth_s: float
    decode_s: float
    decode_depth_s: float
    stream_factor: float = 1.0

    def prefill(self, n_tokens: int, depth: int = 0) -> float:
        """n_tokens behind `depth` others, each attending to all before it."""
        return n_tokens * (self.prefill_s + self.prefill_depth_s * (depth + n_tokens / 2))

    def streamed(self, n_tokens: int, held: int) -> float:
        """n_tokens into the store, each attending to at most `held` before it."""
        n_growing = min(n_tokens, held)
        seconds = self.prefill(n_growing)
        seconds += (n_tokens - n_growing) * (self.prefill_s + self.prefill_depth_s * held)
        return seconds * self.stream_factor

    def decode(self, n_tokens: int, depth: int) -> float:
        """n_tokens one after another behind `depth` others."""
        return n_tokens * (self.decode_s + self.decode_depth_s * (depth + n_tokens / 2))


def fit(points: Sequence[tuple[float, float]], least_share: float = 0.0) -> tuple[float, float | None]:
    """(seconds a token, seconds for each token attended to) from (depth, tokens a second); the latter None
    where the depths are too close to tell. Neither part below zero. least_share: of the former that the
    latter is at least, where the depths span too little to tell it from what steps differ by.

    The median of the slopes between any two points (Theil and Sen): a first step that also warmed up, or one
    beside other work, tilts nothing.
    """
    costs = [(depth, 1 / rate) for depth, rate in points if rate > 0]
    if not costs:
        raise ValueError("no speed was measured")
    pairs = [(one, other) for one, other in combinations(sorted(costs), 2) if one[0] < other[0]]
    mean_x = sum(x for x, _ in costs) / len(costs)
    if sum((x - mean_x) ** 2 for x, _ in costs) < 64.0**2:
        return sum(y for _, y in costs) / len(costs), None
    slope = median((y - y_before) / (x - x_before) for (x_before, y_before), (x, y) in pairs)
    base = median(y - slope * x for x, y in costs)
    is_hidden = least_share * (max(costs)[0] - min(costs)[0]) < _TOLD_SHARE
    least_share = max(least_share if is_hidden else 0.0, _LEAST_SHARE)
    if slope < least_share * base:
        base = median(y / (1 + least_share * x) for x, y in costs)
        slope = least_share * base
    if base <= 0:
        return min(y for _, y in costs) / 2, slope
    return base, slope
