"""`ask`: one question, one answer from the documents, with where it stands and what was read.

The steps: say what the documents are → cut, count, index → choose a strategy → fill the context → decode →
cite and judge.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from localctx.document import Document
from localctx.errors import UsageError
from localctx.index import LexicalIndex
from localctx.selection import (
    Passage as Candidate,
)
from localctx.selection import (
    choose,
    question_traits,
    says_not_found,
    support,
    supporting_sentences,
    text_key,
    unsupported,
)
from localctx.session.answer import Answer, Support, Timings, TokenCounts
from localctx.session.citing import cite
from localctx.session.decoding import Decoded, decode_one
from localctx.session.events import Event, Finished, Listener, Notice, Planned, Text, ignore_progress
from localctx.session.opening import index_all, introduce, sum_coverage, timed
from localctx.session.prompts import NOT_FOUND, document_messages, question_task
from localctx.session.reading import Passage, Reading
from localctx.session.strategy import choose_ask, round_n_ctx
from localctx.settings import Settings
from localctx.values import Citation, Message, Model, Request, Sampling

__all__ = ["ask"]

MAX_BLOCKS = 6
"""Blocks retrieved at most: measured, a small model answers 20 of 20 from 4 blocks and 12 of 20 from 12."""
N_CANDIDATES = 32
"""Blocks searched for citations when the whole document was attended."""
HEADER_TOKENS = 48
"""Allowed for one header line before its blocks are chosen."""


@dataclass(slots=True)
class _Run:
    """One question on its way through the steps."""

    readings: list[Reading]
    model: Model
    question: str
    settings: Settings
    listen: Listener
    timings: Timings = field(default_factory=Timings)
    warnings: list[str] = field(default_factory=list)

    def passage(self, index: int) -> Passage:
        """The block with running number `index`."""
        for reading in self.readings:
            if index < reading.n_blocks:
                return reading.passage(index)
            index -= reading.n_blocks
        raise IndexError(index)

    @property
    def n_tokens(self) -> int:
        return sum(reading.n_tokens for reading in self.readings)

    @property
    def n_blocks(self) -> int:
        return sum(reading.n_blocks for reading in self.readings)

    def warn(self, text: str) -> Notice:
        """Keep a warning for the answer and tell it now."""
        self.warnings.append(text)
        return Notice(text)


@dataclass(frozen=True, slots=True)
class _Filling:
    """What goes into the context: the text's fragments, and the passages they are made of."""

    fragments: tuple[str, ...]
    passages: tuple[Passage, ...]
    whole: bool


def ask(
    documents: Sequence[Document],
    model: Model,
    question: str,
    settings: Settings,
    listen: Listener = ignore_progress,
) -> Iterator[Event]:
    """Answer `question` from the documents, telling each step; the last event is Finished.

    Raises UsageError for an empty question or a strategy that does not fit, OutOfMemory, and what the
    documents raise.
    """
    if not question.strip():
        raise UsageError("the question is empty", "-q 'What does the document say about …?'")
    started = time.perf_counter()
    run = _Run([Reading(d, n) for n, d in enumerate(documents)], model, question, settings, listen)
    for document in documents:
        run.warnings.extend(document.warnings)
    limit = model.usable_n_ctx(settings.ctx)
    yield from introduce(run.readings, model)
    with timed(run.timings, "document_ms"):
        index = index_all(run.readings, model, listen)
    try:
        yield from _answer(run, index, limit, started)
    finally:
        index.close()


def _answer(run: _Run, index: LexicalIndex, limit: int, started: float) -> Iterator[Event]:
    """Everything after the documents are read."""
    scaffold = len(run.model.prompt(_messages(run, ())).tokens) + run.settings.max_tokens
    headers = HEADER_TOKENS * len(run.readings)
    choice = choose_ask(run.settings.strategy, scaffold + headers + run.n_tokens, limit)
    with timed(run.timings, "select_ms"):
        if choice.strategy == "exact":
            filling = _whole(run)
        else:
            filling = yield from _retrieved(run, index, limit - scaffold)
    prompt = run.model.prompt(_messages(run, filling.fragments))
    run.warnings.extend(prompt.notices)
    n_ctx = run.settings.ctx or round_n_ctx(len(prompt.tokens) + run.settings.max_tokens)
    yield Planned(choice.strategy, choice.why, run.n_tokens, n_ctx)
    with timed(run.timings, "load_ms"):
        context = run.model.open_context(n_ctx)
    try:
        request = Request(prompt, _sampling(run.settings))
        decoded = yield from decode_one(context, request, run.timings, started, run.listen)
    finally:
        context.close()
    yield from _judge(run, index, filling, decoded, choice.strategy, n_ctx)


def _messages(run: _Run, fragments: Sequence[str]) -> list[Message]:
    return document_messages(fragments, question_task(run.question))


def _sampling(settings: Settings) -> Sampling:
    return Sampling(
        temperature=settings.temp,
        top_p=settings.top_p,
        top_k=settings.top_k,
        min_p=settings.min_p,
        seed=settings.seed,
        max_tokens=settings.max_tokens,
    )


