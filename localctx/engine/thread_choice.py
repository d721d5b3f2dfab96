"""How many threads a step takes, found by trying, where other work wants the same CPUs. Knows no llama.cpp.

Threads of one step wait for each other many times, and every wait is long when one of them has no CPU: a
small model beside a busy server is as quick with fewer. Steps of about one size (within a factor of two) are
compared with each other, by turns. A step of one token always takes all: some kernels add up in another order
by the number of threads, and an answer that is decoded alone stays what it was.
"""

from __future__ import annotations

from statistics import median
from typing import Self

from localctx.engine.limits import usable_cpus
from localctx.engine.options import EngineOptions

__all__ = ["ThreadChoice"]

N_TRIED = 12
"""Steps that each of two numbers gets in a trial."""
FIRST_TRIAL, LONGEST_WAIT = 64, 1024
"""Steps before the first trial of a size, and at most between two; each trial without a change doubles it."""
WORTH = 0.75
"""More threads are taken where they need less than this share of the time, else CPUs are left to others: so
never so few that a step takes more than 1 / WORTH of the time that the best known number needs.
"""


class ThreadChoice:
    """n_threads() before a step, took() after it; by size of steps, from `most` threads down to 1."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: dict[int, _Size] = {}

    @classmethod
    def of(cls, options: EngineOptions) -> Self | None:
        """None where steps take all their threads."""
        return cls(options.n_threads or usable_cpus()) if options.shares_cpus else None

    def n_threads(self, n_tokens: int) -> int:
        """Threads of the coming step."""
        return self._most if n_tokens < 2 else self._size(n_tokens).next

    def took(self, n_tokens: int, seconds: float) -> None:
        """How long the step took with what n_threads() said."""
        if n_tokens >= 2:
            self._size(n_tokens).took(seconds / n_tokens)

    def _size(self, n_tokens: int) -> _Size:
        return self._sizes.setdefault(n_tokens.bit_length(), _Size(self._most))


class _Size:
    """The choice for steps of one size."""

    def __init__(self, most: int) -> None:
        self._most = self._chosen = most
        self._n_left, self._wait = FIRST_TRIAL, FIRST_TRIAL
        self._other = max(1, most // 2)
        self._reaches_far = False
        self._costs = {most: 1.0}  # of numbers that were tried, in times of `most`
        self._seen: tuple[list[float], list[float]] = ([], [])

    @property
    def next(self) -> int:
        return self._other if self._is_trying and self._is_others_turn else self._chosen

    @property
    def _is_trying(self) -> bool:
        return self._n_left <= 0 and self._other != self._chosen

    @property
    def _is_others_turn(self) -> bool:
        return len(self._seen[1]) < len(self._seen[0])

    def took(self, seconds: float) -> None:
        """Of a token."""
        if not self._is_trying:
            self._n_left -= 1
            return
        self._seen[self._is_others_turn].append(seconds)
        if len(self._seen[1]) == N_TRIED:
            self._decide(median(self._seen[0]), median(self._seen[1]))

    def _decide(self, chosen_s: float, other_s: float) -> None:
        is_fewer, tried = self._other < self._chosen, self._other
        cost = self._costs[self._chosen] * other_s / chosen_s if chosen_s else 1.0
        if is_fewer:
            is_better = cost * WORTH <= min(self._costs.values())
        else:
            is_better = other_s < chosen_s * WORTH
            self._reaches_far = not self._reaches_far
        self._keep(tried, cost, is_new=is_better and not is_fewer)
        if is_better:
            self._chosen, self._wait = tried, FIRST_TRIAL
        else:
            self._wait = min(LONGEST_WAIT, 2 * self._wait)
        self._n_left, self._seen = self._wait, ([], [])
        self._other = self._to_try(is_fewer is is_better)

    def _keep(self, tried: int, cost: float, *, is_new: bool) -> None:
        """What the trial says of costs: those of `most` are 1, whatever else they were measured by; a change
        upwards ends older ones.
        """
        if is_new:
            self._costs = {self._most: 1.0}
        self._costs[tried] = cost
        if tried == self._most and cost:
            self._costs = {n: each / cost for n, each in self._costs.items()}

    def _to_try(self, fewer: bool) -> int:
        """What the next trial compares with: the same way on after a change, the other way after none; up to
        twice as many and to all by turns, since small gains can come to much together.
        """
        lower, upper = max(1, self._chosen // 2), min(self._most, 2 * self._chosen)
        if self._reaches_far:
            upper = self._most
        first, second = (lower, upper) if fewer else (upper, lower)
        return first if first != self._chosen else second
