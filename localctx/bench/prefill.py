"""Streaming prefill into a store, everything included, beside dense prefill of the same tokens by llama.cpp.

Streamed: chunk by chunk behind the window, exported, un-rotated, encoded and written to a new store, until it
is committed. Dense: the same prefix and tokens evaluated in one plain context that holds them all. Neither
counts opening the context.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from localctx.bench.calibrate import calibration, decode_points, depth_points, n_unfinished
from localctx.bench.dense_fit import DenseFit
from localctx.bench.inputs import check_length, document_of, kv_model, temporary_store
from localctx.bench.machine import machine
from localctx.bench.meters import Meter, Taken, taken_json
from localctx.bench.observed import ObservedContext, rate_between
from localctx.bench.repeats import Spread, check_repeats, in_turns, ratio
from localctx.document import Document
from localctx.errors import Interrupted, NotComposable
from localctx.forecast.calibration import Calibration
from localctx.kv import KVContext, PrefillPolicy
from localctx.session.cache import Cache, KVModel, opened_cache
from localctx.session.events import ignore_progress
from localctx.session.opening import read_all
from localctx.session.prefill import ensure_prefix, prefill_rest
from localctx.session.prompts import question_task
from localctx.session.run import start
from localctx.session.strategy import round_n_ctx
from localctx.settings import Settings
from localctx.store import StoreUnusable
from localctx.values import Model, ModelInfo, Prompt, Request, Sampling

__all__ = ["Dense", "Report", "Streamed", "measure"]

WARM_TOKENS = 64

Marks = Sequence[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Streamed:
    """One prefill into a store. not_overlapped_s: waiting for the encoder and for the last commit."""

    seconds: float
    not_overlapped_s: float
    marks: Marks
    n_tokens: int
    n_evaluated: int
    n_rebased: int
    size_bytes: int
    taken: Taken
    policy: PrefillPolicy
    codec: str
    n_ctx: int


@dataclass(frozen=True, slots=True)
class Dense:
    """One evaluation of all tokens in a plain context. decode: (depth, tokens a second) behind it."""

    seconds: float
    marks: Marks
    n_evaluated: int
    taken: Taken
    n_ctx: int
    decode: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """All repeats. `no_dense`: why there is no baseline, in words · calibration: the speeds that plans are
    made from; None where they cannot be.
    """

    model: ModelInfo
    machine: dict[str, Any]
    streamed: tuple[Streamed, ...]
    dense: tuple[Dense, ...]
    no_dense: str | None
    calibration: Calibration | None = None

    @property
    def rates(self) -> tuple[Spread, Spread | None]:
        """Tokens evaluated a second: streamed, dense."""
        streamed, dense = (
            [one.n_evaluated / one.seconds for one in way] for way in (self.streamed, self.dense)
        )
        return Spread.of(streamed), Spread.of(dense) if dense else None

    @property
    def lines(self) -> list[str]:
        """The result for a person."""
        one, (rate, dense_rate) = self.streamed[0], self.rates
        first, last = (_quarter(self.streamed, place).median for place in (0, 3))
        waited = Spread.of([run.not_overlapped_s for run in self.streamed])
        share = one.size_bytes / one.n_tokens / self.model.kv_bytes_per_token
        peak = max(run.taken.peak_memory_bytes for run in self.streamed)
        lines = [
            f"streamed: {one.n_tokens:,} tokens at {rate.shown(1)} tokens/s, policy {one.policy.kind}, "
            f"window {one.policy.window:,}, context {one.n_ctx:,}, re-based {one.n_rebased} times, "
            f"first quarter {first:,.1f}, last {last:,.1f} tokens/s",
            f"stored: {one.size_bytes / one.n_tokens:,.0f} bytes/token as {one.codec} ({share:.1%} of f16), "
            f"{waited.shown()} s of encoding and writing not overlapped, peak memory {peak / 1e6:,.0f} MB",
        ]
        if dense_rate is None:
            return [*lines, f"dense: not measured, {self.no_dense}"]
        first, last = (_quarter(self.dense, place).median for place in (0, 3))
        peak = max(run.taken.peak_memory_bytes for run in self.dense)
        fit = DenseFit.of(self._dense_json)
        return [
            *lines,
            f"dense: {dense_rate.shown(1)} tokens/s, context {self.dense[0].n_ctx:,}, "
            f"first quarter {first:,.1f}, last {last:,.1f} tokens/s, peak memory {peak / 1e6:,.0f} MB",
            *([fit.line] if fit else []),
            f"streamed / dense: {ratio(rate, dense_rate)}",
        ]

    @property
    def _dense_json(self) -> dict[str, Any] | None:
        rate = self.rates[1]
        return None if rate is None else _common(self.dense, rate)

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.bench.prefill/1` (docs/cli.md)."""
        one, (rate, dense_rate) = self.streamed[0], self.rates
        return {
            "schema": "localctx.bench.prefill/1",
            "machine": self.machine,
            "model": {"name": self.model.name, "fingerprint": self.model.fingerprint},
            "n_tokens": one.n_tokens,
            "streamed": {
                **_common(self.streamed, rate),
                "policy": one.policy.kind,
                "window": one.policy.window,
                "n_rebased": one.n_rebased,
                "not_overlapped_s": Spread.of([run.not_overlapped_s for run in self.streamed]).to_json(),
                "codec": one.codec,
                "size_bytes": one.size_bytes,
                "bytes_per_token": round(one.size_bytes / one.n_tokens, 1),
                "bytes_per_token_f16": self.model.kv_bytes_per_token,
            },
            "dense": self._dense_json,
            "dense_fit": None if (fit := DenseFit.of(self._dense_json)) is None else fit.to_json(),
            "no_dense": self.no_dense,
            "streamed_by_dense": ratio(rate, dense_rate),
        }


