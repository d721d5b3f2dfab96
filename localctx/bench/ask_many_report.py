"""What `bench ask --parallel` found, for a person and for a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Self

from localctx.bench.repeats import Spread, ratio
from localctx.session.answer import Answer
from localctx.session.indexed import IndexedDocument
from localctx.values import ModelInfo

__all__ = ["Report", "Round"]


@dataclass(frozen=True, slots=True)
class Round:
    """All questions answered once: their answers' texts, in order, and what it took in all; processor_s: of
    this process, which says more than the clock on a machine that others use.
    """

    seconds: float
    processor_s: float
    texts: tuple[str, ...]
    n_evaluated: int
    n_restored: int
    n_generated: int
    ttft_ms: float
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, seconds: float, processor_s: float, answers: Sequence[Answer]) -> Self:
        """ttft_ms: the median, from when a question was put."""
        tokens = [answer.tokens for answer in answers]
        return cls(
            seconds,
            processor_s,
            tuple(_written(answer) for answer in answers),
            sum(one.evaluated for one in tokens),
            sum(one.restored for one in tokens),
            sum(one.generated for one in tokens),
            median(answer.timings.ttft_ms for answer in answers),
            tuple(dict.fromkeys(text for answer in answers for text in answer.warnings)),
        )


def _written(answer: Answer) -> str:
    """What the model wrote: an answer that was taken back is in a warning."""
    taken_back = [text for text in answer.warnings if text.startswith("replaced an answer")]
    return "\n".join([answer.text, *taken_back])


@dataclass(frozen=True, slots=True)
class Report:
    """Rounds of both ways, in the order they were measured."""

    model: ModelInfo
    machine: dict[str, Any]
    indexed: IndexedDocument
    n_parallel: int
    one_by_one: Sequence[Round]
    side_by_side: Sequence[Round]

    @property
    def _ways(self) -> dict[str, Sequence[Round]]:
        return {"one by one": self.one_by_one, "side by side": self.side_by_side}

    @property
    def n_questions(self) -> int:
        """Questions of a round."""
        return len(self.one_by_one[0].texts)

    @property
    def n_equal(self) -> int:
        """Answers side by side that are those of one by one, of the first rounds."""
        pairs = zip(self.one_by_one[0].texts, self.side_by_side[0].texts, strict=True)
        return sum(one == other for one, other in pairs)

    @property
    def times_faster(self) -> float | None:
        """Questions a second side by side over those one by one."""
        return ratio(_seconds(self.one_by_one), _seconds(self.side_by_side))

    @property
    def lines(self) -> list[str]:
        """The result for a person."""
        lines = [
            f"{self.n_questions} questions on {self.indexed.tokens_stored:,} stored tokens "
            f"({self.indexed.codec}), {self.n_parallel} side by side, {len(self.one_by_one)} times each",
            f"{'way':<16}{'questions/s':<24}{'processor s':>12}{'first token, s':>16}{'evaluated':>11}"
            f"{'restored':>10}{'generated':>11}",
        ]
        for way, rounds in self._ways.items():
            last = rounds[-1]
            lines.append(
                f"{way:<16}{_per_second(rounds).shown(3):<24}{_processor_s(rounds).median:>12,.1f}"
                f"{last.ttft_ms / 1000:>16,.2f}{last.n_evaluated:>11,}{last.n_restored:>10,}"
                f"{last.n_generated:>11,}"
            )
        lines.append(
            f"side by side: {self.times_faster} × the questions a second; "
            f"{self.n_equal} of {self.n_questions} answers equal"
        )
        lines += [f"warning: {text}" for text in self.side_by_side[0].warnings if "side by side" in text]
        return lines

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.bench.ask-many/1` (docs/cli.md)."""
        return {
            "schema": "localctx.bench.ask-many/1",
            "machine": self.machine,
            "model": {"name": self.model.name, "fingerprint": self.model.fingerprint},
            "indexed": asdict(self.indexed),
            "n_questions": self.n_questions,
            "n_parallel": self.n_parallel,
            "times_faster": self.times_faster,
            "n_equal": self.n_equal,
            "ways": [
                {
                    "way": way,
                    "questions_per_s": _per_second(rounds).to_json(),
                    "seconds": _seconds(rounds).to_json(),
                    "processor_s": _processor_s(rounds).to_json(),
                    "ttft_ms": round(rounds[-1].ttft_ms, 1),
                    "n_evaluated": rounds[-1].n_evaluated,
                    "n_restored": rounds[-1].n_restored,
                    "n_generated": rounds[-1].n_generated,
                    "warnings": list(rounds[0].warnings),
                    "texts": list(rounds[0].texts),
                }
                for way, rounds in self._ways.items()
            ],
        }


def _seconds(rounds: Sequence[Round]) -> Spread:
    return Spread.of([one.seconds for one in rounds])


def _processor_s(rounds: Sequence[Round]) -> Spread:
    return Spread.of([one.processor_s for one in rounds])


def _per_second(rounds: Sequence[Round]) -> Spread:
    return Spread.of([len(one.texts) / one.seconds for one in rounds])
