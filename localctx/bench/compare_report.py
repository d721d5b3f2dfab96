"""What `bench compare` found, for a person and for a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from localctx.bench.compare_ways import DENSE, HEADERS, LAZY, TEXT, Asked
from localctx.bench.meters import Taken, taken_json
from localctx.bench.repeats import Spread, rounded
from localctx.eval.documents import Question
from localctx.eval.scoring import Score
from localctx.values import ModelInfo

__all__ = ["Prepared", "Report", "Row"]

BASELINES = (DENSE, HEADERS, TEXT)
"""Ratios are to the first of them that was measured."""
PLOTTED = (1, 2, 5, 10, 20, 50, 100)
"""Numbers of questions, preparation included."""
MEASURED = (
    "first_token_s, seconds: from the question to its first token, and to its judged answer, in a process "
    "that has loaded the model, read, cut and indexed the document; opening a context and the store is "
    "counted. prepared_s: what has to be done once before the first question. Files that were just written "
    "are still in the system's memory. Joules are those of the machine's meters meanwhile."
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was done before any question, and what of it is on the disk."""

    seconds: float = 0.0
    size_bytes: int = 0
    codec: str | None = None
    taken: Taken = field(default_factory=Taken)


@dataclass(frozen=True, slots=True)
class Row:
    """One way: a round's question after the other, the first of them each question once, with its score."""

    way: str
    asked: tuple[Asked, ...]
    scores: tuple[Score, ...]
    prepared: Prepared

    def spread(self, value: Callable[[Asked], float]) -> Spread:
        """Of one figure over all rounds."""
        return Spread.of([value(one) for one in self.asked])

    @property
    def n_right(self) -> int:
        """Questions whose answer is right and holds no other planted value."""
        return sum(one.is_match is True for one in self.scores)

    @property
    def n_declined(self) -> int:
        """Questions without an answer, that got none."""
        return sum(one.is_false is False for one in self.scores)

    @property
    def kept_bytes(self) -> int:
        """On the disk, of the document's KV."""
        found = [one.kept_bytes for one in self.asked if one.kept_bytes is not None]
        return round(median(found)) if found else self.prepared.size_bytes

    @property
    def taken(self) -> dict[str, Any]:
        """Peaks, and the joules of a question."""
        shown = taken_json([one.taken for one in self.asked], 1)
        del shown["joules_per_token"]
        return shown

    def sooner(self, baseline: Row, value: Callable[[Asked], float]) -> Spread:
        """How many times sooner than the baseline: the ratios of each round's two figures."""
        pairs = zip(baseline.asked, self.asked, strict=True)
        return Spread.of([value(other) / max(value(own), 1e-9) for other, own in pairs])


