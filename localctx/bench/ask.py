"""The first token of an answer from stored KV, beside evaluating the same passages again and text retrieval.

The document is cut, searched and prefilled into a store before; the model is loaded. From then on each way is
what a question takes until its first token is sampled:

    stored       as the second question of a session, whose store and context are open: passages selected,
                 their runs read and checked, KV composed and put in, what is not stored evaluated (refresh=0:
                 header lines and the question; auto: what `--kv refresh=auto` evaluates again as well; again:
                 auto, asked of this store before; cold: refresh=0 after the system was told to forget what it
                 holds of the store's files)
    re-prefill   in such a context, emptied, the tokens of `auto` (prefix, header lines, passages,
                 question) evaluated; selecting them is not counted
    retrieve     `--strategy retrieve`: passages selected, context opened, prompt evaluated
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from localctx.assemble import Layout
from localctx.bench.ask_report import PARTS, Asked, Headed, Report
from localctx.bench.ask_session import Session, disk_bytes, forget, session
from localctx.bench.inputs import BUILT_IN, check_length, document_of, kv_model, temporary_store
from localctx.bench.machine import machine
from localctx.bench.meters import Meter
from localctx.bench.observed import rate_between
from localctx.bench.questions import questions_of
from localctx.bench.repeats import check_repeats, in_turns
from localctx.document import Document
from localctx.errors import Interrupted, NotComposable, UsageError
from localctx.index import LexicalIndex
from localctx.kv import KVContext
from localctx.session.cache import KVModel, opened_cache
from localctx.session.decoding import Decoded, decode_one
from localctx.session.events import Progress, ignore_progress, result_of
from localctx.session.filling import retrieved
from localctx.session.indexed import Indexed, IndexedDocument
from localctx.session.indexing import index_documents
from localctx.session.one_context import Held, QuestionCache, sharing_one_context
from localctx.session.opening import index_all, timed
from localctx.session.placing import decode_placed
from localctx.session.prompts import document_messages, question_task
from localctx.session.run import Run, start
from localctx.session.strategy import round_n_ctx
from localctx.session.streaming import streamed
from localctx.settings import Settings
from localctx.values import Model, Prompt

__all__ = ["STORED", "WAYS", "Asking", "indexed_document", "learn_speed", "measure"]

STORED = ("stored, refresh=0", "stored, cold", "stored, refresh=auto", "stored, again")
WAYS = (*STORED, "re-prefill", "retrieve")
AT_ZERO, COLD, AT_AUTO, AGAIN, RE_PREFILL, RETRIEVE = WAYS
PROBE_TOKENS = 256


@dataclass(frozen=True, slots=True)
class Asking:
    """The questions, or how many are made from the text's words, and how often each is asked in each way."""

    questions: tuple[str, ...] = ()
    n_made: int = 4
    n_repeats: int = 3

    def check(self) -> None:
        """Raises UsageError for what makes no sense."""
        check_repeats(self.n_repeats)
        if self.n_made < 1 or any(not question.strip() for question in self.questions):
            raise UsageError("there is no question", "--questions 1 or more, or -q TEXT")


def measure(
    model: Model,
    settings: Settings,
    source: str | None,
    n_tokens: int | None,
    asking: Asking,
    say: Callable[[str], None],
) -> Report:
    """Every question in every way, by turns; `say` is told each outcome.

    source None: the built-in text. Raises UsageError for a text that is too short, an empty question, or a
    context that cannot be, NotComposable, StoreUnusable.
    """
    asking.check()
    able = kv_model(model)
    facts = machine(settings.threads)
    with (
        temporary_store(settings) as (own, folder),
        document_of(source, own, model, n_tokens, folder) as document,
    ):
        run = start([document], able, own, ignore_progress)
        with index_all(run) as index:
            check_length(source, run.n_tokens)
            say("indexing")
            with Meter() as meter:
                indexed, rates = indexed_document(able, own, document)
            learn_speed(run)
            texts = list(asking.questions) or questions_of(run, asking.n_made)
            others = [text for text in questions_of(run, len(texts) + 1) if text not in texts]
            asker = _Asker(run, index, folder, others[0] if others else f"{texts[0]} When?")
            rows = [asker.ask(text, asking.n_repeats, say) for text in texts]
    indexed = replace(indexed, source=source or BUILT_IN)
    asked = tuple(one for row in rows for one in row)
    return Report(model.info, facts, indexed, rates, meter.taken, asking.n_repeats, asked)


