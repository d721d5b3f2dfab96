"""The measures of `eval leader` (docs/eval.md), of one document and its copies. Knows outcomes, no report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localctx.bench.repeats import rounded
from localctx.eval.documents import Question
from localctx.eval.leader_asking import LOCATED_TOKENS, WITHOUT, Outcome
from localctx.eval.leader_documents import BASE, Copies
from localctx.eval.modes import MODES
from localctx.eval.scoring import mean

__all__ = ["Examined"]

REORDERED = "shuffle"
"""The perturbation that CRI-Δ is named after."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A document and its copies, and all that came of them. skipped: why there is nothing of a mode,
    or not of every question.
    """

    copies: Copies
    outcomes: tuple[Outcome, ...]
    skipped: Mapping[str, str]

    @property
    def questions(self) -> tuple[Question, ...]:
        """In the order of Outcome.number."""
        return self.copies.copies[0].written.document.questions

    @property
    def place(self) -> dict[str, Any]:
        """What a row begins with."""
        return {"length": self.copies.length, "language": self.copies.language.code}

    @property
    def modes(self) -> list[str]:
        """In the order of MODES, those that were asked in."""
        return [mode for mode in MODES if any(one.mode == mode for one in self.outcomes)]

    def of(self, mode: str, *variants: str) -> list[Outcome]:
        """In one mode, of these copies; without any, of the base and its turns. Only questions that were
        asked in all modes: others would compare modes by different questions.
        """
        turns = [copy.name for copy in self.copies.copies if copy.distances]
        names, shared = variants or turns, self._shared
        return [
            one for one in self.outcomes if one.mode == mode and one.variant in names and one.number in shared
        ]

    @property
    def _shared(self) -> set[int]:
        """Numbers of the questions about the base that every mode was asked."""
        asked = [{one.number for one in self._of_base(mode)} for mode in self.modes]
        return set.intersection(*asked) if asked else set()

    def _of_base(self, mode: str) -> list[Outcome]:
        """Every question about the base that a mode was asked, the other modes or not."""
        return [one for one in self.outcomes if (one.mode, one.variant) == (mode, BASE)]

    def n_skipped(self, mode: str) -> int:
        """Questions about the base that were not asked in a mode."""
        return len(self.questions) - len(self._of_base(mode))

    def scores(self) -> Iterator[dict[str, Any]]:
        """A row a mode: the base as it is, LPA@5 and LDR over all distances, CRI-Δ of reordered segments."""
        for mode in self.modes:
            shuffled, without = self.of(mode, REORDERED), self.of(mode, WITHOUT)
            yield {
                **self.place,
                "mode": mode,
                **_figures(self.of(mode, BASE)),
                "lpa5": _mean(one.is_located for one in self.of(mode)),
                "cri_delta": _mean(one.kl for one in shuffled),
                "cri_value": _mean(one.kl_value for one in shuffled),
                "cri_without": _mean(one.kl for one in without),
                "ldr": self._kept(mode, self.copies.distances[-1]),
            }

    def distances(self) -> Iterator[dict[str, Any]]:
        """A row a mode and distance: the same questions at each."""
        for mode in self.modes:
            for distance in self.copies.distances:
                asked = [one for one in self.of(mode) if one.distance == distance]
                if asked:
                    yield {
                        **self.place,
                        "mode": mode,
                        "distance": distance,
                        "n_behind": round(mean(one.n_behind for one in asked) or 0),
                        "n": len(asked),
                        "match": _mean(one.score.is_match for one in asked),
                        "lpa5": _mean(one.is_located for one in asked),
                        "kept": self._kept(mode, distance),
                    }

    def perturbations(self) -> Iterator[dict[str, Any]]:
        """A row a mode and perturbation, and one without the evidence, beside the base's same questions."""
        names = [copy.name for copy in self.copies.copies if not copy.distances]
        for mode in self.modes:
            for name in (*names, WITHOUT):
                asked = self.of(mode, name)
                numbers = {one.number for one in asked}
                same = [one for one in self.of(mode, BASE) if one.number in numbers]
                if asked:
                    figures = _figures(asked)
                    yield {
                        **self.place,
                        "mode": mode,
                        "perturbation": name,
                        "n": figures["n"],
                        "match": None if name == WITHOUT else figures["match"],
                        "base_match": _figures(same)["match"],
                        "false_answers": None if name == WITHOUT else figures["false_answers"],
                        "lpa5": None if name == WITHOUT else _mean(one.is_located for one in asked),
                        "cri_delta": _mean(one.kl for one in asked),
                        "cri_value": _mean(one.kl_value for one in asked),
                    }

    def families(self) -> Iterator[dict[str, Any]]:
        """A row a mode and task family, of the base."""
        for mode in self.modes:
            for task in dict.fromkeys(question.task for question in self.questions):
                asked = [one for one in self._of_base(mode) if self.questions[one.number].task == task]
                yield {**self.place, "mode": mode, "task": task, **_figures(asked)}

    def chance(self) -> dict[str, Any]:
        """What an answerer gets that names one of the document's values, or cites a token, at random."""
        n_tokens = self.copies.copies[0].written.document.n_tokens
        single = [one for one in self.questions if len(one.gold) == 1]
        n_values = len(self.copies.plan.values)
        return {
            **self.place,
            "n_values": n_values,
            "match": rounded(1 / n_values) if single else None,
            "lpa5": rounded(min(1.0, (2 * LOCATED_TOKENS + 1) / n_tokens)),
            "cri_delta": 0.0,
            "ldr": 1.0 if len(self.copies.distances) > 1 else None,
        }

    def _kept(self, mode: str, distance: int) -> float | None:
        """LDR: right answers at a distance by those at the nearest; None where there are none."""
        if len(self.copies.distances) < 2:
            return None
        near, far = (
            mean(one.score.is_match for one in self.of(mode) if one.distance == at)
            for at in (self.copies.distances[0], distance)
        )
        return None if not near or far is None else rounded(far / near)


def _mean(values: Iterable[float | None]) -> float | None:
    found = mean(values)
    return None if found is None else rounded(found)


def _figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """match and declined of questions that have an answer, false_answers of those that have none."""
    scores = [one.score for one in outcomes]
    return {
        "n": sum(score.recall is not None for score in scores),
        "n_without_answer": sum(score.recall is None for score in scores),
        "match": _mean(score.is_match for score in scores),
        "declined": _mean(score.is_declined for score in scores if score.recall is not None),
        "false_answers": _mean(score.is_false for score in scores),
    }
