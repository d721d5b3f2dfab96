"""`bench summary`: how much of planted facts, and of the text, summaries of the same length tell, by way.

Recall by tenth of the text, coverage of its parts, faithfulness, redundancy, seconds and tokens; and what
index takes with section summaries beside it and without.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from localctx.bench.faithfulness import faithfulness
from localctx.bench.faithfulness_modes import Inputs
from localctx.bench.summary_facts import N_DECILES, Fact, found, planted
from localctx.bench.summary_measures import coverage, redundancy
from localctx.bench.summary_ways import INDEX, WAYS, Summarised, index_cost, summarised
from localctx.document import open_document
from localctx.errors import LocalctxError, UsageError
from localctx.settings import Settings, nearest
from localctx.values import Model

__all__ = ["ALL_WAYS", "Asked", "IndexCost", "Report", "TextResult", "WayFigures", "measure"]

ALL_WAYS = (*WAYS, INDEX)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is measured. n_facts: planted in each text · n_words: of each summary · n_tokens: that each text
    is cut to; None: whole.
    """

    ways: tuple[str, ...] = ALL_WAYS
    n_facts: int = 10
    n_words: int = 480
    n_tokens: int | None = None
    seed: int = 1

    def check(self) -> None:
        """Raises UsageError for ways that there are not, and for numbers that make no sense."""
        for way in self.ways:
            if way not in ALL_WAYS:
                raise UsageError(
                    f"unknown way {way!r}{nearest(way, ALL_WAYS)}", f"one of {', '.join(ALL_WAYS)}"
                )
        for name, value, least in (("facts", self.n_facts, 1), ("words", self.n_words, 24)):
            if value < least:
                raise UsageError(f"--{name} {value} is out of range", f"{least} or more")
        if self.n_facts > 24:
            raise UsageError(f"--facts {self.n_facts} is out of range", "24 or fewer")
        if self.n_tokens is not None and self.n_tokens < 256:
            raise UsageError(f"--tokens {self.n_tokens} is out of range", "256 or more")


@dataclass(frozen=True, slots=True)
class TextResult:
    """One text in one way. told: of each planted fact, in order · error: instead of figures."""

    text: str
    way: str
    told: tuple[bool, ...] = ()
    deciles: tuple[int, ...] = ()
    coverage: float = 0.0
    n_claims: int = 0
    n_supported: int = 0
    redundancy: float = 0.0
    n_words: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    n_evaluated: int = 0
    n_generated: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class WayFigures:
    """All texts in one way. recall_by_decile: of the facts of each tenth, None where none was planted."""

    way: str
    n_texts: int
    n_failed: int
    recall: float
    recall_by_decile: tuple[float | None, ...]
    coverage: float
    faithfulness: float | None
    redundancy: float
    n_words: int
    seconds: float
    cpu_seconds: float
    n_evaluated: int
    n_generated: int


