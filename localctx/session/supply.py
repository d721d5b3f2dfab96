"""How the passages of a question get their KV: it is stored, or prefilled now: whole, or only what is needed.

Says which way it took and why; the estimate is tokens by measured speed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from localctx.session.announce import announce, minutes, note_others, too_much_for_the_store
from localctx.session.cache import Cache
from localctx.session.events import Event
from localctx.session.filling import MAX_BLOCKS
from localctx.session.lazy_spans import lazy_plan
from localctx.session.opening import timed
from localctx.session.prefill import prefill_rest, prefill_spans
from localctx.session.reading import Passage
from localctx.session.token_stream import TokenStream
from localctx.store import StoreUnusable

__all__ = ["EAGER_SECONDS", "Supply", "largest_answer_n_ctx", "supply"]

EAGER_SECONDS = 120.0
"""`lazy=auto` prefills a whole document up to this estimate."""
HEADER_ROOM = 24
"""Tokens allowed for a passage's header line, when a context is sized before it is known."""
LAZY_TOKENS = 6144
"""What a lazily answered question prefills, about: a text not much longer is prefilled whole."""
Way: TypeAlias = Literal["stored", "part", "eager", "lazy"]


@dataclass(slots=True)
class Supply:
    """Where the passages' KV comes from.

    streams[d]: document d's streams whose runs may be used, the preferred one first ·
    there[d]: which runs of the preferred one were at hand before ·
    rate: tokens a second that the choice was made by · is_complete: no prefill was cancelled.
    """

    cache: Cache
    way: Way
    streams: list[list[TokenStream]]
    there: list[set[bytes]]
    n_missing: int = 0
    rate: float | None = None
    is_complete: bool = True

    @property
    def may_choose(self) -> Callable[[int], bool] | None:
        """Says whether the block with a running number can be had, where only a part is indexed; None: all
        can.
        """
        if self.way != "part":
            return None
        return lambda number: not self._missing_runs(*self.cache.run.tokens_of(number))

    def provide(self, passages: Sequence[Passage]) -> Generator[Event, None, None]:
        """Have the passages' runs at hand and being read, unless is_complete says otherwise."""
        if self.way == "lazy":
            yield from self._prefill_lazily(passages)
        if not self.is_complete:
            return
        ids = []
        for passage in passages:
            first, end = passage.first_token, passage.first_token + passage.n_tokens
            missing = self._missing_runs(passage.document, first, end)
            for stream in self.streams[passage.document][: None if missing else 1]:
                ids += [stream.ids[number] for number in stream.runs_of(first, end)]
        with timed(self.cache.run.timings, "read_ms"):
            self.cache.kept.begin_loading(ids, self.cache.codec)

    def n_read(self) -> tuple[int, ...]:
        """Tokens of each document whose KV is at hand now."""
        counts = []
        for (whole, *lazy), there in zip(self.streams, self.there, strict=True):
            if len(there) == whole.n_runs:
                counts.append(whole.n_tokens)
                continue
            seen = _spans(whole, there)
            for stream in lazy:
                seen |= _spans(stream, self.cache.kept.has(stream.ids, self.cache.codec))
            counts.append(sum(end - first for first, end in seen))
        return tuple(counts)

    def _missing_runs(self, document: int, first: int, end: int) -> list[int]:
        """Numbers of the runs of tokens [first, end) in the whole document's stream that are not at hand."""
        stream, there = self.streams[document][0], self.there[document]
        return [number for number in stream.runs_of(first, end) if stream.ids[number] not in there]

    def _prefill_lazily(self, passages: Sequence[Passage]) -> Generator[Event, None, None]:
        """The spans of the lazy grids that the passages need and the stores lack."""
        cache, plans = self.cache, []
        for ordinal, (_, *lazy) in enumerate(self.streams):
            wanted = [
                (passage.first_token, passage.first_token + passage.n_tokens)
                for passage in passages
                if passage.document == ordinal
            ]
            wanted = [span for span in wanted if self._missing_runs(ordinal, *span)]
            plans += [(cache.run.readings[ordinal], *part) for part in lazy_plan(cache, lazy, wanted)]
        if not plans:
            return
        n_evaluated = 0
        n_tokens = sum(passage.n_tokens for passage in passages)
        n_ctx = max(
            cache.prefill_n_ctx(cache.lazy_policy, 1 << 30), _answer_n_ctx(cache, n_tokens, len(passages))
        )
        with cache.context(n_ctx) as context, timed(cache.run.timings, "prefill_ms"):
            for reading, stream, spans in plans:
                done = prefill_spans(cache, context, reading, stream, spans, cache.encoding())
                n_evaluated += done.n_evaluated
                self.is_complete = done.is_complete
                if not done.is_complete:
                    break
        cache.run.n_evaluated += n_evaluated
        if self.rate is not None and n_evaluated and self.is_complete:
            n_questions = max(1, round(self.n_missing / n_evaluated))
            yield cache.run.warn(
                f"{n_evaluated:,} tokens were prefilled for this question; indexing all "
                f"({minutes(self.n_missing / self.rate)}) pays after about {n_questions:,} such questions"
            )


