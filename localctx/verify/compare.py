"""The same target tokens behind exact KV and behind stored KV: KL divergence, top-1 agreement, perplexity.

Paired: every way of keeping the context predicts the same tokens, so that their texts do not matter. Knows a
context and token ids, no documents and no store.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from localctx import _native
from localctx.errors import Interrupted
from localctx.kv import RUN_TOKENS, KVChunk, KVContext, KVPart, PrefillPolicy
from localctx.verify.predictions import Reference, Rows, log_softmax

__all__ = ["Figures", "ScoringContext", "Setting", "Span", "check_done", "compare", "spans_of"]

NEEDY_SHARE = 0.1
"""The share of tokens that lose most without the context: those that need it."""
SHORT_CONTEXT = 128
"""Tokens of context left where there is "none"."""


class ScoringContext(KVContext, Protocol):
    """A context that hands out logits."""

    def score(self, tokens: Sequence[int], on_rows: Callable[[int, Rows], None]) -> int:
        """Evaluate tokens behind what is placed; on_rows gets (index of the first row, logits)."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of prose: `context` is kept in the ways compared, `target` is predicted."""

    context: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One way of keeping the context: local tokens during prefill (None: all), and the codec."""

    name: str
    codec: str = "f16"
    window: int | None = None


@dataclass(slots=True)
class Figures:
    """What one setting did to the predictions, summed over tokens; nll in nats."""

    setting: Setting
    n_bytes: int = 0
    n_stored: int = 0
    kl: list[NDArray[np.float64]] = field(default_factory=list)
    agrees: list[NDArray[np.bool_]] = field(default_factory=list)
    nll_rise: list[NDArray[np.float64]] = field(default_factory=list)
    is_needy: list[NDArray[np.bool_]] = field(default_factory=list)

    def add(self, kl: NDArray[Any], agrees: NDArray[Any], nll_rise: NDArray[Any]) -> None:
        """Take one batch of tokens."""
        self.kl.append(kl)
        self.agrees.append(agrees)
        self.nll_rise.append(nll_rise)

    def as_json(self) -> dict[str, Any]:
        """Means over all tokens and over those that need the context."""
        kl, agrees, rise = (np.concatenate(values) for values in (self.kl, self.agrees, self.nll_rise))
        needy = np.concatenate(self.is_needy)
        error = float(rise.std(ddof=1) / math.sqrt(len(rise))) if len(rise) > 1 else 0.0
        return {
            "name": self.setting.name,
            "codec": self.setting.codec,
            "window": self.setting.window,
            "bytes_per_token": round(self.n_bytes / max(1, self.n_stored), 1),
            "n_tokens": len(kl),
            "kl": float(kl.mean()),
            "top1": float(agrees.mean()),
            "perplexity_rise": math.expm1(float(rise.mean())),
            "perplexity_rise_error": error,
            "needy": {
                "n_tokens": int(needy.sum()),
                "kl": float(kl[needy].mean()) if needy.any() else 0.0,
                "top1": float(agrees[needy].mean()) if needy.any() else 1.0,
                "perplexity_rise": math.expm1(float(rise[needy].mean())) if needy.any() else 0.0,
            },
        }


def check_done(n_tokens: int, n_wanted: int) -> None:
    """Raises Interrupted for fewer tokens than there were to be."""
    if n_tokens < n_wanted:
        raise Interrupted("interrupted")


def spans_of(
    tokens: Sequence[int], n_context: int, n_target: int, n_spans: int | None = None
) -> Iterator[Span]:
    """Consecutive spans of a text; at most n_spans of them."""
    size = n_context + n_target
    n_all = len(tokens) // size
    for number in range(n_all if n_spans is None else min(n_spans, n_all)):
        part = tuple(tokens[number * size : (number + 1) * size])
        yield Span(part[:n_context], part[n_context:])


def compare(
    context: ScoringContext,
    prefix: Sequence[int],
    spans: Sequence[Span],
    settings: Sequence[Setting],
    on_span: Callable[[int, int], None] = lambda done, total: None,
    narrow: Callable[[int], KVContext] | None = None,
) -> list[Figures]:
    """Every setting's figures over all spans. The context holds prefix, context and target at once.

    narrow: the context that a window is prefilled in. A token attends to the window before its step and to
    all of the step before it, so that in a large context, of long steps, a short window is none. Neighbouring
    settings of one window share its prefill.
    """
    figures = [Figures(setting) for setting in settings]
    for number, span in enumerate(spans):
        exact = _reference(context, [*prefix, *span.context], span.target)
        short = [*prefix, *span.context[-SHORT_CONTEXT:]]
        needy = _needy(context, short, span.target, exact)
        prefix_runs = _encoded(_chunks(context, (), prefix, None), "f16")
        for window, group in groupby(figures, key=lambda found: found.setting.window):
            prefilled_in = context if window is None or narrow is None else narrow(window)
            chunks = _chunks(prefilled_in, prefix, span.context, window)
            for found in group:
                runs = _encoded(chunks, found.setting.codec)
                found.n_bytes += sum(len(data) for data in runs)
                found.n_stored += len(span.context)
                _place(context, [*prefix, *span.context], [*prefix_runs, *runs])
                _score(context, span.target, exact, found)
                found.is_needy.append(needy)
        on_span(number + 1, len(spans))
    return figures


def _chunks(
    context: KVContext, prefix: Sequence[int], tokens: Sequence[int], window: int | None
) -> list[KVChunk]:
    """The tokens' KV, prefilled behind the prefix."""
    policy = PrefillPolicy("exact") if window is None else PrefillPolicy("window", window)
    chunks: list[KVChunk] = []
    context.stream(prefix, tokens, policy, chunks.append)
    return chunks


