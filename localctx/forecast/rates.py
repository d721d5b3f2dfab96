"""Seconds of prefill and decoding from a few costs: pure arithmetic. Knows no machine and no model file.

A token costs a part of its own and a part for each token that it attends to; measured on an H200 and on CPUs
this is true within some per cent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Rates", "fit"]

_LEAST_SHARE = 1e-3
"""Of the first token's cost, what attending to a thousand more costs at least: nothing is free."""


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


def fit(points: Sequence[tuple[float, float]]) -> tuple[float, float | None]:
    """(seconds a token, seconds for each token attended to) from (depth, tokens a second); the latter None
    where the depths are too close to tell. Points of equal weight, neither part below zero.
    """
    costs = [(depth, 1 / rate) for depth, rate in points if rate > 0]
    if not costs:
        raise ValueError("no speed was measured")
    mean_x, mean_y = (sum(one[place] for one in costs) / len(costs) for place in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in costs)
    if spread < 64.0**2:
        return mean_y, None
    slope = sum((x - mean_x) * (y - mean_y) for x, y in costs) / spread
    slope = max(slope, min(y for _, y in costs) * _LEAST_SHARE / 1000)
    base = mean_y - slope * mean_x
    if base <= 0:
        return min(y for _, y in costs) / 2, slope
    return base, slope