@dataclass(frozen=True, slots=True)
class Report:
    """A row a way; `missing`: why others are not there."""

    model: ModelInfo
    machine: Mapping[str, Any]
    source: str
    n_tokens: int
    questions: tuple[Question, ...]
    n_rounds: int
    max_tokens: int
    rows: tuple[Row, ...]
    missing: Mapping[str, str]

    @property
    def baseline(self) -> Row | None:
        """What ratios are to."""
        by_way = {row.way: row for row in self.rows}
        return next((by_way[way] for way in BASELINES if way in by_way), None)

    @property
    def counts(self) -> tuple[int, int]:
        """Questions with an answer, and without."""
        n_with = sum(bool(one.gold) for one in self.questions)
        return n_with, len(self.questions) - n_with

    @property
    def lines(self) -> list[str]:
        """The result for a person."""
        n_with, n_without = self.counts
        to = "" if self.baseline is None else self.baseline.way
        lines = [
            f"{self.source}: {self.n_tokens:,} tokens; {len(self.questions)} questions, {n_without} of them "
            f"without an answer; {self.n_rounds} rounds; ratios to {to}",
            f"{'way':<22}{'first token, s':<22}{'× sooner':<18}{'in all, s':<22}{'evaluated':>10}{'kept':>9}"
            f"{'before, s':>11}{'peak':>8}{'right':>8}{'declined':>10}{'joules':>9}",
        ]
        for row in self.rows:
            sooner = "" if self.baseline is None else row.sooner(self.baseline, _first).shown(1)
            taken, joules = row.taken, row.taken["joules"]
            lines.append(
                f"{row.way:<22}{row.spread(_first).shown():<22}{sooner:<18}{row.spread(_seconds).shown():<22}"
                f"{row.spread(_evaluated).median:>10,.0f}{row.kept_bytes / 1e6:>6,.0f} MB"
                f"{row.prepared.seconds:>11,.1f}{taken['peak_memory_bytes'] / 1e9:>5,.1f} GB"
                f"{f'{row.n_right} of {n_with}':>8}{f'{row.n_declined} of {n_without}':>10}"
                f"{f'{sum(joules.values()):,.0f}' if joules else '–':>9}"
            )
        return [*lines, *(f"{way:<22}not measured: {why}" for way, why in self.missing.items())]

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.bench.compare/1` (docs/cli.md)."""
        n_with, n_without = self.counts
        return {
            "schema": "localctx.bench.compare/1",
            "machine": dict(self.machine),
            "model": {"name": self.model.name, "fingerprint": self.model.fingerprint},
            "source": self.source,
            "n_tokens": self.n_tokens,
            "n_questions": len(self.questions),
            "n_with_answer": n_with,
            "n_without_answer": n_without,
            "n_rounds": self.n_rounds,
            "max_tokens": self.max_tokens,
            "measured": MEASURED,
            "baseline": None if self.baseline is None else self.baseline.way,
            "ways": [self._row(row) for row in self.rows],
            "missing": dict(self.missing),
            "answers": [self._said(n, question) for n, question in enumerate(self.questions)],
            "plots": [] if not self.rows else [self._plot()],
        }

    def _said(self, number: int, question: Question) -> dict[str, Any]:
        said = {row.way: row.asked[number].text for row in self.rows}
        asked = {"question": question.text, "task": question.task, "gold": list(question.gold)}
        return {**asked, "answers": said}

    def _row(self, row: Row) -> dict[str, Any]:
        baseline = self.baseline
        sooner = {} if baseline is None else {
            "times_sooner_first_token": row.sooner(baseline, _first).to_json(),
            "times_sooner_in_all": row.sooner(baseline, _seconds).to_json(),
        }  # fmt: skip
        return {
            "way": row.way,
            "first_token_s": row.spread(_first).to_json(),
            "seconds": row.spread(_seconds).to_json(),
            **sooner,
            "n_evaluated": round(row.spread(_evaluated).median),
            "n_restored": round(row.spread(lambda one: one.n_restored).median),
            "n_generated": round(row.spread(lambda one: one.n_generated).median),
            "n_right": row.n_right,
            "n_declined": row.n_declined,
            "prepared_s": rounded(row.prepared.seconds),
            "codec": row.prepared.codec,
            "kept_bytes": row.kept_bytes,
            **row.taken,
            "prepared_joules": {name: rounded(value) for name, value in row.prepared.taken.joules.items()},
        }

    def _plot(self) -> dict[str, Any]:
        """Seconds after so many questions; of lazy each as if it were the first."""
        lines = {
            row.way: [rounded(row.prepared.seconds + n * row.spread(_seconds).median) for n in PLOTTED]
            for row in self.rows
            if row.way != LAZY
        }
        return {
            "title": f"{self.n_tokens:,} tokens: seconds for so many questions, preparation included",
            "x_name": "questions",
            "y_name": "seconds",
            "places": list(PLOTTED),
            "lines": lines,
            "is_log": True,
        }


def _first(one: Asked) -> float:
    return one.first_token_s


def _seconds(one: Asked) -> float:
    return one.seconds


def _evaluated(one: Asked) -> float:
    return one.n_evaluated
