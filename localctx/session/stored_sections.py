"""Sections whose KV is stored, put back side by side: only the tasks behind them are evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from localctx.kv import BatchingContext, KVPart
from localctx.session.cache import Cache
from localctx.session.decoding import Decoded
from localctx.session.events import Event, Notice
from localctx.session.opening import timed
from localctx.session.prefill import ensure_prefix
from localctx.session.sections import N_SIDE, Section
from localctx.session.strategy import round_n_ctx
from localctx.session.token_stream import TokenStream
from localctx.session.wording import Asked

if TYPE_CHECKING:
    from localctx.session.outlines import Outline

__all__ = ["from_stored_kv"]


def from_stored_kv(outline: Outline, stream: TokenStream) -> Iterator[Event]:
    """Make the points that are missing of sections whose KV is at hand, several side by side.

    Yields nothing but its warnings: where it leaves points missing it says why, or was_cancelled is set.
    """
    cache, run = outline.cache, outline.cache.run
    if not outline.missing:
        return
    if stream.tokens != outline.reading.stream:
        yield _unmade(outline, "what is stored has other tokens")
        return
    longest = max(outline.sections[number].part.n_tokens for number in outline.missing)
    n_each = len(cache.prefix) + longest + outline.wording.n_tokens
    n_side = min(N_SIDE, len(outline.missing))
    with timed(run.timings, "load_ms"):
        context = cache.model.open_kv_context(
            round_n_ctx(n_side * n_each), n_side, n_longest=round_n_ctx(n_each)
        )
    run.warnings.extend(context.notices)
    try:
        run.n_evaluated += ensure_prefix(cache, context)
        yield from run.unheard()
        if not isinstance(context, BatchingContext):
            yield _unmade(outline, f"{cache.model.info.name} answers one request at a time")
        elif not cache.has_prefix:  # it is evaluated to its end unless it is stopped
            outline.was_cancelled = True
        else:
            _decode(outline, stream, context, n_side)
    finally:
        context.close()


def _unmade(outline: Outline, why: str) -> Notice:
    return outline.cache.run.warn(f"{why}: {len(outline.missing):,} of its sections are not summarised")


def _decode(outline: Outline, stream: TokenStream, context: BatchingContext, n_side: int) -> None:
    """The missing sections through one batch, the next ones read while others are decoded."""
    waiting, asked = outline.missing[::-1], dict[int, tuple[int, Asked]]()
    texts: dict[int, list[str]] = {}
    batch = context.open_batch()
    try:
        while waiting or asked:
            while waiting and len(asked) < 2 * n_side:
                number = waiting.pop()
                section = outline.sections[number]
                question = outline.wording.ask(section)
                request = outline.wording.whole(question, section)
                parts = _parts(outline.cache, stream, section)
                asked[batch.submit(request, parts)] = number, question
            for piece in batch.step():
                texts.setdefault(piece.request, []).append(piece.text)
                if piece.finish_reason is None:
                    continue
                number, question = asked.pop(piece.request)
                if piece.finish_reason == "cancelled":
                    outline.was_cancelled = True
                    continue
                text = "".join(texts.pop(piece.request))
                counts = piece.n_evaluated, piece.n_generated
                outline.take(number, question, Decoded(number, text, piece.finish_reason, *counts))
                outline.cache.run.n_restored += outline.sections[number].part.n_tokens
            if outline.was_cancelled or batch.is_stopped:
                outline.was_cancelled = True
                return
    finally:
        batch.close()


def _parts(cache: Cache, stream: TokenStream, section: Section) -> list[KVPart]:
    """What is at hand of the prefix and the section, where it stands in the section's prompt."""
    n_prefix, prefix = len(cache.prefix), cache.prefix_stream()
    parts = _runs(cache, prefix, 0, n_prefix, 0) if n_prefix else []
    cache.kept.load([stream.ids[number] for number in stream.runs_of(section.first, section.end)])
    return [*parts, *_runs(cache, stream, section.first, section.end, n_prefix - section.first)]


def _runs(cache: Cache, stream: TokenStream, first: int, end: int, shift: int) -> list[KVPart]:
    """The runs at hand of tokens [first, end); token t stands at t + shift."""
    parts = []
    for number in stream.runs_of(first, end):
        run, (start, stop) = cache.kept.run(stream.ids[number]), stream.spans[number]
        low, high = max(start, first), min(stop, end)
        if run is not None:
            parts.append(KVPart(run, low - start, high - low, low + shift))
    return parts