def _common(runs: Sequence[Streamed] | Sequence[Dense], rate: Spread) -> dict[str, Any]:
    return {
        "n_evaluated": runs[0].n_evaluated,
        "n_ctx": runs[0].n_ctx,
        "seconds": Spread.of([run.seconds for run in runs]).to_json(),
        "tokens_per_s": rate.to_json(),
        "tokens_per_s_first_quarter": _quarter(runs, 0).to_json(),
        "tokens_per_s_last_quarter": _quarter(runs, 3).to_json(),
        **taken_json([run.taken for run in runs], runs[0].n_evaluated),
    }


def _quarter(runs: Sequence[Streamed] | Sequence[Dense], place: int) -> Spread:
    """Tokens a second in one quarter of the tokens."""
    return Spread.of([rate_between(run.marks, place / 4, (place + 1) / 4) for run in runs])


def measure(
    model: Model,
    settings: Settings,
    source: str | None,
    n_tokens: int | None,
    n_repeats: int,
    say: Callable[[str], None],
) -> Report:
    """Both ways n_repeats times, by turns; `say` is told each outcome. source None: the built-in text.

    Raises UsageError for a text that is too short or a context that cannot be, NotComposable, StoreUnusable.
    """
    check_repeats(n_repeats)
    able = kv_model(model)
    facts = machine(settings.threads)
    with (
        temporary_store(settings) as (own, folder),
        document_of(source, own, model, n_tokens, folder) as document,
    ):
        tokens, limit, short = _prompt(able, own, document, source)
        too_long = len(tokens) + 1 > limit
        no_dense = f"{len(tokens):,} tokens do not fit a context of {limit:,}" if too_long else None
        stores = (replace(own, store=str(folder / f"store-{number}")) for number in range(n_repeats))

        def told(name: str, run: Streamed | Dense) -> Streamed | Dense:
            say(f"{name}: {run.n_evaluated / run.seconds:,.1f} tokens/s")
            return run

        ways = {"streamed": lambda: told("streamed", _streamed(able, next(stores), document))}
        if no_dense is None:
            ways["dense"] = lambda: told("dense", _dense(model, tokens, limit))
        found = in_turns(ways, n_repeats)
    streamed = tuple(run for run in found["streamed"] if isinstance(run, Streamed))
    dense = tuple(run for run in found.get("dense", ()) if isinstance(run, Dense))
    return Report(model.info, facts, streamed, dense, no_dense, _speeds(model, streamed, dense, short))


