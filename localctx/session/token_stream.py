"""A document's tokens under one policy: the runs that its KV comes in, and their ids. Holds no KV."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence

from xxhash import xxh3_128_digest

from localctx.kv import RUN_TOKENS, KVSpace, PrefillPolicy
from localctx.store import run_ids, run_spans

__all__ = ["TokenStream", "TokenStreams"]

REMEMBERED = 16


class TokenStream:
    """`spans`: tokens [first, end) of each run · `ids`: the runs' ids, in the same order · `offset`: where
    the cells of the policy `lazy` begin, below its window. Streams of several offsets differ in their ids.
    """

    def __init__(
        self,
        tokens: array[int],
        space: KVSpace,
        policy: PrefillPolicy,
        units: Sequence[int] = (),
        offset: int = 0,
    ) -> None:
        """`units`: where blocks begin, in tokens; only the policy `independent` looks at them."""
        self.tokens = tokens
        self.space = space
        self.policy = policy
        self.units = tuple(units) if policy.kind == "independent" else ()
        self.spans = run_spans(len(tokens), policy, units)
        self.ids = run_ids(space, policy, tokens, units, offset)
        self.offset = offset
        self._starts = [first for first, _ in self.spans]

    @property
    def n_tokens(self) -> int:
        """Tokens of the stream."""
        return len(self.tokens)

    @property
    def n_runs(self) -> int:
        """Runs of the stream."""
        return len(self.ids)

    @property
    def first_ordinal(self) -> int:
        """The number of the first run among the document's in the store: each offset has its own."""
        return self.offset // RUN_TOKENS * self.n_runs

    @property
    def named_ids(self) -> Sequence[bytes]:
        """The ids that the document is entered with: none for `lazy`, of which few will ever be there."""
        return () if self.policy.kind == "lazy" else self.ids

    def run_at(self, token: int) -> int:
        """The number of the run that holds the token."""
        return bisect_right(self._starts, token) - 1

    def runs_of(self, first: int, end: int) -> range:
        """The numbers of the runs that hold tokens [first, end)."""
        return range(self.run_at(first), self.run_at(end - 1) + 1) if end > first else range(0)

    def cell_of(self, token: int) -> int:
        """The first token of the lazy cell that holds the token: the cell before it is its left context."""
        window = self.policy.window
        begin = self.offset if token >= self.offset + window else 0
        return begin + (token - begin) // window * window

    def n_tokens_of(self, runs: Sequence[int]) -> int:
        """Tokens of the runs with these numbers."""
        return sum(self.spans[run][1] - self.spans[run][0] for run in runs)


class TokenStreams:
    """Token streams by what they are made of: hashing a million tokens anew for each question takes longer
    than looking up what is stored. The last few are remembered.
    """

    def __init__(self) -> None:
        self._streams: dict[tuple[object, ...], TokenStream] = {}

    def get(
        self,
        tokens: array[int],
        space: KVSpace,
        policy: PrefillPolicy,
        units: Sequence[int] = (),
        offset: int = 0,
    ) -> TokenStream:
        """TokenStream(…) of these."""
        cuts = tuple(units) if policy.kind == "independent" else ()
        key = (xxh3_128_digest(tokens), space, policy, cuts, offset)
        if key not in self._streams:
            self._streams[key] = TokenStream(tokens, space, policy, units, offset)
            while len(self._streams) > REMEMBERED:
                del self._streams[next(iter(self._streams))]
        return self._streams[key]
