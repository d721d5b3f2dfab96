"""An arranged layout into a context, and the answer decoded behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from localctx.assemble import Budget, Layout, Piece, RunOf, apply, lay_out, n_sweeps_of
from localctx.kv import KVContext, KVPart, RunLost
from localctx.session.cache import Cache, run_finder
from localctx.session.carried import Desk
from localctx.session.decoding import Decoded, decode_one
from localctx.session.events import Event, Progress
from localctx.session.opening import timed
from localctx.session.prefill import ensure_prefix
from localctx.session.reading import Passage
from localctx.session.refreshed import Refreshed
from localctx.session.token_stream import TokenStream
from localctx.values import Prompt

__all__ = ["CANCELLED", "Placed", "decode_placed", "desk_of", "fitted"]

CANCELLED = Decoded(0, "", "cancelled", 0, 0)
"""The outcome where there is nothing whole to answer from."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Passages on their way into a context.

    n_tokens: of prefix and passages, evaluated or not · n_read: tokens of each document whose KV is at hand ·
    arrange(context): what stands where; asked when the context is open, since what can be afforded depends on
    its speed · streams[d]: document d's streams that its restored tokens come from, the preferred one first ·
    refreshed: what was evaluated for earlier questions · prefill(context): has the KV that is missing made
    first, in a context that holds nothing else; False when it was cancelled; None: all is there ·
    is_cancelled: the passages' KV was not prefilled to the end · n_between: tokens of header lines, which a
    device that evaluates them at once needs room for twice · n_named: passages that these lead.
    """

    passages: tuple[Passage, ...]
    n_tokens: int
    n_read: tuple[int, ...]
    arrange: Callable[[KVContext], Layout]
    streams: Sequence[Sequence[TokenStream]]
    refreshed: Refreshed | None = None
    prefill: Callable[[KVContext], bool] | None = None
    is_cancelled: bool = False
    n_between: int = 0
    n_named: int = 0


def fitted(
    cache: Cache, context: KVContext, pieces: Sequence[Piece], *, keeps_passages: bool = True
) -> Layout:
    """The pieces behind the prefix, and earlier turns behind them, within what the context leaves beside
    question and answer. keeps_passages: the next question of a conversation wants them as they stand.
    """
    if cache.run.carried is not None:
        pieces = cache.run.carried.arrange(desk_of(cache, keeps_passages=keeps_passages), pieces)
    n_answer = cache.run.settings.max_tokens
    budget = Budget(context.n_ctx, len(cache.prefix), len(cache.frame.suffix), n_answer)
    return lay_out(cache.prefix, pieces, budget, prefix_is_stored=cache.has_prefix)


def desk_of(cache: Cache, *, keeps_passages: bool = True) -> Desk:
    """What a context for the question is arranged for."""
    documents = tuple(reading.document.content_hash for reading in cache.run.readings)
    return Desk(cache.space, documents, cache.frame.history, keeps_passages)


def decode_placed(
    cache: Cache, placed: Placed, n_ctx: int, watch: Callable[[KVContext, Prompt], None] | None = None
) -> Generator[Event, None, Decoded]:
    """Fill a context of n_ctx tokens and answer in it; filling that is cancelled is not answered from.

    watch: shown the filled context, and the prompt that begins with what it holds, before it answers.
    Raises NotComposable before anything is said.
    """
    run = cache.run
    if placed.is_cancelled:
        return CANCELLED
    n_twice = placed.n_between if cache.model.is_offloaded else 0
    with cache.context(max(n_ctx, min(n_ctx + n_twice, run.stored_limit))) as context:
        with timed(run.timings, "prefill_ms"):
            run.n_evaluated += ensure_prefix(cache, context)
        if not cache.has_prefix:
            return CANCELLED
        if placed.prefill is not None and not placed.prefill(context):
            return CANCELLED
        layout = _filled(cache, context, placed)
        if layout is None:
            return CANCELLED
        prompt = cache.frame.prompt(layout.tokens[len(cache.prefix) :])
        request = run.request_of(prompt, run.settings.max_tokens)
        yield from run.unheard()
        if watch is not None:
            watch(context, prompt)
        before_ms = run.timings.prefill_ms
        decoded = yield from decode_one(context, request, run.timings, run.started, run.listen)
        run.timings.question_ms += run.timings.prefill_ms - before_ms
        if placed.refreshed is not None:
            placed.refreshed.keep(context)
        if run.carried is not None:
            run.carried.take(context)
        return decoded


def _filled(cache: Cache, context: KVContext, placed: Placed) -> Layout | None:
    """The layout that the context is filled with; None when it was cancelled. What was being read and does
    not come is arranged for again, as absent: that is known of all runs then.
    """
    carried = cache.run.carried
    while True:
        with timed(cache.run.timings, "assemble_ms"):
            layout = placed.arrange(context)
            n_sweeps = n_sweeps_of(context, layout)
            fresh = placed.refreshed.restore(layout, n_sweeps) if placed.refreshed is not None else []
        try:
            find_run = run_finder(cache, placed.streams)
            if carried is not None:
                find_run = carried.finder(find_run, len(cache.run.readings))
            return layout if _fill(cache, context, layout, find_run, fresh) else None
        except RunLost:
            cache.kept.wait()


def _fill(cache: Cache, context: KVContext, layout: Layout, find_run: RunOf, fresh: Sequence[KVPart]) -> bool:
    """Restore and evaluate what stands before the question; the time goes to what most of it was. False, and
    nothing counted, when it was cancelled.
    """
    run, started = cache.run, time.perf_counter()
    n_evaluated = apply(
        context,
        layout,
        find_run,
        fresh,
        lambda done, total: run.listen(Progress("prefill", done, total, "tokens")),
    )
    waited = context.restore_times.wait_s
    seconds = time.perf_counter() - started - waited
    run.timings.read_ms += waited * 1000
    run.timings.compose_ms += context.restore_times.compose_s * 1000
    run.timings.upload_ms += context.restore_times.upload_s * 1000
    if n_evaluated != layout.n_evaluated - sum(part.n_tokens for part in fresh):
        return False
    run.n_evaluated += n_evaluated
    run.n_restored += len(layout.tokens) - n_evaluated
    if 2 * n_evaluated > len(layout.tokens):
        run.timings.prefill_ms += seconds * 1000
    else:
        run.timings.assemble_ms += seconds * 1000
    if len(layout.evaluated) == 1 and not fresh:  # in large steps, as the speed is meant
        cache.note_rate(n_evaluated, seconds)
    return True