@dataclass(frozen=True, slots=True)
class IndexCost:
    """One text indexed without summaries and with: seconds by the clock, and of processors."""

    text: str
    n_tokens: int
    plain_seconds: float
    tapped_seconds: float
    plain_cpu_seconds: float
    tapped_cpu_seconds: float

    @property
    def ratio(self) -> float:
        """With summaries by without, by the clock."""
        return self.tapped_seconds / self.plain_seconds if self.plain_seconds else 0.0

    @property
    def cpu_ratio(self) -> float:
        """The same of processors' seconds, which other work on the machine changes less."""
        return self.tapped_cpu_seconds / self.plain_cpu_seconds if self.plain_cpu_seconds else 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a run."""

    asked: Asked
    texts: tuple[TextResult, ...]
    ways: tuple[WayFigures, ...]
    index: tuple[IndexCost, ...]

    def as_json(self) -> dict[str, Any]:
        """The object of schema `localctx.bench.summary/1`."""
        return {
            "schema": "localctx.bench.summary/1",
            "asked": asdict(self.asked),
            "ways": [asdict(way) for way in self.ways],
            "index": [
                {**asdict(cost), "ratio": cost.ratio, "cpu_ratio": cost.cpu_ratio} for cost in self.index
            ],
            "texts": [asdict(row) for row in self.texts],
        }


def measure(
    model: Model, settings: Settings, inputs: Inputs, asked: Asked, say: Callable[[str], None]
) -> Report:
    """Plant, summarise and compare; `say` is told each result. A text that fails in one way is a row with its
    error. Raises UsageError.
    """
    asked.check()
    ways = [way for way in WAYS if way in asked.ways]
    rows: list[TextResult] = []
    costs: list[IndexCost] = []
    with tempfile.TemporaryDirectory(prefix="localctx-") as folder:
        for path, facts in _texts(inputs, asked, model, Path(folder)):
            n_words = asked.n_words
            for way in ways:
                rows.append(_result(way, path, facts, n_words, (model, settings)))
                say(_line(rows[-1]))
                if way == "map-reduce" and rows[-1].n_words:
                    n_words = rows[-1].n_words
            if INDEX in asked.ways:
                costs.append(_index_cost(path, model, settings))
                say(f"{INDEX}: {path.name}: {costs[-1].cpu_ratio:.2f} of {costs[-1].plain_cpu_seconds:.1f} s")
    figures = tuple(_sum_up(way, [row for row in rows if row.way == way]) for way in ways)
    return Report(asked, tuple(rows), figures, tuple(costs))


def _texts(inputs: Inputs, asked: Asked, model: Model, folder: Path) -> Iterator[tuple[Path, list[Fact]]]:
    """The texts with their facts, as files of `folder`. Raises UsageError for one that is too short."""
    cut = folder / "cut"
    cut.mkdir()
    for number, path in enumerate(inputs.paths(cut)):
        with open_document(str(path), cache_dir=None) as document:
            text = document.read(0, document.text.n_code_points)
            language = document.language or "en"
        text = text if asked.n_tokens is None else _first_tokens(text, asked.n_tokens, model)
        try:
            text, facts = planted(text, asked.n_facts, asked.seed + number, language)
        except ValueError as error:
            raise UsageError(f"{path.name}: {error}", "longer texts, or fewer --facts") from None
        target = folder / f"{number:03} {path.stem[:60]}.txt"
        target.write_text(text, "utf-8")
        yield target, facts


def _first_tokens(text: str, n_tokens: int, model: Model) -> str:
    """The beginning of a text that has about n_tokens, cut before white space."""
    end = min(len(text), 8 * n_tokens)
    while end > 1 and (n := len(model.tokenize(text[:end]))) > 1.01 * n_tokens:
        end = end * n_tokens // n
    head = text[:end]
    return head if end == len(text) else head.rsplit(None, 1)[0]


def _result(
    way: str, path: Path, facts: Sequence[Fact], n_words: int, with_model: tuple[Model, Settings]
) -> TextResult:
    """One row."""
    text = path.read_text("utf-8")
    deciles = tuple(fact.decile for fact in facts)
    with tempfile.TemporaryDirectory(prefix="localctx-") as folder:
        try:
            done = summarised(way, path, n_words, *with_model, Path(folder))
        except LocalctxError as error:
            return TextResult(path.name, way, deciles=deciles, error=str(error))
    return _judged(path.name, way, done, text, facts)


def _judged(name: str, way: str, done: Summarised, text: str, facts: Sequence[Fact]) -> TextResult:
    summary = "\n".join(done.lines)
    held = faithfulness(summary, text)
    return TextResult(
        text=name,
        way=way,
        told=tuple(found(summary, facts)),
        deciles=tuple(fact.decile for fact in facts),
        coverage=coverage(done.lines, text),
        n_claims=held.n_claims,
        n_supported=held.n_supported,
        redundancy=redundancy(done.lines),
        n_words=done.n_words,
        seconds=done.seconds,
        cpu_seconds=done.cpu_seconds,
        n_evaluated=done.n_evaluated,
        n_generated=done.n_generated,
    )


def _index_cost(path: Path, model: Model, settings: Settings) -> IndexCost:
    """Without and with; the first use of a model is not part of either."""
    found = []
    for summaries in (False, True):
        with tempfile.TemporaryDirectory(prefix="localctx-") as folder:
            found.append(index_cost(path, model, settings, Path(folder), summaries=summaries))
    plain, tapped = found
    seconds = plain.seconds, tapped.seconds
    return IndexCost(path.name, plain.n_evaluated, *seconds, plain.cpu_seconds, tapped.cpu_seconds)


def _sum_up(way: str, rows: Sequence[TextResult]) -> WayFigures:
    """The row of one way."""
    done = [row for row in rows if not row.error]
    facts = [pair for row in done for pair in zip(row.deciles, row.told, strict=True)]
    by_decile = [[told for decile, told in facts if decile == number] for number in range(N_DECILES)]
    n_claims = sum(row.n_claims for row in done)
    n = max(1, len(done))
    return WayFigures(
        way=way,
        n_texts=len(done),
        n_failed=len(rows) - len(done),
        recall=sum(told for _, told in facts) / max(1, len(facts)),
        recall_by_decile=tuple(sum(told) / len(told) if told else None for told in by_decile),
        coverage=sum(row.coverage for row in done) / n,
        faithfulness=sum(row.n_supported for row in done) / n_claims if n_claims else None,
        redundancy=sum(row.redundancy for row in done) / n,
        n_words=sum(row.n_words for row in done),
        seconds=sum(row.seconds for row in done),
        cpu_seconds=sum(row.cpu_seconds for row in done),
        n_evaluated=sum(row.n_evaluated for row in done),
        n_generated=sum(row.n_generated for row in done),
    )


def _line(row: TextResult) -> str:
    if row.error:
        return f"{row.way}: {row.text}: {row.error}"
    return (
        f"{row.way}: {row.text}: {sum(row.told)} of {len(row.told)} facts, {row.n_words} words, "
        f"{row.cpu_seconds:.1f} s of processors"
    )
