"""What `eval leader` found, for a person and for a program: the measures of every mode, shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from localctx.bench.repeats import rounded
from localctx.eval.leader_asking import Outcome
from localctx.eval.leader_documents import Copies, Copy
from localctx.eval.leader_measures import Examined
from localctx.values import ModelInfo

__all__ = ["LeaderReport", "outcome_json"]

SCHEMA = "localctx.eval.leader/1"
NAME_WIDTH, WIDTH = 26, 18


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
            right = {row["distance"]: _cell(row["match"]) for row in distances if row["mode"] == mode}
            yield _line(mode, [right.get(distance, "–") for distance in copies.distances])
    if changed:
        yield ""
        names = tuple(dict.fromkeys(row["perturbation"] for row in changed))
        yield _line("right, CRI-Δ", names)
        for mode in one.modes:
            cells = {
                row["perturbation"]: f"{_cell(row['match'])}, {_cell(row['cri_delta'])}"
                for row in changed
                if row["mode"] == mode
            }
            yield _line(mode, [cells.get(name, "–") for name in names])


def _line(name: str, cells: Iterable[str]) -> str:
    return f"{name:<{NAME_WIDTH}}" + "".join(f"{cell:>{WIDTH}}" for cell in cells)


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if value >= 0.01 or not value else f"{value:.1e}"
