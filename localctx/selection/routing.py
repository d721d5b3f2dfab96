"""Which earlier runs of a token stream are put back while a chunk of it is prefilled. Pure; knows no KV.

What is chosen depends on the tokens up to the chunk's end alone, so that a stream that goes on where it was
stopped, or that grows, chooses as one that was prefilled at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from localctx.kv import MAX_ANCHORS, RUN_TOKENS, PrefillPolicy

__all__ = ["LexicalRouter", "Router", "anchor_runs", "recalled_runs"]

SATURATION = 1.2
"""BM25's k1. Runs are of one length."""


class Router(Protocol):
    """Scores runs against a chunk."""

    def scores(self, start: int, end: int, n_runs: int) -> NDArray[np.float64]:
        """How near each of the first n_runs is to tokens [start, end), which come behind them, [n_runs];
        0: no evidence. Chunks come in order.
        """


class LexicalRouter:
    """BM25 over token ids: a token that few of the runs so far hold says most.

    Holds 12 bytes for each different token of each run.
    """

    name = "lexical"

    def __init__(self, tokens: Sequence[int]) -> None:
        """`tokens`: of the whole stream; what is behind a chunk changes nothing."""
        self._tokens = np.asarray(tokens, np.int32)
        n_runs = -(-len(self._tokens) // RUN_TOKENS)
        found = [self._counted(run) for run in range(n_runs)]
        self._edges = np.cumsum([0, *(len(ids) for ids, _ in found)])
        self._runs = np.repeat(np.arange(n_runs, dtype=np.int32), np.diff(self._edges))
        self._ids = np.concatenate([ids for ids, _ in found]) if found else np.empty(0, np.int32)
        counts = np.concatenate([n for _, n in found]) if found else np.empty(0, np.int64)
        self._weights = (counts / (counts + SATURATION)).astype(np.float32)
        self._n_with = np.zeros(int(self._tokens.max(initial=0)) + 1, np.int64)
        self._n_known = 0

    def _counted(self, run: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        of_run = self._tokens[run * RUN_TOKENS : (run + 1) * RUN_TOKENS]
        ids, counts = np.unique(of_run, return_counts=True)
        return ids, counts.astype(np.int64)

    def scores(self, start: int, end: int, n_runs: int) -> NDArray[np.float64]:
        """See Router."""
        self._know(n_runs)
        asked = np.unique(self._tokens[start:end])
        n_with = self._n_with[asked]
        rarity = np.zeros(len(self._n_with))
        rarity[asked] = np.where(n_with, np.log1p((n_runs - n_with + 0.5) / (n_with + 0.5)), 0.0)
        last = self._edges[n_runs]
        points = self._weights[:last] * rarity[self._ids[:last]]
        scores: NDArray[np.float64] = np.bincount(self._runs[:last], points, n_runs).astype(np.float64)
        return scores

    def _know(self, n_runs: int) -> None:
        """In how many of the first n_runs each token is."""
        if n_runs < self._n_known:
            self._n_with[:] = 0
            self._n_known = 0
        more = self._ids[self._edges[self._n_known] : self._edges[n_runs]]
        self._n_with += np.bincount(more, minlength=len(self._n_with))
        self._n_known = n_runs


def anchor_runs(stride: int, first: int, end: int) -> list[int]:
    """Runs of [first, end) at multiples of `stride` tokens, which is doubled while they are more than
    MAX_ANCHORS.
    """
    if not stride:
        return []
    step = stride // RUN_TOKENS
    while len(found := range(-(-first // step) * step, end, step)) > MAX_ANCHORS:
        step *= 2
    return list(found)


def recalled_runs(
    policy: PrefillPolicy, router: Router | None, first: int, keep_from: int, start: int, end: int
) -> list[int]:
    """The runs of tokens [first, keep_from) that are put back for [start, end), in order.

    They are the anchors, and of the others the `routed` that the router scores highest, the later one of
    equals, never one without evidence.
    """
    first_run, end_run = first // RUN_TOKENS, keep_from // RUN_TOKENS
    chosen = anchor_runs(policy.stride, first_run, end_run)
    if router is not None and policy.routed:
        scores = router.scores(start, end, end_run)
        scores[:first_run] = 0.0
        scores[chosen] = 0.0
        order = np.lexsort((-np.arange(end_run), -scores))[: policy.routed]
        chosen += [int(run) for run in order if scores[run] > 0]
    return sorted(chosen)
