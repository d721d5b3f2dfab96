"""Predictions of the same tokens compared row by row: KL divergence, top-1 agreement, log-probability.

Rows are worked on in several threads; what comes out does not depend on their number. Knows no contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["Differences", "Reference", "Rows", "log_softmax"]

BLOCK_ROWS = 16
"""Rows that one thread works on at a time: they stay in a core's cache."""
MAX_THREADS = 16
Rows = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """Of each row: KL divergence of the exact prediction from the other one, whether both name the same token
    first, and by how much the token's log-probability is lower, in nats.
    """

    kl: NDArray[np.float64]
    agrees: NDArray[np.bool_]
    nll_rise: NDArray[np.float64]


def log_softmax(logits: Rows) -> Rows:
    """Log-probabilities of logits [n_rows, n_vocab], which are overwritten."""

    def turn(rows: Rows) -> None:
        rows -= rows.max(axis=1, keepdims=True)
        rows -= np.log(np.exp(rows).sum(axis=1, keepdims=True))

    list(_threads().map(turn, _blocks(logits)))
    return logits


class Reference:
    """Exact log-probabilities, [n_rows, n_vocab]; row n predicts token n."""

    def __init__(self, log_p: Rows, tokens: Sequence[int]) -> None:
        """`tokens`: one a row, which the rows predict."""
        self.tokens = np.asarray(tokens, np.int64)  # of no tokens an index too
        self.log_p = log_p
        self._p = np.exp(log_p)
        self._best = log_p.argmax(axis=1)

    @property
    def nll(self) -> NDArray[np.float64]:
        """-log p of each token."""
        at = np.arange(len(self.tokens))
        result: NDArray[np.float64] = -self.log_p[at, self.tokens].astype(np.float64)
        return result

    def against(self, first: int, logits: Rows) -> Differences:
        """Logits of the rows from `first` on, which are overwritten, beside the exact predictions; those
        behind the last row are left out.
        """
        n = max(0, min(len(logits), len(self.tokens) - first))
        ours = log_softmax(logits[:n])
        agrees = np.empty(n, np.bool_)
        kl, rise = np.empty(n, np.float64), np.empty(n, np.float64)

        def take(start: int) -> None:
            end = min(start + BLOCK_ROWS, n)
            here, rows = slice(start, end), slice(first + start, first + end)
            at = np.arange(end - start)
            agrees[here] = ours[here].argmax(axis=1) == self._best[rows]
            falls = ours[here]
            falls -= self.log_p[rows]  # of every token's log-probability, negative
            rise[here] = -falls[at, self.tokens[rows]]
            kl[here] = -np.einsum("ij,ij->i", self._p[rows], falls)

        list(_threads().map(take, range(0, n, BLOCK_ROWS)))
        return Differences(kl, agrees, rise)


def _blocks(rows: Rows) -> list[Rows]:
    return [rows[start : start + BLOCK_ROWS] for start in range(0, len(rows), BLOCK_ROWS)]


@cache
def _threads() -> ThreadPoolExecutor:
    from localctx.engine.limits import usable_cpus

    return ThreadPoolExecutor(min(MAX_THREADS, usable_cpus()), thread_name_prefix="predictions")
