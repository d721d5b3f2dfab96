"""What `bench load` found, for a person and for a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from localctx.bench.load_clients import Asker

if TYPE_CHECKING:
    from localctx.bench.load import LoadPlan

__all__ = ["LoadReport"]

WARM_SHARE = 0.2
"""Memory is compared from here on: what is opened once has been opened."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """wall_s: of all users · engine_rates: tokens a second of the engine alone, before and after ·
    sizes_bytes: resident memory of the server, once a second.
    """

    plan: LoadPlan
    askers: tuple[Asker, ...]
    wall_s: float
    engine_rates: tuple[float, float]
    sizes_bytes: tuple[int, ...]
    machine: dict[str, Any]

    @property
    def rate(self) -> float:
        """Generated tokens a second of the server."""
        return sum(one.n_tokens for one in self.askers) / self.wall_s

    @property
    def share(self) -> float:
        """The server's rate in proportion to the engine's, the mean of before and after."""
        return self.rate / (sum(self.engine_rates) / len(self.engine_rates))

    @property
    def problems(self) -> Counter[str]:
        """Everything but whole answers."""
        return sum((one.problems for one in self.askers), Counter[str]())

    @property
    def memory_growth(self) -> float | None:
        """The last tenth's mean size over that of the tenth after the warm-up; None for too short a run."""
        n = len(self.sizes_bytes)
        first = self.sizes_bytes[int(n * WARM_SHARE) : int(n * (WARM_SHARE + 0.1))]
        last = self.sizes_bytes[int(n * 0.9) :]
        return _mean(last) / _mean(first) if first and last else None

    def _classes(self) -> list[dict[str, Any]]:
        rows = []
        for klass in dict.fromkeys(one.klass for one in self.askers):
            mine = [one for one in self.askers if one.klass == klass]
            first_ms = sorted(1000 * value for one in mine for value in one.first_s)
            rows.append(
                {
                    "class": klass.name,
                    "users": len(mine),
                    "answers": sum(one.n_answers for one in mine),
                    "answers_least": min(one.n_answers for one in mine),
                    "tokens_per_s": round(sum(one.n_tokens for one in mine) / self.wall_s, 1),
                    "ttft_p50_ms": _at(first_ms, 0.5),
                    "ttft_p99_ms": _at(first_ms, 0.99),
                    "slo_ms": klass.latency_slo_ms,
                    "slo_met": round(
                        sum(value <= klass.latency_slo_ms for value in first_ms) / max(1, len(first_ms)), 3
                    ),
                    "problems": dict(sum((one.problems for one in mine), Counter[str]())),
                }
            )
        return rows

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.bench.load/1`."""
        gaps_ms = sorted(1000 * value for one in self.askers for value in one.gap_s)
        return {
            "schema": "localctx.bench.load/1",
            "plan": asdict(self.plan),
            "wall_s": round(self.wall_s, 1),
            "answers": sum(one.n_answers for one in self.askers),
            "answers_least": min(one.n_answers for one in self.askers),
            "tokens_per_s": round(self.rate, 1),
            "engine_tokens_per_s": [round(rate, 1) for rate in self.engine_rates],
            "share_of_engine": round(self.share, 3),
            "gap_p50_ms": _at(gaps_ms, 0.5),
            "gap_p99_ms": _at(gaps_ms, 0.99),
            "problems": dict(self.problems),
            "memory_growth": None if self.memory_growth is None else round(self.memory_growth, 4),
            "memory_bytes": [min(self.sizes_bytes, default=0), max(self.sizes_bytes, default=0)],
            "classes": self._classes(),
            "machine": self.machine,
        }

    @property
    def lines(self) -> list[str]:
        """The result for a person."""
        value = self.to_json()
        problems = ", ".join(f"{n} × {name}" for name, n in value["problems"].items()) or "none"
        growth = value["memory_growth"]
        engine = " and ".join(f"{rate:g}" for rate in value["engine_tokens_per_s"])
        lines = [
            f"{self.plan.n_users} users, {self.plan.n_tenants} tenants, {value['wall_s']} s",
            f"answers         {value['answers']}, at least {value['answers_least']} for each user",
            f"tokens/s        {value['tokens_per_s']}; the engine alone {engine}: "
            f"{value['share_of_engine']:.0%}",
            f"between tokens  p50 {value['gap_p50_ms']} ms, p99 {value['gap_p99_ms']} ms",
            f"not answered    {problems}",
            f"memory          {'too short' if growth is None else f'{growth - 1:+.1%} after the warm-up'}",
        ]
        for row in value["classes"]:
            lines.append(
                f"{row['class']:<8}{row['tokens_per_s']:>7} tokens/s, first token p50 {row['ttft_p50_ms']}, "
                f"p99 {row['ttft_p99_ms']} ms, within {row['slo_ms']:g} ms {row['slo_met']:.1%}"
            )
        return lines


def _at(ordered: Sequence[float], share: float) -> float | None:
    """The value that this share of the others does not exceed."""
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1) if ordered else None


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)
