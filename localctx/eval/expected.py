"""What a model expects of a given answer, token by token, where a session is about to answer.

Knows no documents and no scores; predictions.py compares what two of them expect.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from localctx.kv import KVContext
from localctx.session.cache import Cache
from localctx.session.decoding import Decoded, decode_one
from localctx.session.events import Event
from localctx.session.placing import Placed, decode_placed
from localctx.session.run import Run
from localctx.session.strategy import round_n_ctx
from localctx.values import Prompt, Request
from localctx.verify.predictions import Rows

__all__ = ["GivenAnswer", "Teacher"]


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """The answer that is taken for granted: its tokens, and which of them are the right value."""

    tokens: tuple[int, ...] = ()
    value: tuple[int, int] = (0, 0)


@runtime_checkable
class _Scoring(Protocol):
    def score(self, tokens: Sequence[int], on_rows: Callable[[int, Rows], None]) -> int:
        """Evaluate tokens behind what is held; on_rows gets (index of the first row, logits)."""


@dataclass(slots=True)
class Teacher:
    """A session's Decoding: an answer as ever, and before it what the model expects of a given one.

    logits: [reference tokens, n_vocab]; None where nothing was asked for, or no context shows logits.
    """

    reference: Sequence[int]
    logits: Rows | None = None
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
        rows: list[Rows] = []
        if context.score(tokens, lambda _, logits: rows.append(logits)) == len(tokens):
            self.logits = np.concatenate(rows)[len(lead) - 1 :]
