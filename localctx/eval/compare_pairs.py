"""How many of the known edits a comparison finds, and what it reports that nobody made.

An edit is found where a difference overlaps it on a side that has it, of kind "moved" for a moved clause, of
another kind for all else; the rest are missed. A difference that overlaps no edit in that way is false.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from localctx.alignment import Comparison, Difference, Outline, Side, Thresholds, compare_outlines, outline_of
from localctx.alignment.words import Alphabet
from localctx.document.clauses import clauses_of
from localctx.eval.contracts import LANGUAGES, Edit, Pair, Split, pair_of

__all__ = ["Measured", "compare_texts", "judge", "measure", "measure_pages", "pages_pair"]

PER_PAIR = 12
LANGUAGE_SHARES = {"en": 0.5, "de": 0.25, "zh": 0.25}
WORDS_PER_PAGE = 450
COPIES = (1, 1, 3)
"""Every third pair has each clause three times, for three programmes; one more where clauses are few."""


@dataclass(slots=True)
class Counts:
    """Edits of a group, and the differences reported for it."""

    edits: int = 0
    found: int = 0
    right_kind: int = 0
    moved: int = 0
    moved_found: int = 0
    reported: int = 0
    false: int = 0

    def add(self, other: Counts) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def to_json(self) -> dict[str, Any]:
        return {
            "edits": self.edits,
            "missed": self.edits - self.found,
            "missed_share": _share(self.edits - self.found, self.edits),
            "right_kind_share": _share(self.right_kind, self.found),
            "moved": self.moved,
            "moved_recognised_share": _share(self.moved_found, self.moved),
            "reported": self.reported,
            "false": self.false,
            "false_share": _share(self.false, self.reported),
        }


@dataclass(slots=True)
class Measured:
    """Results by language and by kind of edit, and what was missed or reported wrongly, as text."""

    split: Split
    seed: int
    seconds: float = 0.0
    by_language: dict[str, Counts] = field(default_factory=dict)
    by_kind: dict[str, list[int]] = field(default_factory=dict)
    kinds_taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def total(self) -> Counts:
        total = Counts()
        for counts in self.by_language.values():
            total.add(counts)
        return total

    def to_json(self) -> dict[str, Any]:
        """The figures as one object."""
        groups = {name: counts.to_json() for name, counts in self.by_language.items()}
        return {
            "schema": "localctx.eval.compare/1",
            "split": self.split,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
            "total": self.total.to_json(),
            "languages": groups,
            "missed_by_kind": {kind: {"edits": n, "missed": m} for kind, (n, m) in self.by_kind.items()},
        }

    def lines(self) -> Iterator[str]:
        """The figures as a table in Markdown."""
        yield "| | edits | missed | right class | moved recognised | reported | false |"
        yield "|---|---|---|---|---|---|---|"
        for name, counts in [*self.by_language.items(), ("all", self.total)]:
            c = counts.to_json()
            yield (
                f"| {name} | {c['edits']} | {c['missed']} ({c['missed_share']:.1%}) "
                f"| {c['right_kind_share']:.1%} "
                f"| {c['moved_recognised_share']:.1%} of {c['moved']} | {c['reported']} "
                f"| {c['false']} ({c['false_share']:.1%}) |"
            )
        yield ""
        yield "| edit | number | missed |"
        yield "|---|---|---|"
        for kind, (n, missed) in sorted(self.by_kind.items()):
            yield f"| {kind} | {n} | {missed} |"


def compare_texts(
    a: str, b: str, language: str = "en", thresholds: Thresholds | None = None
) -> tuple[Outline, Outline, Comparison]:
    """Two plain texts compared."""
    alphabet = Alphabet()
    outlines = [outline_of(text, clauses_of(text), alphabet, language) for text in (a, b)]
    return outlines[0], outlines[1], compare_outlines(outlines[0], outlines[1], thresholds)


def measure(
    n_edits: int = 500, seed: int = 0, split: Split = "judge", thresholds: Thresholds | None = None
) -> Measured:
    """Generate pairs with that many edits in all and compare them."""
    measured = Measured(split, seed)
    for language in LANGUAGES:
        counts = measured.by_language[language] = Counts()
        wanted = round(n_edits * LANGUAGE_SHARES[language])
        number = 0
        while counts.edits < wanted:
            n_now = min(PER_PAIR, wanted - counts.edits)
            n_copies = COPIES[number % len(COPIES)] + (split == "calibrate" or language != "en")
            pair = pair_of(seed * 1000 + number, language, n_now, split=split, n_copies=n_copies)
            started = time.perf_counter()
            outlines = compare_texts(pair.a, pair.b, language, thresholds)
            measured.seconds += time.perf_counter() - started
            judge(measured, counts, pair, outlines[2])
            number += 1
    return measured


def judge(measured: Measured, counts: Counts, pair: Pair, comparison: Comparison) -> None:
    """Count one pair."""
    differences = comparison.differences
    for edit in pair.edits:
        counts.edits += 1
        hits = [difference for difference in differences if _agree(edit, difference)]
        counts.found += bool(hits)
        counts.right_kind += any(difference.kind == edit.kind for difference in hits)
        counts.moved += edit.kind == "moved"
        counts.moved_found += edit.kind == "moved" and bool(hits)
        tally = measured.by_kind.setdefault(f"{edit.kind} {edit.level}", [0, 0])
        tally[0] += 1
        tally[1] += not hits
        if not hits:
            measured.wrong.append(f"missed {pair.language} {edit.kind} {edit.level}: {_quoted(pair, edit)}")
        elif all(difference.kind != edit.kind for difference in hits):
            kinds = sorted({difference.kind for difference in hits})
            measured.wrong.append(f"classed {kinds} {pair.language} {edit.kind}: {_quoted(pair, edit)}")
    for difference in differences:
        counts.reported += 1
        if not any(_agree(edit, difference) for edit in pair.edits):
            counts.false += 1
            measured.wrong.append(f"false {pair.language} {difference.kind}: {_quoted(pair, difference)}")


def _agree(edit: Edit, difference: Difference) -> bool:
    """Whether the difference is about what was done."""
    if (edit.kind == "moved") != (difference.kind == "moved"):
        return False
    return _overlap(edit.a, difference.a) or _overlap(edit.b, difference.b)


def _overlap(span: tuple[int, int] | None, side: Side | None) -> bool:
    if span is None or side is None:
        return False
    return side.start < span[1] and span[0] < max(side.end, side.start + 1)


def _quoted(pair: Pair, place: Edit | Difference) -> str:
    """What stands there on both sides."""
    shown: list[str] = []
    for text, side in ((pair.a, place.a), (pair.b, place.b)):
        if side is None:
            shown.append("-")
            continue
        start, end = side if isinstance(side, tuple) else (side.start, side.end)
        shown.append(" ".join(text[start:end].split())[:160])
    return " → ".join(shown)


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def measure_pages(
    n_pages: int, n_edits: int = 500, seed: int = 0, thresholds: Thresholds | None = None
) -> Measured:
    """One pair of English contracts of that many pages."""
    measured = Measured("judge", seed)
    pair = pages_pair(n_pages, seed, n_edits)
    started = time.perf_counter()
    comparison = compare_texts(pair.a, pair.b, "en", thresholds)[2]
    measured.seconds = time.perf_counter() - started
    judge(measured, measured.by_language.setdefault("en", Counts()), pair, comparison)
    return measured


def pages_pair(n_pages: int, seed: int = 0, n_edits: int = 500) -> Pair:
    """English contracts of about so many pages of 450 words."""
    words = len(pair_of(seed, "en", 0).a.split())
    n_copies = max(2, round(n_pages * WORDS_PER_PAGE / words))
    return pair_of(seed, "en", n_edits, n_copies=n_copies, n_spare=max(4, n_edits // 8))
