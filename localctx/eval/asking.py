"""Generated questions asked of one document in several modes, each answer scored; and how selectors rank.

Joins what the sessions offer; knows no report. Every mode asks through session.ask: what is measured is the
product, the bound included.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias, TypeVar

from localctx.document import Document
from localctx.engine.embedder import EmbedderFile
from localctx.errors import Interrupted, NotComposable
from localctx.eval.documents import GeneratedDocument, Question
from localctx.eval.modes import BOUND, EXACT, ORACLE_STORED, RANKS, REFRESH, RETRIEVE, SELECT, STREAM
from localctx.eval.scoring import Score, score
from localctx.index import LexicalIndex
from localctx.kv_values import SELECTORS
from localctx.session.answer import Answer
from localctx.session.ask import ask
from localctx.session.cache import KVModel, opened_cache
from localctx.session.embedding import embed_all
from localctx.session.events import Event, Finished, Notice, ignore_progress
from localctx.session.indexed import Indexed, IndexedDocument
from localctx.session.indexing import index_documents
from localctx.session.landmarks import landmarks_of
from localctx.session.one_context import Held
from localctx.session.opening import index_all
from localctx.session.prompts import document_messages, question_task
from localctx.session.ranking import ranked_blocks, vectors_of
from localctx.session.run import Run, start
from localctx.settings import Settings
from localctx.values import Strategy

__all__ = [
    "Answered",
    "Asked",
    "Examined",
    "Examiner",
    "block_of",
    "finished",
    "missing_selectors",
    "oracle_blocks",
    "why_not_exact",
]

LEAST_ORACLE_BLOCKS = 2
QUESTIONS_PER_REPORT = 8

Returned = TypeVar("Returned")
Ranks: TypeAlias = Mapping[str, tuple[int | None, ...]]
"""Of each selector, where it ranks the blocks of the gold spans, from 0; None: not at all."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer. n_attended: document tokens that the model had before it."""

    text: str
    support: str
    score: Score
    ttft_ms: float
    n_evaluated: int
    n_restored: int
    n_attended: int


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: where its blocks are ranked, and its answer in each mode."""

    question: Question
    ranks: Ranks
    answers: Mapping[str, Answered]


@dataclass(frozen=True, slots=True)
class Examined:
    """One document. skipped: why there is nothing of a mode or a selector · stored: as it was prefilled
    for stream, where a mode needs that.
    """

    document: GeneratedDocument
    n_tokens: int
    stored: IndexedDocument | None
    asked: tuple[Asked, ...]
    skipped: Mapping[str, str]


@dataclass(slots=True)
class Examiner:
    """Asks in `modes`; `settings` name a store that is its own · keep: is given each question when it was
    asked in all modes.
    """

    model: KVModel
    settings: Settings
    modes: Sequence[str]
    held: Held
    say: Callable[[str], None]
    keep: Callable[[GeneratedDocument, Asked], None] = lambda generated, asked: None
    embedder: EmbedderFile | str | None = None
    _no_selector: dict[str, str] = field(default_factory=dict)

    def examine(self, generated: GeneratedDocument, document: Document) -> Examined:
        """All questions about the document in all modes. Raises what sessions raise."""
        name = generated.path.name
        stored = None
        if self._needs_kv:
            self.say(f"{name}: prefilling about {generated.n_tokens:,} tokens")
            stored = self.indexed(document, "stream")
        run = start([document], self.model, self._with_rank(RANKS[0]), ignore_progress)
        run.embedder = self.embedder
        skipped: dict[str, str] = {}
        with index_all(run) as index:
            self._embed(run)
            if EXACT in self.modes and (reason := why_not_exact(run)):
                skipped[EXACT] = reason
            elif EXACT in self.modes:
                self.indexed(document, "exact")
            asked = []
            for number, question in enumerate(generated.questions, 1):
                asked.append(self._ask(run, index, document, question, skipped))
                self.keep(generated, asked[-1])
                if number % QUESTIONS_PER_REPORT == 0 or number == len(generated.questions):
                    self.say(f"{name}: {number} of {len(generated.questions)} questions asked")
            n_tokens = run.n_tokens
        return Examined(generated, n_tokens, stored, tuple(asked), {**skipped, **self._no_selector})

    def _embed(self, run: Run) -> None:
        """Make all vectors, as `index` does: a question makes few, so that the next would see others."""
        if len(self._ranks) > 1:
            run.settings = self._with_rank("fused")
            list(embed_all(run))

    @property
    def _ranks(self) -> Sequence[str]:
        return RANKS if self._needs_kv or SELECT in self.modes else RANKS[:1]

    @property
    def _needs_kv(self) -> bool:
        return any(mode in (BOUND, ORACLE_STORED) or mode.startswith(STREAM) for mode in self.modes)

    def _ask(
        self,
        run: Run,
        index: LexicalIndex,
        document: Document,
        question: Question,
        skipped: Mapping[str, str],
    ) -> Asked:
        gold = [block_of(run, span) for span in question.spans]
        rankings = self._rankings(run, index, question.text)
        ranks = {
            name: tuple(order.index(number) if number in order else None for number in gold)
            for name, order in rankings.items()
            if gold
        }
        oracle = oracle_blocks(run, gold, [number for number, _ in index.search(question.text).ranking])
        answers = {}
        for mode in self.modes:
            rank = mode.removeprefix(STREAM)
            has_no_selector = mode.startswith(STREAM) and rank not in rankings
            needs_spans = mode in (BOUND, ORACLE_STORED) and question.gold and not gold
            if not (mode == SELECT or mode in skipped or has_no_selector or needs_spans):
                answers[mode] = self._answer(document, question, mode, oracle)
        return Asked(question, ranks, answers)

    def _rankings(self, run: Run, index: LexicalIndex, question: str) -> dict[str, list[int]]:
        """Block numbers as each selector ranks them, the best first; why one cannot, at first, is noted."""
        rankings: dict[str, list[int]] = {}
        with opened_cache(run, question_task(question), self.held.kept) as cache:
            if isinstance(cache, str):
                raise NotComposable(cache, "take another --model")
            streams = [cache.whole_stream(reading) for reading in run.readings]
            for rank in self._ranks:
                run.settings = self._with_rank(rank)
                landmarks = partial(landmarks_of, cache, streams, question)
                hits, notices = _result(ranked_blocks(run, index, question, landmarks))
                if missing := missing_selectors(run):
                    reason = notices[0] if notices else vectors_of(run, question)
                    self._no_selector.setdefault(rank, f"{missing}: {reason}")
                else:
                    rankings[rank] = [number for number, _ in hits.ranking]
        return rankings

    def _answer(self, document: Document, question: Question, mode: str, oracle: Sequence[int]) -> Answered:
        settings, blocks = self.settings_of(mode), oracle if mode in (BOUND, ORACLE_STORED) else None
        events = ask(
            [document],
            self.model,
            question.text,
            settings,
            held=self.held,
            blocks=blocks,
            embedder=self.embedder,
        )
        answer = finished(events)
        return Answered(
            text=answer.text,
            support=answer.support,
            score=score(question, answer.text, answer.support),
            ttft_ms=answer.timings.ttft_ms,
            n_evaluated=answer.tokens.evaluated,
            n_restored=answer.tokens.restored,
            n_attended=answer.coverage.tokens_attended,
        )

    def settings_of(self, mode: str) -> Settings:
        """The settings that a mode answers under."""
        if mode in (EXACT, RETRIEVE):
            return replace(self.settings, strategy=mode)
        if mode == BOUND:
            return self._with_rank("lexical", "100%")
        return self._with_rank("lexical" if mode == ORACLE_STORED else mode.removeprefix(STREAM))

    def _with_rank(self, rank: str, refresh: str | None = None) -> Settings:
        """The settings for an answer from stored KV, what is evaluated again being fixed."""
        given = self.settings.cache.refresh
        share = refresh or (REFRESH if given is None else f"{100 * given:g}%")
        kv = ",".join(filter(None, [self.settings.kv, f"rank={rank}", f"refresh={share}"]))
        return replace(self.settings, strategy="stream", kv=kv)

    def indexed(self, document: Document, strategy: Strategy) -> IndexedDocument:
        """Prefill for a strategy and embed all passages, so that no question has to."""
        settings = replace(self._with_rank("fused"), strategy=strategy)
        self.held.context.close()  # its memory is for the prefill
        events = index_documents(
            [document], self.model, settings, kept=self.held.kept, embedder=self.embedder
        )
        done = [event for event in events if isinstance(event, Indexed)]
        if not done or done[0].was_cancelled:
            raise Interrupted("interrupted")
        return done[0].documents[0]


def why_not_exact(run: Run) -> str | None:
    """Why the document is not attended whole; None when it fits with a question and an answer."""
    scaffold = len(run.model.prompt(document_messages([], question_task(""))).tokens)
    n_needed = scaffold + run.n_tokens + run.settings.max_tokens
    if n_needed <= run.limit:
        return None
    return f"{n_needed:,} tokens needed, context {run.limit:,}"


def block_of(run: Run, span: tuple[int, int]) -> int:
    """The block that most of the span is in."""
    reading = run.readings[0]

    def last_from(character: int) -> int:
        numbers = range(reading.n_blocks)
        return max(0, bisect_right(numbers, character, key=lambda n: reading.span(n, n)[0]) - 1)

    def n_shared(number: int) -> int:
        start, end = reading.span(number, number)
        return min(end, span[1]) - max(start, span[0])

    return max(range(last_from(span[0]), last_from(span[1] - 1) + 1), key=n_shared)


def missing_selectors(run: Run) -> str:
    """The selectors that the settings name and the last ranking was made without."""
    named = (run.selection or {}).get("selectors")
    used = set(named) if isinstance(named, list) else set()
    wanted = [name for name in run.settings.cache.rank if name in SELECTORS]
    return ", ".join(name for name in wanted if name not in used)


def oracle_blocks(run: Run, gold: Sequence[int], ranking: Sequence[int]) -> list[int]:
    """The right blocks, and as many others, those that share most with the question: two in all at least."""
    right = list(dict.fromkeys(gold))
    n_wanted = max(LEAST_ORACLE_BLOCKS, 2 * len(right))
    others = [number for number in (*ranking, *range(run.n_blocks)) if number not in right]
    return [*right, *list(dict.fromkeys(others))[: n_wanted - len(right)]]


def finished(events: Iterator[Event]) -> Answer:
    """The answer of a session that was asked to its end. Raises Interrupted for one that was cancelled."""
    (answer,) = [event.answer for event in events if isinstance(event, Finished)]
    if answer.finish_reason == "cancelled":
        raise Interrupted("interrupted")
    return answer


def _result(steps: Generator[Event, None, Returned]) -> tuple[Returned, list[str]]:
    """What a step returns, and what it noted."""
    notices: list[str] = []
    while True:
        try:
            event = next(steps)
        except StopIteration as done:
            value: Returned = done.value
            return value, notices
        if isinstance(event, Notice):
            notices.append(event.text)
