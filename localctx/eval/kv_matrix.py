"""Every codec, prefill window and way of attending over the same tokens of prose, beside exact f16 attention.

One stretch of text at a time: memory does not grow with their number. Knows a model, no documents, no store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from localctx import _native
from localctx.engine.query_capture import QueryModel
from localctx.eval.kv_arms import Arm, Attended, Wanted, arms_of, attended
from localctx.eval.kv_mass import Hits, asked_of, hits_of
from localctx.kv import RUN_TOKENS, KVChunk, KVContext, KVPart, PrefillPolicy
from localctx.selection.routing import LexicalRouter
from localctx.verify.compare import SHORT_CONTEXT, ScoringContext, Span, check_done
from localctx.verify.model import GateModel
from localctx.verify.predictions import Reference, Rows, log_softmax

__all__ = [
    "Baseline",
    "Found",
    "KVEvalModel",
    "decode_seconds",
    "measured",
    "placed",
    "prefix_runs",
    "runs_of",
]

N_TIMED, N_STEPS = 2, 4
"""Stretches behind which tokens are decoded one by one to see how long one takes, and how many tokens."""
N_HIT = 8
"""Stretches in which attention is looked at."""
EXACT = PrefillPolicy("exact", 0)


@runtime_checkable
class KVEvalModel(GateModel, QueryModel, Protocol):
    """A model whose KV moves, and that shows its queries."""


@dataclass(slots=True)
class Found:
    """What one arm did, token by token over all stretches; nll_rise in nats · n_bytes, n_stored: of the
    document's KV, encoded · restore_s, decode_s: a token each.
    """

    arm: Arm
    n_bytes: int = 0
    n_stored: int = 0
    n_attended: int = 0
    n_evaluated: int = 0
    kl: list[NDArray[np.float64]] = field(default_factory=list)
    agrees: list[NDArray[np.bool_]] = field(default_factory=list)
    nll_rise: list[NDArray[np.float64]] = field(default_factory=list)
    restore_s: list[float] = field(default_factory=list)
    decode_s: list[float] = field(default_factory=list)
    hits: list[Hits] = field(default_factory=list)


@dataclass(slots=True)
class Baseline:
    """Of every token: -log p behind all of the context, evaluated exactly, and behind its end alone.
    f16_bytes: of a token's KV as the cache has it.
    """

    f16_bytes: int = 0
    exact: list[NDArray[np.float64]] = field(default_factory=list)
    short: list[NDArray[np.float64]] = field(default_factory=list)


def measured(
    context: ScoringContext,
    model: KVEvalModel,
    prefix: Sequence[int],
    spans: Sequence[Span],
    wanted: Wanted,
    tell: Callable[[str], None],
) -> tuple[Baseline, list[Found]]:
    """All arms over all spans. The context holds prefix, context and target at once. Raises Interrupted."""
    baseline, found = Baseline(), [Found(arm) for arm in arms_of(wanted)]
    before = prefix_runs(context, prefix)
    with _contexts(context, model, len(prefix), wanted.windows) as contexts:
        for number, span in enumerate(spans):
            tell(f"stretch {number + 1} of {len(spans)}")
            exact = _reference(context, [*prefix, *span.context], span.target)
            short = [*prefix, *span.context[-SHORT_CONTEXT:]]
            baseline.exact.append(exact.nll)
            baseline.short.append(_reference(context, short, span.target).nll)
            chosen = {one.arm: _attended(one.arm, span, wanted, number) for one in found}
            if number < N_HIT:
                _add_hits(context, model, prefix, before, span, found, chosen)
            for one, runs in _stored(contexts, prefix, span, found):
                _use(context, (prefix, before), span, runs, chosen[one.arm], one)
                _score(context, span, exact, one)
                if number < N_TIMED:
                    one.decode_s += decode_seconds(context, span.target[:N_STEPS])
    return baseline, found


def _reference(context: ScoringContext, tokens: Sequence[int], target: Sequence[int]) -> Reference:
    """Predictions of each target token but the first, all tokens evaluated exactly."""
    rows: list[Rows] = []
    n_evaluated = context.place(tokens, [])
    n_scored = context.score(target, lambda _, logits: rows.append(log_softmax(logits)))
    check_done(n_evaluated + n_scored, len(tokens) + len(target))
    return Reference(np.concatenate(rows)[:-1], target[1:])


def _attended(arm: Arm, span: Span, wanted: Wanted, number: int) -> Attended:
    router = LexicalRouter(span.context)
    seed = f"random {wanted.seed} {number}"
    return attended(arm.mode, len(span.context) // RUN_TOKENS, arm.budget, router, seed)


def _stored(
    contexts: dict[int | None, KVContext], prefix: Sequence[int], span: Span, found: Sequence[Found]
) -> Iterator[tuple[Found, list[_native.Run] | None]]:
    """Every arm with the span's runs as it keeps them; None where it takes none. Arms of one window share a
    prefill, those of one codec the encoding.
    """
    for codec, group in groupby(found, key=lambda one: one.arm.codec is None):
        if codec:
            yield from ((one, None) for one in group)
            continue
        for window, of_window in groupby(group, key=lambda one: one.arm.window):
            chunks = chunks_of(contexts[window], prefix, span.context, window)
            for name, of_codec in groupby(of_window, key=lambda one: one.arm.codec):
                data = list(encoded(chunks, name or "f16"))
                runs = [_native.Run(one) for one in data]
                for one in of_codec:
                    one.n_bytes += sum(map(len, data))
                    one.n_stored += len(span.context)
                    yield one, runs


def chunks_of(
    context: KVContext, prefix: Sequence[int], tokens: Sequence[int], window: int | None = None
) -> list[KVChunk]:
    """The tokens' KV, prefilled behind the prefix. Raises Interrupted."""
    chunks: list[KVChunk] = []
    policy = EXACT if window is None else PrefillPolicy("window", window)
    context.stream(prefix, tokens, policy, chunks.append)
    check_done(sum(chunk.n_tokens for chunk in chunks), len(tokens))
    return chunks