def indexed_document(
    model: KVModel, settings: Settings, document: Document
) -> tuple[IndexedDocument, tuple[float, float]]:
    """The document in the store, as `localctx index --strategy stream` leaves it; tokens a second of the
    first and the last quarter.
    """
    marks = [(time.perf_counter(), 0)]

    def listen(progress: Progress) -> None:
        if progress.what == "prefill" and progress.done > marks[-1][1]:
            marks.append((time.perf_counter(), progress.done))

    events = index_documents([document], model, replace(settings, strategy="stream"), listen)
    done = [event for event in events if isinstance(event, Indexed)]
    if not done or done[0].was_cancelled:
        raise Interrupted("interrupted")
    if len(marks) > 2:  # from the first chunk on: before it the model is loaded
        marks = [(seconds, n_tokens - marks[1][1]) for seconds, n_tokens in marks[1:]]
    return done[0].documents[0], (rate_between(marks, 0, 0.25), rate_between(marks, 0.75, 1))


def learn_speed(run: Run) -> None:
    """The speed that `refresh=auto` goes by is in the store then, as after earlier questions."""
    with opened_cache(run, question_task("")) as cache:
        if isinstance(cache, str):
            raise NotComposable(cache, "take another --model")
        with cache.context(len(cache.prefix) + PROBE_TOKENS) as context:
            cache.rate(context)


@dataclass(frozen=True, slots=True)
class _Timed:
    """One first token."""

    seconds: float
    n_evaluated: int
    n_restored: int
    n_prompt: int
    parts_ms: Mapping[str, float]
    headed: Headed | None = None
    n_disk_bytes: int | None = None


