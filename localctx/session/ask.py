"""`ask`: one question, one answer from the documents, with where it stands and what was read.

The steps: say what the documents are → cut, count, index → choose a strategy → fill the context → decode →
cite and judge.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from localctx.document import Document
from localctx.errors import UsageError
from localctx.index import LexicalIndex
from localctx.selection import Passage as Candidate
from localctx.selection import says_not_found, support, supporting_sentences, unsupported
from localctx.session.answer import Answer, Support, TokenCounts
from localctx.session.citing import cite
from localctx.session.decoding import Decoded, decode_one
from localctx.session.events import Event, Finished, Listener, Planned, Replaced, ignore_progress
from localctx.session.filling import Filling, retrieved, whole
from localctx.session.opening import index_all, introduce, sum_coverage, timed
from localctx.session.prompts import NOT_FOUND, document_messages, question_task
from localctx.session.reading import Passage
from localctx.session.run import Run, start
from localctx.session.strategy import Choice, check_strategy, choose_ask, round_n_ctx
from localctx.settings import Settings
from localctx.values import Citation, Model, Request

__all__ = ["ask"]

N_CANDIDATES = 32
"""Blocks searched for citations when the whole document was attended."""


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
    check_strategy(settings.strategy, "ask")
    run = start(documents, model, settings, listen)
    yield from introduce(run)
    with timed(run.timings, "document_ms"):
        index = index_all(run)
    try:
        yield from _answer(run, index, question)
    finally:
        index.close()


def _answer(run: Run, index: LexicalIndex, question: str) -> Iterator[Event]:
    """Everything after the documents are read."""
    with timed(run.timings, "select_ms"):
        choice, filling, request = yield from _fill(run, index, question)
    n_ctx = round_n_ctx(len(request.prompt.tokens) + run.settings.max_tokens)
    n_ctx = min(n_ctx, run.limit)
    yield Planned(choice.strategy, choice.why, run.n_tokens, n_ctx)
    with timed(run.timings, "load_ms"):
        context = run.context(n_ctx)
    try:
        decoded = yield from decode_one(context, request, run.timings, run.started, run.listen)
    finally:
        context.close()
    run.count(decoded)
    text, verdict, citations = yield from _judge(run, index, filling, decoded, question)
    coverages = []
    for reading in run.readings:
        n_read = reading.n_tokens
        if not filling.is_whole:
            n_read = sum(p.n_tokens for p in filling.passages if p.document == reading.ordinal)
        coverages.append(reading.coverage(n_read, n_read))
    coverage, documents = sum_coverage(run.readings, coverages)
    answer = Answer(
        command="ask",
        text=text,
        strategy=choice.strategy,
        support=verdict,
        finish_reason=decoded.finish_reason,
        model=run.model.info,
        n_ctx=n_ctx,
        coverage=coverage,
        question=question,
        citations=citations,
        documents=documents,
        tokens=TokenCounts(evaluated=run.n_evaluated, generated=run.n_generated),
        timings=run.timings,
        warnings=tuple(dict.fromkeys(run.warnings)),
    )
    yield Finished(answer)


def _fill(
    run: Run, index: LexicalIndex, question: str
) -> Generator[Event, None, tuple[Choice, Filling, Request]]:
    """The strategy, what goes into the context, and the request made of it; certain to fit the limit."""
    max_tokens = run.settings.max_tokens

    def request(filling: Filling) -> Request:
        messages = document_messages(filling.fragments, question_task(question))
        return run.request(messages, max_tokens)

    scaffold = len(request(Filling(())).prompt.tokens) + max_tokens
    if scaffold > run.limit:
        raise UsageError(
            f"the question and an answer of {max_tokens:,} tokens need {scaffold:,}, context {run.limit:,}",
            "a shorter question, a lower --max-tokens or a larger --ctx",
        )
    choice = choose_ask(run.settings.strategy, scaffold + run.n_tokens, run.limit)
    if choice.strategy == "exact":
        filling = whole(run)
        made = request(filling)
        n_needed = len(made.prompt.tokens) + max_tokens
        if n_needed <= run.limit:
            return choice, filling, made
        choice = choose_ask(run.settings.strategy, n_needed, run.limit)
    filling = yield from retrieved(run, index, question, run.limit - scaffold)
    return choice, filling, request(filling)


def _judge(
    run: Run, index: LexicalIndex, filling: Filling, decoded: Decoded, question: str
) -> Generator[Event, None, tuple[str, Support, tuple[Citation, ...]]]:
    """The answer's text, its support and its citations; flags what the documents do not hold."""
    text = decoded.text.strip()
    passages = filling.passages
    if filling.is_whole:
        ranked = [number for number, _ in index.search(f"{question} {text}", N_CANDIDATES).ranking]
        first_ones = range(min(N_CANDIDATES, run.n_blocks))
        passages = tuple(run.passage(number) for number in ranked or first_ones)
    for claim in unsupported(text, run.text(), question):
        yield run.warn(f"not in the document: {claim.text}")
    if decoded.finish_reason == "length":
        yield run.warn(f"the answer was cut at {run.settings.max_tokens} tokens; --max-tokens allows more")
    attended = [passage.text for passage in passages]
    verdict: Support = support(question, text, attended, absent=index.absent(question), language=run.language)
    if verdict == "none" and decoded.finish_reason == "stop" and not (text and says_not_found(text)):
        yield run.warn(
            f"replaced an answer that the document does not support: {text}"
            if text
            else "the model was silent"
        )
        text = NOT_FOUND
        yield Replaced(text)
    citations = () if verdict == "none" else _citations(run, question, text, passages)
    return text, verdict, citations


def _citations(run: Run, question: str, answer: str, passages: Sequence[Passage]) -> tuple[Citation, ...]:
    """The sentences of the passages that hold the answer, best first."""
    candidates = [Candidate(n, passage.start, passage.text) for n, passage in enumerate(passages)]
    cited = []
    for sentence in supporting_sentences(answer, candidates, question=question, language=run.language):
        document = run.readings[passages[sentence.index].document].document
        cited.append(cite(document, sentence.start, sentence.end, sentence.score))
    return tuple(cited)
