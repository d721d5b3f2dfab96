"""A document's tokens under one policy: the runs that its KV comes in, and their ids. Holds no KV."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence

from localctx.kv import KVSpace, PrefillPolicy
from localctx.store import run_ids, run_spans

__all__ = ["TokenStream"]


class TokenStream:
    """`spans`: tokens [first, end) of each run · `ids`: the runs' ids, in the same order."""

    def __init__(
        self, tokens: array[int], space: KVSpace, policy: PrefillPolicy, units: Sequence[int] = ()
    ) -> None:
        """`units`: where blocks begin, in tokens; only the policy `independent` looks at them."""
        self.tokens = tokens
        self.space = space
        self.policy = policy
        self.units = tuple(units) if policy.kind == "independent" else ()
        self.spans = run_spans(len(tokens), policy, units)
        self.ids = run_ids(space, policy, tokens, units)
        self._starts = [first for first, _ in self.spans]

    @property
    def n_tokens(self) -> int:
        """Tokens of the stream."""
        return len(self.tokens)

    @property
    def n_runs(self) -> int:
        """Runs of the stream."""
        return len(self.ids)

    def run_at(self, token: int) -> int:
        """The number of the run that holds the token."""
        return bisect_right(self._starts, token) - 1

    def runs_of(self, first: int, end: int) -> range:
        """The numbers of the runs that hold tokens [first, end)."""
        return range(self.run_at(first), self.run_at(end - 1) + 1) if end > first else range(0)

    def n_tokens_of(self, runs: Sequence[int]) -> int:
        """Tokens of the runs with these numbers."""
        return sum(self.spans[run][1] - self.spans[run][0] for run in runs)
