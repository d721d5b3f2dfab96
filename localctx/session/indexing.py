"""`index`: prefill documents into the store now, so that questions restore what they need.

The steps: say what the documents are → cut and count → look what is stored → prefill the rest, run by run.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from localctx.document import Document
from localctx.engine.embedder import EmbedderFile
from localctx.errors import NotComposable, UsageError
from localctx.session.announce import announce, note_others, too_much_for_the_store
from localctx.session.attending import documents_end, exact_stream, joint_stream
from localctx.session.cache import Cache, opened_cache
from localctx.session.embedding import embed_all
from localctx.session.encoding import Encoding
from localctx.session.events import Event, Listener, Notice, Planned, ignore_progress
from localctx.session.filling import whole
from localctx.session.indexed import Indexed, IndexedDocument
from localctx.session.kept import Kept, kept_or_opened
from localctx.session.opening import introduce, read_all, timed
from localctx.session.outlines import Outline, beside, filled, outlines_of, tapped_context
from localctx.session.prefill import Done, ensure_prefix, prefill_rest
from localctx.session.prompts import document_messages, question_task
from localctx.session.reading import Reading
from localctx.session.run import Run, start
from localctx.session.snapshots import SnapshotContext, WholeState
from localctx.session.strategy import round_n_ctx
from localctx.session.token_stream import TokenStream
from localctx.settings import Settings
from localctx.store import StoreUnusable
from localctx.values import Message, Model, Prompt

__all__ = ["index_documents"]

HINT = "ask serves it by exact attention and by text retrieval"
NAME_SEPARATOR = " + "
QUESTION_TOKENS = 64
"""Allowed for a question, when it is judged whether a document will be attended whole."""


def index_documents(
    documents: Sequence[Document],
    model: Model,
    settings: Settings,
    listen: Listener = ignore_progress,
    *,
    kept: Kept | None = None,
    embedder: EmbedderFile | str | None = None,
    summaries: bool = False,
) -> Iterator[Event | Indexed]:
    """Prefill the documents into the store, telling each step; the last event is Indexed. Where there is an
    `embedder`, the passages' vectors are made first. summaries: of each section, made beside the prefill and
    kept for `summarize`.

    Of a model whose KV cannot be cut the state after all documents is kept whole. Raises UsageError without a
    store, NotComposable where that cannot be either, StoreUnusable when the store cannot be written (what was
    committed before stays), and what the documents raise.
    """
    if settings.store == "off":
        raise UsageError("index with --store off keeps nothing", "leave --store off out")
    run = start(documents, model, settings, listen)
    run.embedder = embedder
    outlines: dict[int, Outline] = {}
    with opened_cache(run, question_task(""), kept) as cache:
        if isinstance(cache, str):
            if settings.strategy not in ("auto", "exact"):
                raise NotComposable(cache, HINT)
            with kept_or_opened(run, kept) as at_hand:
                _raise_unwritable(at_hand)
                yield from introduce(run)
                read_all(run)
                yield from embed_all(run)
                if summaries:
                    yield run.warn(f"{cache}: its sections are not summarised, summarize reads them")
                rows = yield from _index_state(run, at_hand, cache)
        else:
            _raise_unwritable(cache.kept)
            yield from introduce(run)
            read_all(run)
            yield from embed_all(run)
            plans = yield from _plans(cache)
            yield from run.unheard()
            try:
                readings = [plan.readings for plan in plans] if summaries else []
                outlines = yield from outlines_of(cache, readings)
                rows = yield from _index(cache, plans, outlines)
            except NotComposable as error:  # found out by trying
                if settings.strategy not in ("auto", "exact"):
                    raise
                rows = yield from _index_state(run, cache.kept, error.message)
        was_cancelled = any(row.tokens_stored < row.tokens_total for row in rows) or any(
            outline.was_cancelled for outline in outlines.values()
        )
        yield Indexed(
            model.info, tuple(rows), tuple(dict.fromkeys(run.warnings)), was_cancelled, run.selection
        )


@dataclass(frozen=True, slots=True)
class _Plan:
    """Documents that are one stream under the policy that will serve them, and what of it is missing."""

    readings: tuple[Reading, ...]
    stream: TokenStream
    encoding: Encoding
    codec: str | None
    n_stored: int

    @property
    def n_missing(self) -> int:
        return self.stream.n_tokens - self.n_stored


def _plans(cache: Cache) -> Generator[Event, None, list[_Plan]]:
    """Documents that fit a context together are kept as `exact` wants them, all others one by one."""
    run = cache.run
    if len(run.readings) == 1:
        return [_plan(cache, run.readings[0])]
    prompt, messages = _whole_prompt(run) if _wants_whole(run) else (None, ())
    stream = (
        None
        if prompt is None or cache.policy.kind == "independent"
        else joint_stream(cache, prompt, messages)
    )
    if stream is None:
        yield Notice(
            "the documents are kept one by one, for answers from passages of them (--strategy stream)"
        )
        return [_plan(cache, reading) for reading in run.readings]
    yield Notice(
        f"the {len(run.readings)} documents are kept together, for questions on all of them at once; "
        "index them one by one for questions on each, or with --strategy stream for answers from passages"
    )
    codec = cache.exact_codec(stream.n_tokens)
    n_leading = cache.kept.n_leading(stream.ids, codec)
    n_stored = stream.n_tokens_of(range(n_leading))
    return [_Plan(tuple(run.readings), stream, cache.encoding(codec), codec, n_stored)]


def _plan(cache: Cache, reading: Reading) -> _Plan:
    """Small documents are kept as `exact` wants them, all others for `stream`."""
    is_whole = len(cache.run.readings) == 1 and cache.policy.kind != "independent" and _wants_whole(cache.run)
    stream = exact_stream(cache, reading.ordinal) if is_whole else cache.whole_stream(reading)
    codec = cache.exact_codec(reading.n_tokens) if is_whole else cache.codec
    encoding = cache.encoding(codec)
    n_leading = cache.kept.n_leading(stream.ids, codec)
    note_others(cache, reading, stream)
    return _Plan((reading,), stream, encoding, codec, stream.n_tokens_of(range(n_leading)))


def _wants_whole(run: Run) -> bool:
    """Whether a question will attend to all documents whole, as far as their tokens tell."""
    others = len(run.model.prompt(document_messages([], question_task(""))).tokens) + _n_asked(run)
    return run.n_tokens + others <= run.limit and run.settings.strategy in ("auto", "exact")


def _n_asked(run: Run) -> int:
    """Tokens left for a question and its answer."""
    return QUESTION_TOKENS + run.settings.max_tokens


def _whole_prompt(run: Run) -> tuple[Prompt | None, list[Message]]:
    """The prompt of an empty question on all documents, or None where it does not fit, and its messages."""
    messages = document_messages(whole(run).fragments, question_task(""))
    prompt = run.model.prompt(messages)
    return (prompt if len(prompt.tokens) + _n_asked(run) <= run.limit else None), messages


def _index_state(run: Run, kept: Kept, reason: str) -> Generator[Event, None, list[IndexedDocument]]:
    """Keep the whole state after the documents, since their KV cannot be cut. Raises NotComposable."""
    prompt, messages = _whole_prompt(run) if _wants_whole(run) else (None, [])
    n_head = None if prompt is None else documents_end(prompt, messages)
    if prompt is None or n_head is None:
        raise NotComposable(f"{reason}, and {run.n_tokens:,} tokens do not fit its context whole", HINT)
    n_ctx = min(round_n_ctx(len(prompt.tokens) + _n_asked(run)), run.limit)
    yield Planned("exact", f"{reason}; the state after the documents is kept whole", run.n_tokens, n_ctx)
    with timed(run.timings, "load_ms"):
        context = run.context(n_ctx)
    started = time.perf_counter()
    try:
        if not isinstance(context, SnapshotContext):
            raise NotComposable(reason, HINT)
        state = WholeState(run, kept, prompt.tokens[:n_head])
        try:
            filled = yield from state.fill(context)
        except NotComposable as error:
            raise NotComposable(f"{reason}; {run.model.info.name} {error.message}", HINT) from error
    finally:
        context.close()
    if not filled.size_bytes and not filled.is_cancelled:
        _raise_unwritable(kept)
        raise StoreUnusable(
            "the state after the documents could not be kept", "localctx store ls shows what is"
        )
    row = IndexedDocument(
        source=NAME_SEPARATOR.join(reading.document.source for reading in run.readings),
        tokens_total=n_head,
        tokens_stored_before=filled.n_restored,
        tokens_evaluated=filled.n_evaluated,
        tokens_stored=n_head if filled.size_bytes else 0,
        size_bytes=filled.size_bytes,
        seconds=time.perf_counter() - started,
        policy="exact",
        codec="state",
    )
    return [row]


def _index(
    cache: Cache, plans: Sequence[_Plan], outlines: Mapping[int, Outline]
) -> Generator[Event, None, list[IndexedDocument]]:
    """The plan in a line, a notice where it is much, and then the work, in one context."""
    run, n_missing = cache.run, sum(plan.n_missing for plan in plans)
    pairs = [(outline, plans[number].stream) for number, outline in outlines.items()]
    if not n_missing:
        yield Planned("stream", "all of it is stored", run.n_tokens, run.limit)
        yield from filled(pairs)
        return [_row(cache, plan, 0, 0.0) for plan in plans]

    def needed(plan: _Plan) -> int:
        return cache.prefill_n_ctx(plan.stream.policy, plan.stream.n_tokens)

    _raise_too_large(cache, plans)
    largest = max((plan for plan in plans if plan.n_missing), key=needed)
    n_ctx = needed(largest)
    policy = largest.stream.policy
    window = f", window {policy.window:,}{policy.beside_window}" if policy.kind == "window" else ""
    why = (
        f"{n_missing:,} tokens to prefill, policy {policy.kind}{window}, codec {largest.encoding.codec}, "
        f"working set {n_ctx:,} tokens"
    )
    yield Planned("stream", why, run.n_tokens, n_ctx)
    rows = []
    with tapped_context(cache, n_ctx, tuple(outlines.values())) as context:
        rate = cache.rate(context, "stream")
        ensure_prefix(cache, context)
        yield from announce(cache, n_missing, rate, largest.encoding)
        done = Done(0)
        for number, plan in enumerate(plans):
            started = time.perf_counter()
            if done.is_complete:
                with beside(outlines.get(number), plan.stream, context, needed(plan)):
                    done = prefill_rest(cache, context, plan.readings, plan.stream, plan.encoding, plan.codec)
            else:  # what comes behind a cancelled one is left
                done = Done(0, is_complete=False)
            rows.append(_row(cache, plan, done.n_evaluated, time.perf_counter() - started))
            if number in outlines:
                yield from outlines[number].keep(plan.stream)
            _raise_unwritable(cache.kept)
            yield from run.unheard()
    if done.is_complete:
        yield from filled(pairs)
    return rows


def _row(cache: Cache, plan: _Plan, n_evaluated: int, seconds: float) -> IndexedDocument:
    """What is there of one document now."""
    stream = plan.stream
    n_leading = cache.kept.n_leading(stream.ids, plan.codec)
    stored = cache.kept.stored(stream.ids, plan.codec)
    return IndexedDocument(
        source=NAME_SEPARATOR.join(reading.document.source for reading in plan.readings),
        tokens_total=stream.n_tokens,
        tokens_stored_before=plan.n_stored,
        tokens_evaluated=n_evaluated,
        tokens_stored=stream.n_tokens_of(range(n_leading)),
        size_bytes=sum(run.size_bytes for run in stored),
        seconds=seconds,
        policy=stream.policy.kind,
        codec="+".join(sorted({run.codec for run in stored})) or plan.encoding.codec,
    )


def _raise_too_large(cache: Cache, plans: Sequence[_Plan]) -> None:
    """Raises StoreUnusable where the store will not take it all: before the work, not after it."""
    for codec in {plan.encoding.codec for plan in plans}:
        n_tokens = sum(plan.stream.n_tokens for plan in plans if plan.encoding.codec == codec)
        problem = too_much_for_the_store(cache, n_tokens, codec)
        if problem is not None:
            raise StoreUnusable(problem, "--store-limit SIZE allows more; --kv lazy=on with ask needs less")


def _raise_unwritable(kept: Kept) -> None:
    """Raises StoreUnusable where nothing is kept."""
    if kept.failure is not None:
        raise kept.failure
    if not kept.can_write:
        raise StoreUnusable("the store can only be read", "--store DIR names another folder")
