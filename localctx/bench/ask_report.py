"""What `bench ask` found, for a person and for a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from statistics import median
from typing import Any

from localctx.bench.meters import Taken, taken_json
from localctx.bench.repeats import Spread, ratio, rounded
from localctx.session.indexed import IndexedDocument
from localctx.values import ModelInfo

__all__ = ["Asked", "Headed", "Report"]

PARTS = ("load", "select", "read", "assemble", "compose", "upload", "question")
"""Of the time to the first token: context opened, passages selected, runs read, KV arranged and put in (of
that composed and copied, which overlap), the question evaluated.
"""
BASELINE = "re-prefill"
TTFT = (
    "from the question to the first sampled token, in a session that answered another one before: stored: "
    "passages selected, runs read and checked, KV put in, the rest evaluated; re-prefill: the same tokens "
    "evaluated; retrieve: passages selected, a context opened, the prompt evaluated; not: loading the model, "
    "cutting and indexing the document"
)


@dataclass(frozen=True, slots=True)
class Headed:
    """Passages from stored KV, how many of them header lines lead, and the tokens of these, which are
    evaluated.
    """

    n_passages: int
    n_named: int
    n_header_tokens: int


@dataclass(frozen=True, slots=True)
class Asked:
    """One question in one way: seconds to the first token of each repeat; n_prompt: tokens attended;
    parts_ms: medians of PARTS; headed: where KV is put back; n_disk_bytes: read from disks, the median, where
    that is known.
    """

    question: str
    way: str
    ttft_s: tuple[float, ...]
    n_evaluated: int
    n_restored: int
    n_prompt: int
    parts_ms: Mapping[str, float]
    headed: Headed | None = None
    n_disk_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A row a question and way. index_rates: tokens a second of the first and the last quarter; taken: by
    indexing.
    """

    model: ModelInfo
    machine: dict[str, Any]
    indexed: IndexedDocument
    index_rates: tuple[float, float]
    taken: Taken
    n_repeats: int
    rows: tuple[Asked, ...]

    @property
    def _ways(self) -> dict[str, list[Asked]]:
        ways: dict[str, list[Asked]] = {}
        for row in self.rows:
            ways.setdefault(row.way, []).append(row)
        return ways

    @property
    def lines(self) -> list[str]:
        """The result for a person."""
        done = self.indexed
        lines = [
            f"indexed: {done.tokens_stored:,} tokens, {done.size_bytes / max(1, done.tokens_stored):,.0f} "
            f"bytes/token as {done.codec}, policy {done.policy}, {done.tokens_per_s:,.0f} tokens/s "
            f"(first quarter {self.index_rates[0]:,.0f}, last {self.index_rates[1]:,.0f})",
            f"asked: {len(self._ways[BASELINE])} questions, {self.n_repeats} times each",
            f"{'way':<24}{'first token, s':<24}{'evaluated':>10}{'restored':>10}{'attended':>10}"
            f"{'× sooner':>10}",
        ]
        for way, rows in self._ways.items():
            seconds, quotient = _seconds(rows), ratio(_seconds(self._ways[BASELINE]), _seconds(rows))
            counts = "".join(f"{value:>10,.0f}" for value in _means(rows).values())
            lines.append(f"{way:<24}{seconds.shown(3):<24}{counts}{quotient:>10}")
        lines.append(f"{'milliseconds of that':<24}{''.join(f'{part:>10}' for part in PARTS)}")
        for way, rows in self._ways.items():
            if any(parts := list(_parts_ms(rows).values())):
                lines.append(f"{way:<24}{''.join(f'{value:>10,.1f}' for value in parts)}")
        for way, rows in self._ways.items():
            if found := [row.headed for row in rows if row.headed is not None]:
                lines.append(f"{way:<24}{_shown(found)}{self._read(rows)}")
        return lines

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.bench.ask/1` (docs/cli.md)."""
        baseline = _seconds(self._ways[BASELINE])
        return {
            "schema": "localctx.bench.ask/1",
            "machine": self.machine,
            "model": {"name": self.model.name, "fingerprint": self.model.fingerprint},
            "indexed": asdict(self.indexed),
            "indexing": taken_json([self.taken], self.indexed.tokens_stored),
            "tokens_per_s_first_quarter": rounded(self.index_rates[0]),
            "tokens_per_s_last_quarter": rounded(self.index_rates[1]),
            "n_questions": len(self._ways[BASELINE]),
            "n_repeats": self.n_repeats,
            "ttft": TTFT,
            "ways": [
                {
                    "way": way,
                    "ttft_s": _seconds(rows).to_json(),
                    **_means(rows),
                    "parts_ms": _parts_ms(rows),
                    "times_sooner_than_re_prefill": ratio(baseline, _seconds(rows)),
                }
                for way, rows in self._ways.items()
            ],
            "questions": [
                {
                    "question": row.question,
                    "way": row.way,
                    "ttft_s": Spread.of(row.ttft_s).to_json(),
                    "n_evaluated": row.n_evaluated,
                    "n_restored": row.n_restored,
                    "n_prompt": row.n_prompt,
                    **(asdict(row.headed) if row.headed is not None else {}),
                    **({"n_disk_bytes": row.n_disk_bytes} if row.n_disk_bytes is not None else {}),
                }
                for row in self.rows
            ],
        }

    def _read(self, rows: Sequence[Asked]) -> str:
        """What was read from disks for as much KV as was put back, "" where that is not known."""
        counts = [row.n_disk_bytes for row in rows if row.n_disk_bytes is not None]
        if not counts:
            return ""
        n_attended = sum(row.n_restored for row in rows) / len(rows)
        n_kept = n_attended * self.indexed.size_bytes / max(1, self.indexed.tokens_stored)
        return f"; {sum(counts) / len(counts) / 1e6:,.1f} MB read from disks, {n_kept / 1e6:,.1f} MB attended"


def _means(rows: Sequence[Asked]) -> dict[str, float]:
    """Of the counts over questions: what is evaluated and restored adds up to what is attended."""
    names = ("n_evaluated", "n_restored", "n_prompt")
    return {name: round(sum(getattr(row, name) for row in rows) / len(rows), 1) for name in names}


def _shown(found: Sequence[Headed]) -> str:
    """Means over questions."""
    passages, named, tokens = (sum(values) / len(found) for values in zip(*map(astuple, found), strict=True))
    return f"{passages:,.0f} passages, {named:,.0f} of them led by header lines, {tokens:,.0f} tokens"


def _parts_ms(rows: Sequence[Asked]) -> dict[str, float]:
    """The median of each part over questions."""
    return {part: round(median(row.parts_ms[part] for row in rows), 1) for part in PARTS}


def _seconds(rows: Sequence[Asked]) -> Spread:
    """Over questions and repeats."""
    return Spread.of([seconds for row in rows for seconds in row.ttft_s])
