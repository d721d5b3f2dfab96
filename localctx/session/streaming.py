"""The strategy `stream`: passages that the question points at, put back from stored KV, in document order.

What of them is evaluated again is decided when the context is open, since its speed is known only then.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from functools import partial

from localctx.assemble import Layout, NewTokens, Piece, StoredTokens, pick_refresh
from localctx.errors import NotComposable
from localctx.index import Hits, LexicalIndex
from localctx.kv import KVContext
from localctx.selection.choose import Units
from localctx.session.cache import Cache
from localctx.session.events import Event
from localctx.session.filling import MAX_BLOCKS, pointed_blocks
from localctx.session.header_lines import HEADER_TOKENS, TABLE_TOKENS, Group, groups_of
from localctx.session.landmarks import landmarks_of
from localctx.session.passage_order import N_NAMED, ordered
from localctx.session.placing import Placed, desk_of, fitted
from localctx.session.pointing import pointed_sentences
from localctx.session.ranking import SHARPNESS, ranked_blocks
from localctx.session.reading import Passage
from localctx.session.refreshed import Refreshed
from localctx.session.run import Run
from localctx.session.supply import Supply, supply
from localctx.session.token_stream import TokenStream
from localctx.session.verdicts import why_not_by_itself
from localctx.session.whole_runs import (
    CONTENDING_SHARE,
    MANY_PASSAGES,
    SpellingModel,
    have_room,
    in_whole_sentences,
    runs_of_blocks,
    start_of,
    widened,
)

__all__ = ["stream_reason", "streamed"]

LEAST_REFRESH = 1 / 3
"""What `refresh=auto` evaluates again at least: measured, less leaves competing passages mixed up."""
SHARE_STEP = 1 / 20
"""A little more or less speed than last time refreshes the same, which is kept then."""
ALL_FROM = 0.8
"""From this share on all is evaluated: in one piece that takes no longer than most of it in many."""
FOLLOW_UP_TOKENS = 160
"""What a later question of a conversation evaluates behind what it keeps, about: header lines and itself come
first, then sentences that it points at in passages that are new.
"""
LAZY_BLOCKS = 4
"""Blocks of a question whose passages must be prefilled first: each takes some 1,500 tokens."""


def streamed(cache: Cache, index: LexicalIndex, question: str, room: int) -> Generator[Event, None, Placed]:
    """Choose passages, have their KV at hand, and say how they are put in. `room`: tokens left for them.

    Raises UsageError when not even one fits, StoreUnusable where lazy=off asks for what the store cannot
    take.
    """
    run = cache.run
    supplied = yield from supply(cache)
    passages, n_named, groups = yield from _chosen(cache, supplied, index, question, room)
    n_tokens = len(cache.prefix) + sum(group.n_tokens for group in groups)

    def arrange(context: KVContext) -> Layout:
        fresh = _not_carried(cache, groups)
        refresh = _refresh(cache, context, fresh, question) + _absent(cache, supplied, passages)
        return fitted(cache, context, [piece for group in groups for piece in _pieces(cache, group, refresh)])

    is_first = run.carried is None or run.carried.is_empty
    return Placed(
        in_whole_sentences(run, passages),
        n_tokens,
        supplied.n_read(),
        arrange,
        supplied.streams,
        Refreshed(cache, supplied.streams) if is_first else None,
        is_cancelled=not supplied.is_complete,
        n_between=sum(len(group.header) for group in groups),
        n_named=n_named,
    )


def _cost(run: Run, number: int) -> int:
    """Most tokens that a block takes in the context, with what leads it."""
    _, first, end = run.tokens_of(number)
    return end - first + _lead(run.passage(number))


def _chosen(
    cache: Cache, supplied: Supply, index: LexicalIndex, question: str, room: int
) -> Generator[Event, None, tuple[tuple[Passage, ...], int, list[Group]]]:
    """The passages, whose KV is on its way, how many a header line leads, and what leads them."""
    run, asked, is_lazy = cache.run, cache.run.settings.cache.budget, supplied.way == "lazy"
    budget, stored = min(room, asked or room), [streams[0] for streams in supplied.streams]
    max_blocks = max(1, asked // run.settings.cache.block) if asked else MAX_BLOCKS
    hits = yield from ranked_blocks(run, index, question, lambda: landmarks_of(cache, stored, question))
    are_many = max_blocks > MANY_PASSAGES and not is_lazy and run.carried is None and run.blocks is None
    spell, units = None, runs_of_blocks(run, stored)
    if are_many and isinstance(cache.model, SpellingModel) and _have_room(run, hits, units, budget):
        spell = cache.model.text
    numbers = yield from pointed_blocks(
        run,
        hits,
        question,
        budget,
        partial(_cost, run) if spell is None else lambda number: _lead(start_of(run, stored, number, spell)),
        supplied.may_choose,
        min(LAZY_BLOCKS, max_blocks) if is_lazy else max_blocks,
        None if spell is None else units,
    )
    passages = tuple(map(run.passage, numbers)) if spell is None else widened(run, stored, numbers, spell)
    yield from supplied.provide(passages)
    is_free = run.carried is None and run.blocks is None
    as_put, unnamed = list(passages), set[Passage]()
    if is_free:
        n_named = N_NAMED if are_many and run.settings.cache.refresh == 0 else len(numbers)
        as_put, unnamed = ordered(run, passages, numbers, (number for number, _ in hits.ranking), n_named)
    groups = groups_of(cache, as_put, unnamed, are_many=are_many, are_widened=spell is not None)
    return passages, len(passages) - len(unnamed), list(groups)


def _have_room(run: Run, hits: Hits, units: Units, budget: int) -> bool:
    """Whether what contends for the answer has room when it is widened; sharp scores lie further apart."""
    is_sharpened = run.selection is not None and run.selection["embedder"] is not None
    share = CONTENDING_SHARE ** (SHARPNESS if is_sharpened else 1)
    return have_room(hits.ranking, units, budget, HEADER_TOKENS, share)


def _lead(passage: Passage) -> int:
    """Most tokens of what leads the passage."""
    return HEADER_TOKENS + (TABLE_TOKENS if passage.table_header else 0)


def stream_reason(run: Run, cache: Cache | str, *, fits: bool) -> Generator[Event, None, str | None]:
    """Why `auto` may answer from kept KV where the documents do not fit; None where it may not.

    Raises NotComposable when it was asked for and cannot be.
    """
    requested = run.settings.strategy
    if isinstance(cache, str):
        if requested == "stream":
            raise NotComposable(f"--strategy stream: {cache}", "--strategy retrieve, or exact where it fits")
        if requested == "auto" and not fits:
            yield run.warn(f"{cache}; the text is searched instead")
        return None
    if requested != "auto" or fits:
        return None
    streams = [cache.whole_stream(reading) for reading in run.readings]
    n_runs = sum(len(cache.kept.has(stream.ids, cache.codec)) for stream in streams)
    if not n_runs and run.settings.cache.lazy != "on":
        return None
    problem = why_not_by_itself(cache.kept.facts(run.model.info.fingerprint), run.model.info.name)
    if problem is not None:
        yield run.warn(problem)
        return None
    share = n_runs / max(1, sum(stream.n_runs for stream in streams))
    return f"{share:.0%} of it is indexed"


def _pieces(cache: Cache, group: Group, refresh: Sequence[tuple[int, int, int]]) -> Iterator[Piece]:
    """The header line, and the passages' tokens with what of them is evaluated again."""
    if group.header:
        yield NewTokens(group.header)
    for passage in group.passages:
        stop = passage.first_token + passage.n_tokens
        stream = cache.run.readings[passage.document].stream
        spans = tuple((start, end) for document, start, end in refresh if document == passage.document)
        yield StoredTokens(
            passage.document, passage.first_token, tuple(stream[passage.first_token : stop]), spans
        )


