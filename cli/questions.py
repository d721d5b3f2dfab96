"""`localctx ask` with several questions: answered side by side, shown in the order they were asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from localctx.errors import LocalctxError, PartlyDone
from localctx.registry.selectors import opened_embedder, opened_reranker
from localctx.session.answer import Answer
from localctx.session.events import Failed, Finished, Overview, Text
from localctx.session.side_by_side import SideBySide
from localctx.session.strategy import choose_ask

from .running import Job, Ready, history_of, prepared, tell_shortcomings, with_warnings
from .terminal import note, print_json, write_as_is

if TYPE_CHECKING:
    from .render import Reporter

__all__ = ["answer_all"]


@dataclass(slots=True)
class _Shown:
    """Outcomes on their way to the user: each is shown when all before it are."""

    questions: Sequence[str]
    reporter: Reporter
    as_json: bool
    outcomes: dict[int, Answer | LocalctxError] = field(default_factory=dict)
    n_shown: int = 0
    told: set[str] = field(default_factory=set)

    def add(self, number: int, outcome: Answer | LocalctxError) -> None:
        """One more."""
        self.outcomes[number] = outcome
        while not self.as_json and self.n_shown in self.outcomes:
            self._show(self.questions[self.n_shown], self.outcomes[self.n_shown])
            self.n_shown += 1

    def _show(self, question: str, outcome: Answer | LocalctxError) -> None:
        separator = "\n" if self.n_shown else ""
        write_as_is(f"{separator}Q: {question}\n")
        if isinstance(outcome, Answer):
            for text in outcome.warnings:
                if text not in self.told:
                    self.reporter.line(f"warning: {text}")
            self.told.update(outcome.warnings)
            self.reporter.event(Text(outcome.text))
            self.reporter.event(Finished(outcome))
        else:
            note(f"localctx: {_one_line(outcome)}")

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.answers/1` (docs/cli.md)."""
        return {
            "schema": "localctx.answers/1",
            "answers": [self._object(number) for number in sorted(self.outcomes)],
        }

    def _object(self, number: int) -> dict[str, Any]:
        outcome = self.outcomes[number]
        if isinstance(outcome, Answer):
            return outcome.to_json()
        error = {"type": outcome.kind, "message": outcome.message, "hint": outcome.hint}
        return {"schema": "localctx.error/1", "question": self.questions[number], "error": error}


def answer_all(job: Job, questions: Sequence[str]) -> None:
    """Answer the questions and show them. Raises what the stages raise, Interrupted when it was stopped,
    PartlyDone when questions or files failed, the first question's error when all did.
    """
    with prepared(job, choose_ask) as ready:
        shown = _Shown(questions, ready.reporter, job.output.json)
        with opened_embedder(ready.settings) as embedder, opened_reranker(ready.settings) as reranker:
            asking = SideBySide(
                ready.model, ready.settings, ready.reporter.progress, embedder=embedder, reranker=reranker
            )
            with asking:
                _run(asking, job, ready, shown)
        if job.output.json:
            print_json(shown.to_json())
    outcomes = shown.outcomes.values()
    answers = [one for one in outcomes if isinstance(one, Answer)]
    was_cancelled = len(outcomes) < len(questions) or any(one.finish_reason == "cancelled" for one in answers)
    tell_shortcomings(
        ready.opened,
        was_cancelled=was_cancelled,
        is_told=job.output.json,
        problem=_problem([one for one in outcomes if isinstance(one, LocalctxError)], len(questions)),
    )


def _run(asking: SideBySide, job: Job, ready: Ready, shown: _Shown) -> None:
    """Answer what the log does not know, and show all."""
    logs = {}
    numbers = []
    for number, question in enumerate(shown.questions):
        history, asked = history_of(
            job, (question,), ready.opened.documents, ready.model, ready.settings, is_batched=True
        )
        key, found = history.find(asked)
        if found is not None:
            shown.add(number, with_warnings(found, ready.opened))
            continue
        logs[number] = (history, asked, key)
        numbers.append(number)
        asking.submit(ready.opened.documents, question)
    for ticket, event in asking:
        number = numbers[ticket]
        if isinstance(event, Finished):
            history, asked, key = logs[number]
            history.add(asked, key, event.answer)
            shown.add(number, with_warnings(event.answer, ready.opened))
        elif isinstance(event, Failed):
            shown.add(number, event.error)
        elif isinstance(event, Overview) and ticket == 0:
            ready.reporter.event(event)


def _problem(errors: Sequence[LocalctxError], n_questions: int) -> LocalctxError | None:
    """What the exit code says of the questions that failed."""
    if errors and len(errors) == n_questions:
        return errors[0]
    return PartlyDone(f"{len(errors)} of {n_questions} questions could not be answered") if errors else None


def _one_line(error: LocalctxError) -> str:
    return " ".join(f"{error.message}{f' ({error.hint})' if error.hint else ''}".split())
