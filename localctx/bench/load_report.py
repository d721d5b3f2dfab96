"""What `bench load` found, for a person and for a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from localctx.bench.load_clients import Answered, Asker

if TYPE_CHECKING:
    from localctx.bench.load import LoadPlan

__all__ = ["LoadReport", "Rate"]

WARM_SHARE = 0.2
"""Memory is compared from here on: what is opened once has been opened."""
PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Rate:
    """Generated tokens in wall seconds, and the processor seconds that they took."""

    n_tokens: int
    wall_s: float
    processor_s: float

    @property
    def tokens_per_s(self) -> float:
        """Of wall time."""
        return self.n_tokens / self.wall_s if self.wall_s else 0.0

    @property
    def per_1000(self) -> float | None:
        """Processor seconds for 1,000 tokens."""
        return round(1000 * self.processor_s / self.n_tokens, 3) if self.n_tokens else None


@dataclass(frozen=True, slots=True)
class LoadReport:
    """served: all users' tokens, and the server's processor time · users_s: the users' own processor seconds
    · engine: the engine alone, before and after; empty where the users asked about documents · n_left:
    arrivals of an open loop that nobody was free for · sizes_bytes: resident memory of the server, once a
    second.
    """

    plan: LoadPlan
    askers: tuple[Asker, ...]
    served: Rate
    users_s: float
    engine: tuple[Rate, ...]
    n_left: int
    sizes_bytes: tuple[int, ...]
    machine: dict[str, Any]

    @property
    def share(self) -> float | None:
        """The server's tokens a second in proportion to the engine's, the mean of before and after."""
        engine = [one.tokens_per_s for one in self.engine]
        return self.served.tokens_per_s / (sum(engine) / len(engine)) if engine else None

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

    def _processor(self) -> dict[str, Any]:
        """Processor seconds for 1,000 tokens: it compares where others use the machine too."""
        engine = [one.per_1000 for one in self.engine if one.per_1000 is not None]
        server = self.served.per_1000
        all_s = self.served.processor_s + self.users_s
        return {
            "engine_s_per_1000": engine,
            "server_s_per_1000": server,
            "users_s_per_1000": Rate(self.served.n_tokens, self.served.wall_s, self.users_s).per_1000,
            "users_share": round(self.users_s / all_s, 3) if all_s else None,
            "engine_to_server": round(_mean(engine) / server, 3) if engine and server else None,
        }

    def _classes(self) -> list[dict[str, Any]]:
        rows = []
        for klass in dict.fromkeys(one.klass for one in self.askers):
            mine = [one for one in self.askers if one.klass == klass]
            first = [answer.first_s for one in mine for answer in one.answers if answer.first_s is not None]
            met = sum(1000 * value <= klass.latency_slo_ms for value in first)
            rows.append(
                {
                    "class": klass.name,
                    "users": len(mine),
                    "answers": sum(len(one.answers) for one in mine),
                    "answers_least": min(len(one.answers) for one in mine),
                    "tokens_per_s": round(sum(one.n_tokens for one in mine) / self.served.wall_s, 1),
                    **_percentiles("ttft", first),
                    "slo_ms": klass.latency_slo_ms,
                    "slo_met": round(met / max(1, len(first)), 3),
                    "problems": dict(sum((one.problems for one in mine), Counter[str]())),
                }
            )
        return rows

    def _kinds(self) -> list[dict[str, Any]]:
        answers = [answer for one in self.askers for answer in one.answers]
        rows = []
        for kind in sorted({one.kind for one in answers}):
            mine = [one for one in answers if one.kind == kind]
            uploads = [one.upload_s for one in mine if one.upload_s is not None]
            row: dict[str, Any] = {"kind": kind, "answers": len(mine), **_latencies(mine)}
            if kind != "chat":
                row["document_tokens"] = round(_mean([one.document_tokens for one in mine]))
            rows.append(row | (_percentiles("upload", uploads) if uploads else {}))
        return rows

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.bench.load/1`."""
        answers = [answer for one in self.askers for answer in one.answers]
        return {
            "schema": "localctx.bench.load/1",
            "plan": asdict(self.plan),
            "wall_s": round(self.served.wall_s, 1),
            "answers": len(answers),
            "answers_least": min(len(one.answers) for one in self.askers),
            "tokens_per_s": round(self.served.tokens_per_s, 1),
            "engine_tokens_per_s": [round(one.tokens_per_s, 1) for one in self.engine],
            "share_of_engine": None if self.share is None else round(self.share, 3),
            "processor": self._processor(),
            **_latencies(answers),
            "problems": dict(self.problems),
            "arrivals_left": self.n_left,
            "memory_growth": None if self.memory_growth is None else round(self.memory_growth, 4),
            "memory_bytes": [min(self.sizes_bytes, default=0), max(self.sizes_bytes, default=0)],
            "kinds": self._kinds(),
            "classes": self._classes(),
            "machine": self.machine,
        }

    @property
    def lines(self) -> list[str]:
        """The result for a person."""
        value, plan = self.to_json(), self.plan
        problems = ", ".join(f"{n} × {name}" for name, n in value["problems"].items()) or "none"
        growth = value["memory_growth"]
        lines = [
            f"{plan.n_users} users, {plan.n_tenants} tenants, {plan.loop}, {value['wall_s']} s",
            f"answers         {value['answers']}, at least {value['answers_least']} for each user",
            f"tokens/s        {value['tokens_per_s']}{_beside(value)}",
            _processor_line(value["processor"]),
            f"not answered    {problems}",
            f"memory          {'too short' if growth is None else f'{growth - 1:+.1%} after the warm-up'}",
        ]
        if self.plan.rate is not None:
            lines.append(f"arrivals left   {self.n_left}: no user was free for them")
        for row in value["kinds"]:
            lines += _kind_lines(row)
        for row in value["classes"]:
            lines.append(
                f"{row['class']:<8}{row['tokens_per_s']:>7} tokens/s; first token {_row(row, 'ttft')} ms, "
                f"within {row['slo_ms']:g} ms {row['slo_met']:.1%}"
            )
        return lines


