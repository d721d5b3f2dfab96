"""`ask`: one question, one answer from the documents, with where it stands and what was read.

The steps: say what the documents are → cut, count, index → choose a strategy → fill the context → decode →
cite and judge.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from localctx.document import Document
from localctx.engine.embedder import EmbedderFile
from localctx.engine.reranker import RerankerFile
from localctx.errors import NotComposable, UsageError
from localctx.index import LexicalIndex
from localctx.session.answer import Answer, TokenCounts
from localctx.session.attending import documents_end, exact_stream, joint_stream, restored_whole
from localctx.session.cache import Cache, opened_cache
from localctx.session.condense_filling import condensed
from localctx.session.counted import count_events
from localctx.session.decoding import Decoded, decode_one
from localctx.session.events import (
    CHOSEN,
    DECODED,
    Event,
    Finished,
    Listener,
    Planned,
    ignore_progress,
)
from localctx.session.filling import Filling, retrieved, whole
from localctx.session.judging import judge
from localctx.session.kept import Kept, kept_or_opened
from localctx.session.one_context import Held, QuestionCache, sharing_one_context
from localctx.session.opening import index_all, introduce, sum_coverage, timed
from localctx.session.placing import Placed, decode_placed
from localctx.session.prompts import document_messages
from localctx.session.provenance import Coverage
from localctx.session.run import Run, start
from localctx.session.snapshots import SnapshotContext, WholeState
from localctx.session.strategy import Choice, check_strategy, choose_ask, round_n_ctx
from localctx.session.streaming import stream_reason, streamed
from localctx.settings import Settings
from localctx.values import Message, Model, Request

__all__ = ["Decoding", "answered", "ask", "check_question"]


def ask(
    documents: Sequence[Document],
    model: Model,
    question: str,
    settings: Settings,
    listen: Listener = ignore_progress,
    *,
    held: Held | None = None,
    blocks: Sequence[int] | None = None,
    embedder: EmbedderFile | str | None = None,
    reranker: RerankerFile | None = None,
) -> Iterator[Event]:
    """Answer `question` from the documents, telling each step; the last event is Finished.

    `held`: what earlier questions left, which stays open, in a conversation with its turns; default: the
    store of the settings, and a context for this question · `blocks`: running numbers of the blocks to attend
    to, where not all are: the first ones that fit; default: those that the question points at · `embedder`:
    finds passages in other words than the question's; or why there is none · `reranker`: judges the best of
    them again.
    Raises UsageError for an empty question or a strategy that does not fit, OutOfMemory, StoreUnusable where
    lazy=off asks for what the store cannot take, and what the documents raise.
    """
    check_question(question, settings)
    if held is not None:
        held.kept.begin_question()
    run = start(documents, model, settings, listen)
    run.blocks = None if blocks is None else tuple(blocks)
    run.embedder, run.reranker = embedder, reranker
    run.dialogue = None if held is None else held.dialogue
    yield from introduce(run)
    if counted := count_events(run, question):
        return (yield from counted)
    with timed(run.timings, "document_ms"):
        index = index_all(run)
    with index:
        yield from answered(run, index, question, held)


def check_question(question: str, settings: Settings) -> None:
    """Raises UsageError for an empty question or a strategy that is not for questions."""
    if not question.strip():
        raise UsageError("the question is empty", "-q 'What does the document say about …?'")
    check_strategy(settings.strategy, "ask")


class Decoding(Protocol):
    """Where an answer is decoded, when that is not in a context of its own."""

    @property
    def shares_beginnings(self) -> bool:
        """Whether prompts that begin alike have that in common, or each would evaluate all of it."""

    @property
    def n_ctx(self) -> int:
        """Cells of the context that it was decoded in."""

    def request(self, run: Run, request: Request) -> Generator[Event, None, Decoded]:
        """The answer to a prompt of tokens alone."""

    def placed(self, cache: Cache, placed: Placed) -> Generator[Event, None, Decoded]:
        """The answer behind kept KV. Raises NotComposable before anything is said."""


def answered(
    run: Run, index: LexicalIndex, question: str, held: Held | None = None, decoding: Decoding | None = None
) -> Iterator[Event]:
    """Answer from the documents that were read and indexed; raises what ask() does. `held`: see there."""
    kept = None if held is None else held.kept
    with opened_cache(run, run.task(question), kept) as found:
        if isinstance(found, str):
            yield from _answer(run, index, question, found, kept, decoding)
            return
        try:
            with sharing_one_context(found, held) as cache:
                yield from _answer(run, index, question, cache, found.kept, decoding)
        except NotComposable as error:  # found out by trying, before anything was said
            if run.settings.strategy == "stream":
                raise
            yield run.warn(f"{error.message}; {error.hint}")
            if held is not None:
                held.context.close()
            yield from _answer(run, index, question, error.message, found.kept, decoding)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A strategy, what goes into the context (n_prompt tokens), and where it comes from: text or kept KV.

    n_head: the first tokens of a request that are the same for every question, where their state may be kept.
    """

    choice: Choice
    filling: Filling
    n_prompt: int
    source: Request | tuple[QuestionCache, Placed]
    n_head: int = 0