def _refresh(
    cache: Cache, context: KVContext, groups: Sequence[Group], question: str
) -> list[tuple[int, int, int]]:
    """(document, start, end) of the tokens that are evaluated again, as many as the settings allow."""
    run = cache.run
    passages = [passage for group in groups for passage in group.passages]
    n_selected = sum(passage.n_tokens for passage in passages)
    share = run.settings.cache.refresh
    if not passages:
        return []

    def picked(n_tokens: int) -> list[tuple[int, int, int]]:
        candidates = pointed_sentences(passages, question, run.model.tokenize, run.language, run.likeness)
        return [(one.document, one.start, one.end) for one in pick_refresh(candidates, n_tokens)]

    n_new = sum(len(group.header) for group in groups) + len(cache.frame.suffix)
    if share is None and run.carried is not None and not run.carried.is_empty:
        return picked(max(0, FOLLOW_UP_TOKENS - n_new))
    if share is None:
        n_affordable = math.floor(run.settings.latency * cache.rate(context)) - n_new
        share = math.floor(n_affordable / n_selected / SHARE_STEP) * SHARE_STEP
        share = 1.0 if share >= ALL_FROM else max(LEAST_REFRESH, share)
    if share >= 1.0:
        return [(p.document, p.first_token, p.first_token + p.n_tokens) for p in passages]
    return picked(round(share * n_selected)) if share > 0.0 else []


def _not_carried(cache: Cache, groups: Sequence[Group]) -> list[Group]:
    """The groups without what the context of the question before gives back."""
    carried = cache.run.carried
    if carried is None or carried.is_empty:
        return list(groups)
    desk = desk_of(cache)
    fresh = []
    for group in groups:
        new = tuple(
            one
            for one in group.passages
            if not carried.holds(cache.space, (desk.documents[one.document], one.first_token, one.n_tokens))
        )
        if new:
            fresh.append(Group(group.header if new[0] is group.passages[0] else (), new))
    return fresh


def _absent(cache: Cache, supplied: Supply, passages: Sequence[Passage]) -> list[tuple[int, int, int]]:
    """What could not be loaded after all is evaluated: a damaged store costs time, not the answer."""
    found = []
    for passage in passages:
        streams = supplied.streams[passage.document]
        end = passage.first_token + passage.n_tokens
        at = passage.first_token
        while at < end:
            stop = min(end, _end_of_run(streams, at))
            if all(cache.kept.source(stream.ids[stream.run_at(at)]) is None for stream in streams):
                found.append((passage.document, at, stop))
            at = stop
    return found


def _end_of_run(streams: Sequence[TokenStream], token: int) -> int:
    """The first token behind the token's run, in whichever stream it ends first."""
    return min(stream.spans[stream.run_at(token)][1] for stream in streams)