def _encoded(chunks: Sequence[KVChunk], codec: str) -> list[bytes]:
    """The chunks' runs, in order."""
    return [
        _native.encode(chunk.state, first, min(RUN_TOKENS, chunk.n_tokens - first), chunk.rope, codec)
        for chunk in chunks
        for first in range(0, chunk.n_tokens, RUN_TOKENS)
    ]


def _place(context: KVContext, tokens: Sequence[int], runs: Sequence[bytes]) -> None:
    """Put all tokens back from their runs, in order."""
    parts, position = [], 0
    for data in runs:
        run = _native.Run(data)
        parts.append(KVPart(run, 0, run.n_tokens, position))
        position += run.n_tokens
    n_evaluated = context.place(tokens, parts)
    if n_evaluated:
        raise ValueError(f"{n_evaluated} tokens were not among the runs")


def _reference(context: ScoringContext, tokens: Sequence[int], target: Sequence[int]) -> Reference:
    """Predictions of each target token but the first, all tokens evaluated exactly."""
    rows: list[Rows] = []
    context.place(tokens, [])
    check_done(context.score(target, lambda _, logits: rows.append(log_softmax(logits))), len(target))
    return Reference(np.concatenate(rows)[:-1], target[1:])


def _needy(
    context: ScoringContext, tokens: Sequence[int], target: Sequence[int], exact: Reference
) -> NDArray[np.bool_]:
    """The target tokens whose probability falls most when only the nearest context is left."""
    falls = _reference(context, tokens, target).nll - exact.nll
    n_needy = max(1, round(NEEDY_SHARE * len(falls)))
    needy = np.zeros(len(falls), bool)
    needy[np.argsort(-falls, kind="stable")[:n_needy]] = True
    return needy


def _score(context: ScoringContext, target: Sequence[int], exact: Reference, found: Figures) -> None:
    """Predict the target behind what is placed, and add what differs from the exact predictions."""

    def take(first: int, logits: Rows) -> None:
        one = exact.against(first, logits)
        found.add(one.kl, one.agrees, one.nll_rise)

    check_done(context.score(target, take), len(target))