def _whole(run: _Run) -> _Filling:
    """Every document whole; each led by its name where there are several."""
    fragments: list[str] = []
    for reading in run.readings:
        if len(run.readings) > 1:
            fragments.append(f"[{reading.document.source}]\n")
        fragments.append(reading.document.read(0, reading.document.text.n_code_points))
        fragments.append("\n\n")
    return _Filling(tuple(fragments[:-1]), (), whole=True)


def _retrieved(run: _Run, index: LexicalIndex, budget: int) -> Generator[Event, None, _Filling]:
    """The few blocks that the question points at, each led by its header line, in document order."""
    traits = question_traits(run.question)
    if traits.needs_whole_document:
        yield run.warn(
            f"a {traits.kind} question needs the whole document, and only the best passages are read: "
            "the answer may be incomplete"
        )
    hits = index.search(run.question)
    ranked = [number for number, _ in hits.ranking[: 16 * MAX_BLOCKS]]
    keys: list[Hashable] = list(range(run.n_blocks))
    for number in ranked:
        keys[number] = text_key(run.passage(number).text)
    costs = [n for reading in run.readings for n in reading.block_tokens]
    selection = choose(
        hits.scores(),
        costs,
        budget_tokens=budget,
        max_blocks=MAX_BLOCKS,
        header_tokens=HEADER_TOKENS,
        text_keys=keys,
    )
    chosen = list(selection.indices)
    if selection.outcome == "nothing fits":
        raise UsageError("the context is too small for a single passage", "raise --ctx or lower --max-tokens")
    if not chosen:
        yield run.warn(
            "no passage shares a word with the question: the beginning of the document is read instead"
        )
        chosen = _first_fitting(costs, budget)
    passages = tuple(run.passage(number) for number in chosen)
    fragments: list[str] = []
    for passage in passages:
        fragments += [passage.header + "\n", passage.text.strip(), "\n\n"]
    return _Filling(tuple(fragments[:-1]), passages, whole=False)


def _first_fitting(costs: Sequence[int], budget: int) -> list[int]:
    """The first blocks within the budget, at most MAX_BLOCKS."""
    chosen: list[int] = []
    for number, cost in enumerate(costs[:MAX_BLOCKS]):
        budget -= cost + HEADER_TOKENS
        if budget < 0:
            break
        chosen.append(number)
    return chosen


def _judge(
    run: _Run, index: LexicalIndex, filling: _Filling, decoded: Decoded, strategy: str, n_ctx: int
) -> Iterator[Event]:
    """Cite, judge the support, flag what the documents do not hold, and finish."""
    text = decoded.text.strip()
    passages = filling.passages
    if filling.whole:
        hits = index.search(f"{run.question} {text}", N_CANDIDATES)
        passages = tuple(run.passage(number) for number, _ in hits.ranking)
    language = run.readings[0].document.language or "en"
    verdict: Support = support(
        run.question, text, [p.text for p in passages], absent=index.absent(run.question), language=language
    )
    for claim in unsupported(text, _all_text(run), run.question):
        yield run.warn(f"not in the document: {claim.text}")
    if decoded.finish_reason == "length":
        yield run.warn(f"the answer was cut at {run.settings.max_tokens} tokens; --max-tokens allows more")
    if verdict == "none" and not says_not_found(text):
        run.warnings.append(f"replaced an answer that the document does not support: {text}")
        yield Text(f"\n{NOT_FOUND}")
        text = NOT_FOUND
    citations = () if verdict == "none" else _citations(run, text, passages, language)
    yield Finished(_finished(run, filling, decoded, strategy, n_ctx, text, verdict, citations))


def _all_text(run: _Run) -> Iterator[str]:
    for reading in run.readings:
        yield from reading.document.text.stream()


def _citations(run: _Run, answer: str, passages: Sequence[Passage], language: str) -> tuple[Citation, ...]:
    """The sentences of the passages that hold the answer, best first."""
    candidates = [Candidate(n, passage.start, passage.text) for n, passage in enumerate(passages)]
    found = supporting_sentences(answer, candidates, question=run.question, language=language)
    cited = []
    for sentence in found:
        document = run.readings[passages[sentence.index].document].document
        cited.append(cite(document, sentence.start, sentence.end, sentence.score))
    return tuple(cited)


def _finished(
    run: _Run,
    filling: _Filling,
    decoded: Decoded,
    strategy: str,
    n_ctx: int,
    text: str,
    verdict: Support,
    citations: tuple[Citation, ...],
) -> Answer:
    coverages = []
    for reading in run.readings:
        n_read = reading.n_tokens
        if not filling.whole:
            n_read = sum(p.n_tokens for p in filling.passages if p.document == reading.ordinal)
        coverages.append(reading.coverage(n_read, n_read))
    coverage, documents = sum_coverage([r.document for r in run.readings], coverages)
    return Answer(
        command="ask",
        text=text,
        strategy=strategy,  # type: ignore[arg-type]
        support=verdict,
        finish_reason=decoded.finish_reason,
        model=run.model.info,
        n_ctx=n_ctx,
        coverage=coverage,
        question=run.question,
        citations=citations,
        documents=documents,
        tokens=TokenCounts(evaluated=decoded.n_evaluated, generated=decoded.n_generated),
        timings=run.timings,
        warnings=tuple(dict.fromkeys(run.warnings)),
    )