class _Asker:
    """Asks one question in each way; `run` has read the document, `folder` is for copies of its store: what a
    question evaluates is kept in the store it is asked of.
    """

    def __init__(self, run: Run, index: LexicalIndex, folder: Path, first_question: str) -> None:
        """first_question: asked before each that is timed."""
        self._run = run
        self._first_question = first_question
        self._index = index
        self._folder = folder
        self._prompts: dict[str, Prompt] = {}

    def ask(self, question: str, n_repeats: int, say: Callable[[str], None]) -> list[Asked]:
        """A row for each way. Each runs once before it counts, which also finds what is evaluated again."""
        with self._session() as asked_before:
            ways: dict[str, Callable[[], _Timed]] = {
                AT_ZERO: lambda: self._stored_anew(question, "0"),
                COLD: lambda: self._stored_anew(question, "0", is_cold=True),
                AT_AUTO: lambda: self._stored_anew(question, "auto"),
                AGAIN: lambda: self._stored(question, "auto", asked_before),
                RE_PREFILL: lambda: self._re_prefilled(question, asked_before),
                RETRIEVE: lambda: self._retrieved(question),
            }
            in_turns(ways, 1)
            found = in_turns(ways, n_repeats)
        rows = []
        for name, times in found.items():
            last, seconds = times[-1], tuple(one.seconds for one in times)
            counts = (last.n_evaluated, last.n_restored, last.n_prompt)
            parts_ms = {part: median(one.parts_ms[part] for one in times) for part in PARTS}
            read = [one.n_disk_bytes for one in times if one.n_disk_bytes is not None]
            n_disk_bytes = round(median(read)) if read else None
            rows.append(Asked(question, name, seconds, *counts, parts_ms, last.headed, n_disk_bytes))
            say(f"{question} {name}: {sorted(seconds)[len(seconds) // 2]:.2f} s")
        return rows

    @contextmanager
    def _session(self) -> Iterator[Session]:
        """A session in which one other question was asked."""
        with session(self._run.settings, self._folder, self._run.note) as begun:
            self._stored(self._first_question, "0", begun)
            yield begun

    def _stored_anew(self, question: str, refresh: str, *, is_cold: bool = False) -> _Timed:
        with self._session() as begun:
            if is_cold:
                forget(begun.store)
            before = disk_bytes()
            found, after = self._stored(question, refresh, begun), disk_bytes()
            return found if before is None or after is None else replace(found, n_disk_bytes=after - before)

    def _new_run(self, **changed: object) -> Run:
        """The documents as read, with counts and timings of their own, for one token."""
        run = self._run
        settings = replace(run.settings, max_tokens=1, **changed)  # type: ignore[arg-type]  # settings by name
        return replace(
            run, settings=settings, started=time.perf_counter(), warnings=[], n_evaluated=0, n_restored=0,
            n_generated=0, timings=type(run.timings)(), _unheard=[],
        )  # fmt: skip

    def _sizes(self, question: str) -> tuple[int, int]:
        """Tokens left for passages, and those of an answer as the settings have them."""
        n_answer = self._run.settings.max_tokens
        n_scaffold = len(self._run.model.prompt(document_messages((), question_task(question))).tokens)
        room = self._run.limit - n_scaffold - n_answer
        if room < 1:
            raise UsageError(f"the question does not fit a context of {self._run.limit:,}", "a larger --ctx")
        return room, n_answer

    def _n_ctx(self, n_prompt: int, n_answer: int) -> int:
        return min(round_n_ctx(n_prompt + n_answer), self._run.limit)

    def _stored(self, question: str, refresh: str, begun: Session) -> _Timed:
        room, n_answer = self._sizes(question)
        kv = ",".join(filter(None, [self._run.settings.kv, f"refresh={refresh}"]))
        run = self._new_run(kv=kv, store=str(begun.store))
        with self._cache(run, question, begun.held) as cache:
            with timed(run.timings, "select_ms"):
                placed = result_of(streamed(cache, self._index, question, room))
            layouts: list[Layout] = []

            def arrange(context: KVContext) -> Layout:
                layouts.append(placed.arrange(context))
                return layouts[-1]

            n_ctx = self._n_ctx(placed.n_tokens + len(cache.frame.suffix), n_answer)
            decoded = result_of(decode_placed(cache, replace(placed, arrange=arrange), n_ctx))
            _raise_cancelled(decoded)
            prompt = cache.frame.prompt(layouts[-1].tokens[len(cache.prefix) :])
        if refresh != "0":  # there every passage is named
            self._prompts[question] = prompt
        headed = Headed(len(placed.passages), placed.n_named, placed.n_between)
        return _timed(run, decoded, len(prompt.tokens), headed)

    def _re_prefilled(self, question: str, begun: Session) -> _Timed:
        prompt, (_, n_answer) = self._prompts[question], self._sizes(question)
        with self._cache(self._run, question, begun.held) as cache:
            context = begun.held.context.get(cache, self._n_ctx(len(prompt.tokens), n_answer))
            context.place((), ())  # nothing of it is there
            run = self._new_run()
            request = run.request_of(prompt, 1)
            decoded = result_of(decode_one(context, request, run.timings, run.started, run.listen))
        return _timed(run, decoded, len(prompt.tokens))

    @contextmanager
    def _cache(self, run: Run, question: str, held: Held) -> Iterator[QuestionCache]:
        held.kept.begin_question()
        with opened_cache(run, question_task(question), held.kept) as found:
            if isinstance(found, str):
                raise NotComposable(found, "take another --model")
            with sharing_one_context(found, held) as cache:
                yield cache

    def _retrieved(self, question: str) -> _Timed:
        room, n_answer = self._sizes(question)
        run = self._new_run()
        filling = result_of(retrieved(run, self._index, question, room))
        prompt = run.model.prompt(document_messages(filling.fragments, question_task(question)))
        context = run.context(self._n_ctx(len(prompt.tokens), n_answer))
        try:
            request = run.request_of(prompt, 1)
            decoded = result_of(decode_one(context, request, run.timings, run.started, run.listen))
        finally:
            context.close()
        return _timed(run, decoded, len(prompt.tokens))


def _raise_cancelled(decoded: Decoded) -> None:
    """Raises Interrupted."""
    if decoded.finish_reason == "cancelled":
        raise Interrupted("interrupted")


def _timed(run: Run, decoded: Decoded, n_prompt: int, headed: Headed | None = None) -> _Timed:
    _raise_cancelled(decoded)
    n_evaluated = run.n_evaluated + decoded.n_evaluated
    parts_ms = {part: getattr(run.timings, f"{part}_ms") for part in PARTS}
    return _Timed(run.timings.ttft_ms / 1000, n_evaluated, run.n_restored, n_prompt, parts_ms, headed)