def supply(cache: Cache) -> Generator[Event, None, Supply]:
    """Choose the way, and go it as far as it does not depend on the passages.

    Raises StoreUnusable where lazy=off asks for what the store cannot take.
    """
    run, setting = cache.run, cache.run.settings.cache.lazy
    eager = [cache.whole_stream(reading) for reading in run.readings]
    alone = [[stream] for stream in eager]
    there = [cache.kept.has(stream.ids, cache.codec) for stream in eager]
    n_stored = sum(map(_n_tokens, eager, there))
    n_missing = run.n_tokens - n_stored
    if n_missing == 0:
        return Supply(cache, "stored", alone, there)
    for reading, stream in zip(run.readings, eager, strict=True):
        note_others(cache, reading, stream)
    yield from run.unheard()
    if setting == "off" and n_stored:
        yield run.warn(
            f"{n_stored:,} of {run.n_tokens:,} tokens are indexed, only these are searched; "
            "--kv lazy=on reads others too, localctx index goes on"
        )
        return Supply(cache, "part", alone, there, n_missing)
    rate: float | None = None
    if setting == "off" or (setting == "auto" and cache.kept.can_write):
        found = yield from _index_now(cache, eager, n_missing, must=setting == "off")
        if isinstance(found, bool):
            there = [cache.kept.has(stream.ids, cache.codec) for stream in eager]
            return Supply(cache, "eager", alone, there, is_complete=found)
        rate = found
    both = [
        [stream, *cache.lazy_streams(reading)] for reading, stream in zip(run.readings, eager, strict=True)
    ]
    return Supply(cache, "lazy", both, there, n_missing, rate)


def _spans(stream: TokenStream, there: set[bytes]) -> set[tuple[int, int]]:
    """The spans of the stream's runs that are at hand."""
    return {span for span, run_id in zip(stream.spans, stream.ids, strict=True) if run_id in there}


def _n_tokens(stream: TokenStream, there: set[bytes]) -> int:
    """Tokens of the stream's runs that are at hand."""
    if len(there) == stream.n_runs:
        return stream.n_tokens
    return sum(end - first for first, end in _spans(stream, there))


def _index_now(
    cache: Cache, eager: Sequence[TokenStream], n_missing: int, *, must: bool
) -> Generator[Event, None, float | bool]:
    """Prefill the whole documents where that is quick, or a must, whether to the end; else the speed it was
    judged by. Raises StoreUnusable where it must be, and the store cannot take them.
    """
    run, encoding = cache.run, cache.encoding()
    problem = too_much_for_the_store(cache, run.n_tokens, encoding.codec)
    if problem is not None and must:
        raise StoreUnusable(problem, "--store-limit SIZE allows more; --kv lazy=on needs less")
    n_ctx = max(cache.prefill_n_ctx(cache.policy, run.n_tokens), largest_answer_n_ctx(cache))
    with cache.context(n_ctx) as context:
        with timed(run.timings, "prefill_ms"):
            rate = cache.rate(context, "stream")
        if not must and n_missing / rate > EAGER_SECONDS and n_missing > 1.5 * LAZY_TOKENS:
            yield run.warn(
                f"indexing would take {minutes(n_missing / rate)}: only the passages that the question needs "
                "are prefilled (--kv lazy=off indexes all; localctx index --background does meanwhile)"
            )
            return rate
        if problem is not None:
            yield run.warn(f"{problem} (--store-limit): only what the question needs is prefilled")
            return rate
        yield from announce(cache, n_missing, rate, encoding)
        with timed(run.timings, "prefill_ms"):
            for reading, stream in zip(run.readings, eager, strict=True):
                done = prefill_rest(cache, context, [reading], stream, encoding, cache.codec)
                run.n_evaluated += done.n_evaluated
                if not done.is_complete:
                    return False
    return True


def _answer_n_ctx(cache: Cache, n_passage_tokens: int, n_passages: int) -> int:
    """Cells that an answer from so many passages takes, about: prefilling for it has the same context."""
    settings = cache.run.settings
    n_around = len(cache.prefix) + len(cache.frame.after) + settings.max_tokens
    n_headers = n_passages * HEADER_ROOM * (2 if cache.model.is_offloaded else 1)
    return min(cache.run.stored_limit, n_around + n_passage_tokens + n_headers)


def largest_answer_n_ctx(cache: Cache) -> int:
    """Cells that an answer takes at most, before its passages are chosen."""
    run, budget = cache.run, cache.run.settings.cache.budget
    n_passages = max(1, budget // run.settings.cache.block) if budget else MAX_BLOCKS
    n_longest = max((n for reading in run.readings for n in reading.block_tokens), default=0)
    n_tokens = min(run.n_tokens, n_passages * n_longest, budget or run.n_tokens)
    return _answer_n_ctx(cache, n_tokens, min(n_passages, run.n_blocks))
