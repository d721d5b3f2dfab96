"""A token bucket: so many tokens a second on average, a few seconds' worth at once. Knows no clock."""

from __future__ import annotations

__all__ = ["TokenBucket"]

BURST_S = 10.0
"""Seconds of the rate that may be taken at once."""


class TokenBucket:
    """Times are seconds of one monotonic clock. Tokens may be taken on credit while there are any: what is
    taken too much is waited for, so that the rate holds over time whatever one request takes.
    """

    def __init__(self, tokens_per_s: float | None, now: float) -> None:
        """tokens_per_s None: no limit."""
        self._rate = tokens_per_s
        self._most = 0.0 if tokens_per_s is None else tokens_per_s * BURST_S
        self._level = self._most
        self._at = now

    def wait_s(self, now: float) -> float:
        """Seconds until something may be taken; 0 now."""
        if self._rate is None:
            return 0.0
        self._fill(now)
        return 0.0 if self._level > 0 else max(-self._level, 1e-9) / self._rate

    def take(self, n_tokens: float, now: float) -> None:
        """Take tokens, or with a negative number give some back."""
        if self._rate is not None:
            self._fill(now)
            self._level = min(self._most, self._level - n_tokens)

    def _fill(self, now: float) -> None:
        if self._rate is not None and now > self._at:
            self._level = min(self._most, self._level + (now - self._at) * self._rate)
            self._at = now
