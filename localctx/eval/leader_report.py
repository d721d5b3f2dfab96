"""What `eval leader` found, for a person and for a program: the measures of every mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from localctx.bench.repeats import rounded
from localctx.eval.documents import Question
from localctx.eval.leader_asking import LOCATED_TOKENS, WITHOUT, Outcome
from localctx.eval.leader_documents import BASE, Copies, Copy
from localctx.eval.modes import MODES
from localctx.eval.scoring import mean
from localctx.values import ModelInfo

__all__ = ["Examined", "LeaderReport", "outcome_json"]

SCHEMA = "localctx.eval.leader/1"
REORDERED = "shuffle"
"""The perturbation that CRI-Δ is named after."""
NAME_WIDTH, WIDTH = 26, 18


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
        """In one mode, of these copies; without any, of the base and its turns."""
        turns = [copy.name for copy in self.copies.copies if copy.distances]
        return [one for one in self.outcomes if one.mode == mode and one.variant in (variants or turns)]

    def n_skipped(self, mode: str) -> int:
        """Questions about the base that were not asked in a mode."""
        return len(self.questions) - len(self.of(mode, BASE))

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
                asked = [one for one in self.of(mode, BASE) if self.questions[one.number].task == task]
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


@dataclass(frozen=True, slots=True)
class LeaderReport:
    """`options`: what was asked for, as JSON values · kv: the cache settings, as typed."""

    model: ModelInfo
    machine: dict[str, Any]
    options: dict[str, Any]
    kv: str
    examined: tuple[Examined, ...]

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.eval.leader/1` (docs/eval.md)."""
        parts = ("scores", "distances", "perturbations", "families")
        return {
            "schema": SCHEMA,
            **self.options,
            "kv": self.kv,
            "machine": self.machine,
            "model": {"name": self.model.name, "fingerprint": self.model.fingerprint},
            **{name: [row for one in self.examined for row in getattr(one, name)()] for name in parts},
            "chance": [one.chance() for one in self.examined],
            "skipped": [
                {**one.place, "mode": mode, "n": one.n_skipped(mode), "reason": reason}
                for one in self.examined
                for mode, reason in one.skipped.items()
            ],
            "documents": [_copy_json(one, copy) for one in self.examined for copy in one.copies.copies],
            "plots": [plot for one in self.examined if (plot := _plot(one))],
            "questions": [
                outcome_json(one.copies, outcome) for one in self.examined for outcome in one.outcomes
            ],
        }

    @property
    def lines(self) -> list[str]:
        """The tables for a person."""
        lines: list[str] = []
        for one in self.examined:
            lines += [*_lines(one), ""]
        skipped = dict.fromkeys(
            f"no {mode} for {one.n_skipped(mode)} of {len(one.questions)} questions, "
            f"{one.copies.language.code}, {one.copies.length:,} tokens: {reason}"
            for one in self.examined
            for mode, reason in one.skipped.items()
        )
        return [*lines, *skipped] if skipped else lines[:-1]


def outcome_json(copies: Copies, outcome: Outcome) -> dict[str, Any]:
    """One question of one copy in one mode."""
    question = copies.copies[0].written.document.questions[outcome.number]
    found = asdict(outcome)
    found |= {name: None if found[name] is None else rounded(found[name]) for name in ("kl", "kl_value")}
    score = found.pop("score")
    return {
        "length": copies.length,
        "language": copies.language.code,
        "task": question.task,
        "question": question.text,
        "gold": list(question.gold),
        **found,
        **score,
    }


def _copy_json(one: Examined, copy: Copy) -> dict[str, Any]:
    document = copy.written.document
    return {
        **one.place,
        "name": document.path.name,
        "copy": copy.name,
        "n_tokens": document.n_tokens,
        "sha256": document.sha256,
    }


def _plot(one: Examined) -> dict[str, Any] | None:
    """Right answers over distances, a line a mode, as localctx.eval.plots.Plot takes them."""
    rows = list(one.distances())
    lines = {mode: [row["match"] for row in rows if row["mode"] == mode] for mode in one.modes}
    if not rows or any(len(line) != len(one.copies.distances) for line in lines.values()):
        return None
    return {
        "title": f"{one.copies.length:,} tokens, {one.place['language']}: right answers by distance",
        "x_name": "tokens from the evidence to the end",
        "y_name": "share of right answers",
        "places": list(one.copies.distances),
        "lines": lines,
        "is_log": False,
    }


# --- for a person -------------------------------------------------------------------------------------------


def _lines(one: Examined) -> Iterator[str]:
    copies, chance = one.copies, one.chance()
    n_tokens = copies.copies[0].written.document.n_tokens
    yield f"{copies.language.code}, {n_tokens:,} tokens, {len(copies.copies)} copies"
    names = ("n", "right", "declined", "false", "LPA@5", "CRI-Δ", "no evidence", "LDR")
    yield _line("mode", names)
    for row in one.scores():
        keys = ("match", "declined", "false_answers", "lpa5", "cri_delta", "cri_without", "ldr")
        yield _line(row["mode"], [str(row["n"]), *(_cell(row[key]) for key in keys)])
    at_random = ["", _cell(chance["match"]), "", "", _cell(chance["lpa5"]), "0", "", _cell(chance["ldr"])]
    yield _line("at random", at_random)
    distances, changed = list(one.distances()), list(one.perturbations())
    if distances:
        yield ""
        yield _line("right at tokens", [f"{distance:,}" for distance in copies.distances])
        for mode in one.modes:
            yield _line(mode, [_cell(row["match"]) for row in distances if row["mode"] == mode])
    if changed:
        yield ""
        yield _line("right, CRI-Δ", dict.fromkeys(row["perturbation"] for row in changed))
        for mode in one.modes:
            cells = [
                f"{_cell(row['match'])}, {_cell(row['cri_delta'])}" for row in changed if row["mode"] == mode
            ]
            yield _line(mode, cells)


def _line(name: str, cells: Iterable[str]) -> str:
    return f"{name:<{NAME_WIDTH}}" + "".join(f"{cell:>{WIDTH}}" for cell in cells)


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if value >= 0.01 or not value else f"{value:.1e}"
