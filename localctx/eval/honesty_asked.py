"""How honest is `ask` with a model: right, wrong and declined answers on short generated documents.

A question of which the document holds no answer should be declined: what is not is a false answer, and one
that is called supported a false claim.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localctx.document import open_document
from localctx.eval.honesty_texts import NOWHERE, Case, Split, Text, texts
from localctx.session.answer import Answer
from localctx.session.ask import ask
from localctx.session.events import Finished
from localctx.settings import Settings
from localctx.values import Model

__all__ = ["AskedReport", "Outcome", "ask_generated"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was answered to one question. is_right: the document's value is in the answer."""

    language: str
    question_kind: str
    question: str
    answer: str
    support: str
    is_right: bool

    @property
    def is_declined(self) -> bool:
        """Whether the answer says that the document does not hold one."""
        return self.support == "none"


@dataclass(frozen=True, slots=True)
class AskedReport:
    """All outcomes."""

    outcomes: tuple[Outcome, ...]

    def rates(self) -> dict[str, tuple[int, int]]:
        """The figures that matter, as (hits, of how many)."""
        there = [one for one in self.outcomes if one.question_kind not in NOWHERE]
        nowhere = [one for one in self.outcomes if one.question_kind in NOWHERE]
        supported = [one for one in self.outcomes if one.support == "supported"]
        return {
            "accuracy": _share(there, lambda one: one.is_right and not one.is_declined),
            "right answers declined": _share([o for o in there if o.is_right], lambda one: one.is_declined),
            "wrong answers declined": _share(
                [o for o in there if not o.is_right], lambda one: one.is_declined
            ),
            "false answers": _share(nowhere, lambda one: not one.is_declined),
            "false answers called supported": _share(nowhere, lambda one: one.support == "supported"),
            "supported answers right": _share(supported, lambda one: one.is_right),
            **{
                f"false answers, {kind}": _share(
                    [one for one in nowhere if one.question_kind == kind], lambda one: not one.is_declined
                )
                for kind in NOWHERE
            },
        }

    def to_json(self) -> dict[str, Any]:
        """Schema `localctx.eval.honesty.asked/1`."""
        return {
            "schema": "localctx.eval.honesty.asked/1",
            "rates": {name: {"n": n, "of": of} for name, (n, of) in self.rates().items()},
            "answers": [
                {
                    "question": one.question,
                    "kind": one.question_kind,
                    "answer": one.answer,
                    "support": one.support,
                    "right": one.is_right,
                }
                for one in self.outcomes
            ],
        }

    def lines(self) -> Iterator[str]:
        """The figures for people."""
        for name, (n, of) in self.rates().items():
            yield f"{name}: {n} of {of} ({n / max(1, of):.1%})"


def ask_generated(
    model: Model,
    settings: Settings,
    split: Split = "judge",
    *,
    n_seeds: int = 1,
    languages: Sequence[str] = ("en",),
    told: Callable[[Outcome], None] = lambda outcome: None,
) -> AskedReport:
    """Ask each question of each generated document once; n_seeds documents of each of three kinds."""
    outcomes = []
    for language in languages:
        for text in texts(split, language, n_seeds):
            for outcome in _ask_about(text, model, settings):
                told(outcome)
                outcomes.append(outcome)
    return AskedReport(tuple(outcomes))


def _ask_about(text: Text, model: Model, settings: Settings) -> Iterator[Outcome]:
    """The outcome of every question of a document."""
    asked: dict[str, Case] = {}
    for case in text.cases:
        asked.setdefault(case.question, case)
    with tempfile.TemporaryDirectory(prefix="localctx-") as folder:
        path = Path(folder, "document.md")
        path.write_text(text.markdown, "utf-8")
        with open_document(str(path), cache_dir=None) as document:
            for case in asked.values():
                *_, last = ask([document], model, case.question, settings)
                if isinstance(last, Finished):
                    yield _outcome(text, case, last.answer)


def _outcome(text: Text, case: Case, answer: Answer) -> Outcome:
    """What an answer is worth; the one that was taken back is judged by its warning."""
    said = " ".join([answer.text, *(w for w in answer.warnings if w.startswith("replaced"))])
    is_right = bool(case.value) and case.value.casefold() in said.casefold()
    return Outcome(text.language, case.question_kind, case.question, said, answer.support, is_right)


def _share(outcomes: Sequence[Outcome], is_so: Callable[[Outcome], bool]) -> tuple[int, int]:
    return sum(map(is_so, outcomes)), len(outcomes)