def _speeds(
    model: Model, streamed: Sequence[Streamed], dense: Sequence[Dense], short: Dense
) -> Calibration | None:
    """What plans are made from: by depth, of all repeats."""
    points = [
        (min(depth, run.policy.window + run.policy.sinks + WARM_TOKENS), rate)
        for run in streamed
        if run.policy.kind == "window"
        for depth, rate in depth_points(run.marks)
    ]
    return calibration(
        model,
        prefill=[point for run in dense for point in depth_points(run.marks)],
        stream=points,
        decode=[point for run in (short, *dense) for point in run.decode],
    )


# --- the two ways -----------------------------------------------------------------------------------


def _prompt(
    model: KVModel, settings: Settings, document: Document, source: str | None
) -> tuple[list[int], int, Dense]:
    """Prefix and document as one prompt, the largest context, and a run of the prompt's beginning, which has
    the weights loaded and warm.
    """
    run = start([document], model, settings, ignore_progress)
    read_all(run)
    check_length(source, run.n_tokens)
    with opened_cache(run, question_task("")) as cache:
        tokens = [*_cache(cache).prefix, *run.readings[0].stream]
    return tokens, run.limit, _dense(model, tokens[:WARM_TOKENS], run.limit)


def _cache(cache: Cache | str) -> Cache:
    if isinstance(cache, str):
        raise NotComposable(cache, "take another --model")
    return cache


def _streamed(model: KVModel, settings: Settings, document: Document) -> Streamed:
    """As `localctx index` does it, into an empty store."""
    run = start([document], model, settings, ignore_progress)
    read_all(run)
    with opened_cache(run, question_task("")) as made:
        cache, reading = _cache(made), run.readings[0]
        stream, encoding = cache.whole_stream(reading), cache.encoding()
        n_ctx = cache.prefill_n_ctx(stream.policy, stream.n_tokens)
        with Meter() as meter, cache.context(n_ctx) as context:
            ensure_prefix(cache, context)
            observed = ObservedContext(context)
            started = time.perf_counter()
            done = prefill_rest(cache, cast("KVContext", observed), [reading], stream, encoding)
            seconds = time.perf_counter() - started
        if not cache.kept.can_write:
            raise cache.kept.failure or StoreUnusable("the store cannot be written")
        if not done.is_complete:
            raise Interrupted("interrupted")
        return Streamed(
            seconds=seconds,
            not_overlapped_s=observed.waited_s + seconds - observed.streamed_s,
            marks=tuple(observed.marks),
            n_tokens=stream.n_tokens,
            n_evaluated=done.n_evaluated,
            n_rebased=context.n_rebased,
            size_bytes=sum(run.size_bytes for run in cache.kept.stored(stream.ids)),
            taken=meter.taken,
            policy=stream.policy,
            codec=encoding.codec,
            n_ctx=context.n_ctx,
        )


def _dense(model: Model, tokens: Sequence[int], limit: int) -> Dense:
    """The prompt evaluated at once, until the first token is sampled."""
    request = Request(Prompt(tuple(tokens)), Sampling(max_tokens=1))
    marks = [(0.0, 0)]
    with Meter() as meter:
        context = model.open_context(min(round_n_ctx(len(tokens) + 1), limit))
        try:
            started = time.perf_counter()

            def mark(n_begun: int, _: int) -> None:
                n_done = n_begun - n_unfinished(model, context)
                if n_done > marks[-1][1]:
                    marks.append((time.perf_counter() - started, n_done))

            last = list(context.generate([request], mark))[-1]
            seconds = time.perf_counter() - started
            decode = decode_points(context, tokens)
        finally:
            context.close()
    if last.finish_reason == "cancelled":
        raise Interrupted("interrupted")
    return Dense(seconds, tuple(marks), last.n_evaluated, meter.taken, context.n_ctx, decode)
