"""`bench ask --parallel N`: many questions on one stored document, one after the other and side by side.

Each way on a copy of the store of its own, by turns, in a session that answered another question before:

    one by one     ask(), one after the other, with the context and the runs of the session
    side by side   the same questions, N at a time in one context
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localctx.bench.ask import Asking, indexed_document, learn_speed
from localctx.bench.ask_many_report import Report, Round
from localctx.bench.ask_session import session
from localctx.bench.inputs import BUILT_IN, check_length, document_of, kv_model, temporary_store
from localctx.bench.machine import machine
from localctx.bench.questions import questions_of
from localctx.bench.repeats import in_turns
from localctx.document import Document
from localctx.errors import Interrupted, LocalctxError
from localctx.session.answer import Answer
from localctx.session.ask import ask
from localctx.session.cache import KVModel
from localctx.session.events import Finished, ignore_progress
from localctx.session.one_context import Held
from localctx.session.opening import index_all
from localctx.session.run import start
from localctx.session.side_by_side import ask_many
from localctx.settings import Settings
from localctx.values import Model

__all__ = ["ONE_BY_ONE", "SIDE_BY_SIDE", "measure"]

ONE_BY_ONE, SIDE_BY_SIDE = "one by one", "side by side"


@dataclass(frozen=True, slots=True)
class _Questions:
    """What is asked, and what is asked before."""

    model: KVModel
    document: Document
    settings: Settings
    folder: Path
    first: str
    questions: Sequence[str]
    n_parallel: int

    def one_by_one(self) -> Round:
        """One after the other."""

        def run(settings: Settings, held: Held) -> list[Answer]:
            return [self._asked(question, settings, held) for question in self.questions]

        return self._timed(run)

    def side_by_side(self) -> Round:
        """Together."""

        def run(settings: Settings, held: Held) -> list[Answer]:
            outcomes = ask_many(
                [self.document],
                self.model,
                self.questions,
                settings,
                n_parallel=self.n_parallel,
                held=held,
            )
            return [_answer(outcome) for _, outcome in sorted(outcomes, key=lambda one: one[0])]

        return self._timed(run)

    def _timed(self, run: Callable[[Settings, Held], list[Answer]]) -> Round:
        with session(self.settings, self.folder, lambda text: None) as begun:
            settings = replace(self.settings, store=str(begun.store))
            self._asked(self.first, settings, begun.held)
            started, before = time.perf_counter(), time.process_time()
            answers = run(settings, begun.held)
            return Round.of(time.perf_counter() - started, time.process_time() - before, answers)

    def _asked(self, question: str, settings: Settings, held: Held) -> Answer:
        events = ask([self.document], self.model, question, settings, held=held)
        return _answer(next(event.answer for event in events if isinstance(event, Finished)))


def measure(
    model: Model,
    settings: Settings,
    source: str | None,
    n_tokens: int | None,
    asking: Asking,
    n_parallel: int,
    say: Callable[[str], None],
) -> Report:
    """Both ways, by turns; `say` is told each outcome. Raises what bench.ask.measure() does."""
    asking.check()
    able, facts = kv_model(model), machine(settings.threads)
    with (
        temporary_store(replace(settings, strategy="stream")) as (own, folder),
        document_of(source, own, model, n_tokens, folder) as document,
    ):
        run = start([document], able, own, ignore_progress)
        with index_all(run):
            check_length(source, run.n_tokens)
            say("indexing")
            indexed, _ = indexed_document(able, own, document)
            learn_speed(run)
            texts = list(asking.questions) or questions_of(run, asking.n_made)
            others = [text for text in questions_of(run, len(texts) + 1) if text not in texts]
        first = others[0] if others else f"{texts[0]} When?"
        questions = _Questions(able, document, own, folder, first, texts, n_parallel)
        ways = {ONE_BY_ONE: questions.one_by_one, SIDE_BY_SIDE: questions.side_by_side}
        rounds: dict[str, list[Round]] = {way: [] for way in ways}
        for way, found in in_turns(ways, asking.n_repeats).items():
            rounds[way] += found
            say(f"{way}: {[round(one.seconds, 2) for one in found]} s")
    indexed = replace(indexed, source=source or BUILT_IN)
    return Report(model.info, facts, indexed, n_parallel, rounds[ONE_BY_ONE], rounds[SIDE_BY_SIDE])


def _answer(outcome: Answer | LocalctxError) -> Answer:
    """Raises what kept the question from being answered, Interrupted when it was stopped."""
    if isinstance(outcome, LocalctxError):
        raise outcome
    if outcome.finish_reason == "cancelled":
        raise Interrupted("interrupted")
    return outcome