def _answer(
    run: Run,
    index: LexicalIndex,
    question: str,
    cache: QuestionCache | str,
    kept: Kept | None,
    decoding: Decoding | None,
) -> Iterator[Event]:
    """Everything after the documents are read; `cache`, or why there is none."""
    prepared = yield from _prepare(run, index, question, cache)
    choice, filling = prepared.choice, prepared.filling
    n_ctx = min(round_n_ctx(prepared.n_prompt + run.settings.max_tokens), run.limit)
    if choice.strategy != "stream":  # that one is told before it prefills
        yield Planned(choice.strategy, choice.why, run.n_tokens, n_ctx)
        if unused := ",".join(_unused(run, choice)):
            yield run.warn(
                f"--kv {unused} is for stored KV (--strategy stream); this answer is {choice.strategy}"
            )
    yield from run.unheard()
    if decoding is not None:
        yield CHOSEN
    decoded, n_ctx = yield from _decode(run, prepared, n_ctx, cache, kept, decoding)
    if decoding is not None:
        yield DECODED
    yield from run.unheard()
    run.count(decoded)
    text, judged, citations = yield from judge(run, index, filling, decoded, run.sought(question))
    coverage, documents = sum_coverage(run.readings, _coverages(run, prepared))
    answer = Answer(
        command="ask",
        text=text,
        strategy=choice.strategy,
        support=judged.verdict,
        finish_reason=decoded.finish_reason,
        model=run.model.info,
        n_ctx=n_ctx,
        requested=run.settings.requested,
        coverage=coverage,
        question=question,
        citations=citations,
        statements=judged.statements,
        documents=documents,
        tokens=TokenCounts(run.n_evaluated, run.n_restored, run.n_generated),
        timings=run.timings,
        warnings=tuple(dict.fromkeys(run.warnings)),
        selection=run.selection,
    )
    yield Finished(answer)


def _unused(run: Run, choice: Choice) -> list[str]:
    """Cache settings that this answer does not look at."""
    is_budgeted, texts = choice.strategy == "condense", run.settings.cache.only_for_stream
    return [text for text in texts if not (is_budgeted and text.startswith("budget="))]


def _decode(
    run: Run,
    prepared: _Prepared,
    n_ctx: int,
    cache: QuestionCache | str,
    kept: Kept | None,
    decoding: Decoding | None,
) -> Generator[Event, None, tuple[Decoded, int]]:
    """The answer, and the cells of its context: one of its own where it goes on from a state kept whole."""
    if not isinstance(prepared.source, Request):
        shared, placed = prepared.source
        if decoding is not None:
            return (yield from decoding.placed(shared, placed)), decoding.n_ctx
        decoded = yield from decode_placed(shared, placed, n_ctx)
        return decoded, shared.n_ctx or n_ctx
    if not isinstance(cache, str):
        cache.open.close()  # its memory is for the other one now
    if decoding is not None and (decoding.shares_beginnings or not prepared.n_head):
        return (yield from decoding.request(run, prepared.source)), decoding.n_ctx
    return (yield from _decode_alone(run, prepared.source, n_ctx, prepared.n_head, kept)), n_ctx


