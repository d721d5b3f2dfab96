"""What a model expects of a given answer, token by token, where a session is about to answer; and how far two
such expectations are apart. Knows no documents and no scores.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from localctx.kv import KVContext
from localctx.session.cache import Cache
from localctx.session.decoding import Decoded, decode_one
from localctx.session.events import Event
from localctx.session.placing import Placed, decode_placed
from localctx.session.run import Run
from localctx.session.strategy import round_n_ctx
from localctx.values import Prompt, Request

__all__ = ["LogP", "Reference", "Teacher", "divergence"]

LogP = NDArray[np.float64]
"""Log-probabilities, [n_tokens, n_vocab]."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The answer that is taken for granted: its tokens, and which of them are the right value."""

    tokens: tuple[int, ...] = ()
    value: tuple[int, int] = (0, 0)


@runtime_checkable
class _Scoring(Protocol):
    def score(self, tokens: Sequence[int], on_rows: Callable[[int, NDArray[np.float32]], None]) -> int:
        """Evaluate tokens behind what is held; on_rows gets (index of the first row, logits)."""


@dataclass(slots=True)
class Teacher:
    """A session's Decoding: an answer as ever, and before it what the model expects of a given one.

    log_p: [reference tokens, n_vocab]; None where nothing was asked for, or no context shows logits.
    """

    reference: Sequence[int]
    log_p: LogP | None = None
    n_ctx: int = 0
    shares_beginnings: bool = True

    def request(self, run: Run, request: Request) -> Generator[Event, None, Decoded]:
        """The answer to a text that is not kept as KV."""
        self.n_ctx = min(round_n_ctx(len(request.prompt.tokens) + run.settings.max_tokens), run.limit)
        with closing(run.context(self.n_ctx)) as context:
            return (yield from decode_one(context, request, run.timings, run.started, run.listen))

    def placed(self, cache: Cache, placed: Placed) -> Generator[Event, None, Decoded]:
        """The answer behind kept KV."""
        n_needed = placed.n_tokens + len(cache.frame.after) + cache.run.settings.max_tokens
        self.n_ctx = min(round_n_ctx(n_needed), cache.run.limit)
        return (yield from decode_placed(cache, placed, self.n_ctx, self._watch))

    def _watch(self, context: KVContext, prompt: Prompt) -> None:
        """Take the distributions behind the prompt, the reference being what was said so far."""
        if not self.reference or not isinstance(context, _Scoring):
            return
        lead = (*prompt.tokens[len(context.held_tokens) :], *prompt.closing)
        tokens = (*lead, *self.reference[:-1])
        rows: list[NDArray[np.float32]] = []
        if context.score(tokens, lambda _, logits: rows.append(logits)) == len(tokens):
            self.log_p = _log_softmax(np.concatenate(rows)[len(lead) - 1 :])


def _log_softmax(logits: NDArray[np.float32]) -> LogP:
    rows = logits.astype(np.float64)
    rows -= rows.max(axis=1, keepdims=True)
    found: LogP = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
    return found


def divergence(base: LogP, other: LogP) -> LogP:
    """KL(base ‖ other) of each row, in nats: sum of p · (log p - log q)."""
    found: LogP = (np.exp(base) * (base - other)).sum(axis=1)
    return np.maximum(found, 0.0)