def _beside(value: dict[str, Any]) -> str:
    if value["share_of_engine"] is None:
        return ""
    engine = " and ".join(f"{rate:g}" for rate in value["engine_tokens_per_s"])
    return f"; the engine alone {engine}: {value['share_of_engine']:.0%}"


def _processor_line(row: dict[str, Any]) -> str:
    """For 1,000 tokens; the users are the measuring tool's cost, not the server's."""
    line = f"processor       for 1,000 tokens: server {row['server_s_per_1000']} s"
    if row["engine_s_per_1000"]:
        engine = " and ".join(map(str, row["engine_s_per_1000"]))
        line += f" (the engine alone {engine} s: {row['engine_to_server'] or 0:.0%})"
    share = row["users_share"] or 0
    return f"{line}, users {row['users_s_per_1000']} s ({share:.0%} of both)"


def _kind_lines(row: dict[str, Any]) -> list[str]:
    """One kind of question."""
    title = (
        row["kind"]
        if row["kind"] == "chat"
        else f"{row['kind']} documents of {row['document_tokens']:,} tokens"
    )
    lines = [
        f"{title}: {row['answers']} answers",
        f"  first token   {_row(row, 'ttft')} ms",
        f"  between       {_row(row, 'gap')} ms; jitter {_row(row, 'jitter')} ms",
    ]
    if "upload_p50_ms" in row:
        lines.append(f"  upload        {_row(row, 'upload')} ms")
    return lines


def _row(row: dict[str, Any], name: str) -> str:
    return ", ".join(f"p{share} {row[f'{name}_p{share}_ms']}" for share in PERCENTILES)


def _latencies(answers: Sequence[Answered]) -> dict[str, float | None]:
    """First token, between tokens, and jitter: how much a gap of a stream differs from the next, the mean."""
    jitter = [_mean([abs(b - a) for a, b in pairwise(one.gap_s)]) for one in answers if len(one.gap_s) > 1]
    return {
        **_percentiles("ttft", (one.first_s for one in answers if one.first_s is not None)),
        **_percentiles("gap", (gap for one in answers for gap in one.gap_s)),
        **_percentiles("jitter", jitter),
    }


def _percentiles(name: str, seconds: Iterable[float]) -> dict[str, float | None]:
    """NAME_p50_ms and the others: the value that this share does not exceed."""
    ordered = sorted(seconds)
    return {
        f"{name}_p{share}_ms": round(1000 * ordered[min(len(ordered) - 1, share * len(ordered) // 100)], 1)
        if ordered
        else None
        for share in PERCENTILES
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