def _decode_alone(
    run: Run, request: Request, n_ctx: int, n_head: int, kept: Kept | None
) -> Generator[Event, None, Decoded]:
    """Answer in a context of its own; the state after the first n_head tokens is kept, or put back."""
    with timed(run.timings, "load_ms"):
        context = run.context(n_ctx)
    try:
        if n_head and isinstance(context, SnapshotContext):
            with kept_or_opened(run, kept) as at_hand:
                state = WholeState(run, at_hand, request.prompt.tokens[:n_head])
                try:
                    filled = yield from state.fill(context)
                except NotComposable as error:
                    yield run.warn(f"{run.model.info.name} {error.message}: each question reads all anew")
                else:
                    if filled.is_cancelled:
                        return Decoded(0, "", "cancelled", 0, 0)
        return (yield from decode_one(context, request, run.timings, run.started, run.listen))
    finally:
        context.close()


def _coverages(run: Run, prepared: _Prepared) -> list[Coverage]:
    """What was read and attended of each document."""
    filling, source = prepared.filling, prepared.source
    coverages = []
    for reading in run.readings:
        n_attended = n_read = reading.n_tokens
        if not filling.is_whole:
            n_attended = sum(p.n_tokens for p in filling.passages if p.document == reading.ordinal)
            n_read = n_attended if isinstance(source, Request) else source[1].n_read[reading.ordinal]
        pulled = tuple(one for one in run.pulled if one.source == reading.document.source)
        coverage = reading.coverage(max(n_read, n_attended), n_attended)
        coverages.append(replace(coverage, pulled_in_by_reference=pulled))
    return coverages


def _prepare(
    run: Run, index: LexicalIndex, question: str, cache: QuestionCache | str
) -> Generator[Event, None, _Prepared]:
    """The strategy, what goes into the context, and the request made of it; certain to fit the limit."""
    max_tokens, task = run.settings.max_tokens, run.task(question)

    def request(filling: Filling) -> Request:
        return run.request(document_messages(filling.fragments, task, run.turns or ()), max_tokens)

    scaffold = len(request(Filling(())).prompt.tokens) + max_tokens
    if scaffold > run.limit:
        raise UsageError(
            f"the question and an answer of {max_tokens:,} tokens need {scaffold:,}, context {run.limit:,}",
            "a shorter question, a lower --max-tokens or a larger --ctx",
        )
    n_needed = scaffold + run.n_tokens
    stream = yield from stream_reason(run, cache, fits=n_needed <= run.limit)
    choice = choose_ask(run.settings.strategy, n_needed, run.limit, stream)
    if choice.strategy == "exact":
        if len(run.readings) == 1 and not isinstance(cache, str):  # its text need not be in memory
            placed = restored_whole(cache, exact_stream(cache))
            if placed is not None:
                n_prompt = placed.n_tokens + len(cache.frame.after)
                return _Prepared(choice, Filling((), is_whole=True), n_prompt, (cache, placed))
        filling = whole(run)
        made = request(filling)
        n_needed = len(made.prompt.tokens) + max_tokens
        if n_needed <= run.limit:
            messages = document_messages(filling.fragments, task, run.turns or ())
            return _whole_prepared(choice, filling, made, messages, cache)
        choice = choose_ask(run.settings.strategy, n_needed, run.limit, stream)
    with timed(run.timings, "select_ms"):
        if choice.strategy == "stream" and not isinstance(cache, str):
            yield Planned(choice.strategy, choice.why, run.n_tokens, run.limit)
            placed = yield from streamed(cache, index, run.sought(question), run.stored_limit - scaffold)
            n_prompt = placed.n_tokens + len(cache.frame.after)
            return _Prepared(choice, Filling((), placed.passages), n_prompt, (cache, placed))
        fill = condensed if choice.strategy == "condense" else retrieved
        filling = yield from fill(run, index, run.sought(question), run.limit - scaffold)
    made = request(filling)
    return _Prepared(choice, filling, len(made.prompt.tokens), made)


def _whole_prepared(
    choice: Choice, filling: Filling, made: Request, messages: Sequence[Message], cache: QuestionCache | str
) -> _Prepared:
    """All documents, from kept KV where it can be cut, else with their state kept whole."""
    n_prompt = len(made.prompt.tokens)
    if isinstance(cache, str):
        end = documents_end(made.prompt, messages)
        return _Prepared(choice, filling, n_prompt, made, end or 0)
    stream = joint_stream(cache, made.prompt, messages)
    placed = None if stream is None else restored_whole(cache, stream)
    return _Prepared(choice, filling, n_prompt, made if placed is None else (cache, placed))