@contextmanager
def _contexts(
    context: ScoringContext, model: KVEvalModel, n_prefix: int, windows: Sequence[int | None]
) -> Iterator[dict[int | None, KVContext]]:
    """Where each window's prefill is done: with a window in a context that has room for it and one run more.
    Tokens that are evaluated together see one another; a larger batch would make the window wider.
    """
    with ExitStack() as stack:
        contexts: dict[int | None, KVContext] = {None: context}
        for window in windows:
            if window is not None:
                own = closing(model.open_kv_context(n_prefix + window + RUN_TOKENS))
                contexts[window] = stack.enter_context(own)
        yield contexts


def encoded(chunks: Sequence[KVChunk], codec: str) -> Iterator[bytes]:
    """The chunks' runs, in order."""
    for chunk in chunks:
        for first in range(0, chunk.n_tokens, RUN_TOKENS):
            n_tokens = min(RUN_TOKENS, chunk.n_tokens - first)
            yield _native.encode(chunk.state, first, n_tokens, chunk.rope, codec)


def runs_of(chunks: Sequence[KVChunk], codec: str = "f16") -> list[_native.Run]:
    """The same, to be read."""
    return [_native.Run(data) for data in encoded(chunks, codec)]


def prefix_runs(context: KVContext, prefix: Sequence[int]) -> list[_native.Run]:
    """The prefix's KV, in f16."""
    return runs_of(chunks_of(context, (), prefix)) if prefix else []


def placed(
    context: ScoringContext,
    before: tuple[Sequence[int], Sequence[_native.Run]],
    pieces: Sequence[tuple[Sequence[int], _native.Run | None]],
) -> tuple[int, float]:
    """Have the context hold the prefix (its tokens and runs) and the pieces behind it, each put back from its
    run, or evaluated where there is none. The number of tokens that were evaluated, and seconds.
    """
    held, parts = list(before[0]), list[KVPart]()
    position = 0
    for run in before[1]:
        parts.append(KVPart(run, 0, run.n_tokens, position))
        position += run.n_tokens
    for tokens, source in pieces:
        if source is not None:
            parts.append(KVPart(source, 0, len(tokens), len(held)))
        held += tokens
    started = time.perf_counter()
    n_evaluated = context.place(held, parts)
    check_done(n_evaluated + sum(part.n_tokens for part in parts), len(held))
    return n_evaluated, time.perf_counter() - started


def _use(
    context: ScoringContext,
    before: tuple[Sequence[int], Sequence[_native.Run]],
    span: Span,
    runs: Sequence[_native.Run] | None,
    chosen: Attended,
    one: Found,
) -> None:
    """Put together what an arm attends to."""
    pieces = [
        (
            span.context[number * RUN_TOKENS : (number + 1) * RUN_TOKENS],
            None if runs is None or number in chosen.again else runs[number],
        )
        for number in chosen.runs
    ]
    n_evaluated, seconds = placed(context, before, pieces)
    n_attended = sum(len(tokens) for tokens, _ in pieces)
    one.n_attended += n_attended
    one.n_evaluated += n_evaluated
    one.restore_s.append(seconds / max(1, n_attended))


def _score(context: ScoringContext, span: Span, exact: Reference, one: Found) -> None:
    """Predict the target behind what is placed, and keep what differs from the exact predictions."""

    def take(first: int, logits: Rows) -> None:
        differences = exact.against(first, logits)
        one.kl.append(differences.kl)
        one.agrees.append(differences.agrees)
        one.nll_rise.append(differences.nll_rise)

    check_done(context.score(span.target, take), len(span.target))


def decode_seconds(context: ScoringContext, tokens: Sequence[int]) -> list[float]:
    """Seconds to evaluate each of the tokens, logits included, behind what is placed."""
    found = []
    for token in tokens:
        started = time.perf_counter()
        check_done(context.score([token], lambda first, logits: None), 1)
        found.append(time.perf_counter() - started)
    return found


def _add_hits(
    context: ScoringContext,
    model: KVEvalModel,
    prefix: Sequence[int],
    before: Sequence[_native.Run],
    span: Span,
    found: Sequence[Found],
    chosen: dict[Arm, Attended],
) -> None:
    """What every arm's cells have of the exact model's attention."""
    document = runs_of(chunks_of(context, prefix, span.context))
    tokens = [*prefix, *span.context, *span.target[:-1]]
    asked = asked_of(model, tokens, len(span.target) - 1)
    sets = list(dict.fromkeys(one.runs for one in chosen.values()))
    hits = dict(zip(sets, hits_of(asked, context.rope_table, before, document, sets), strict=True))
    for one in found:
        one.hits.append(hits[chosen[one.arm].runs])
