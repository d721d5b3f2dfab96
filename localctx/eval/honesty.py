"""How honest is `ask`: the support judgement on given answers, and the whole command with a model.

The judgement's thresholds were set on the split `calibrate`; figures are read off `judge`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from localctx.eval.honesty_texts import LANGUAGES, NOWHERE, Case, Split, Text, texts
from localctx.index import LexicalIndex
from localctx.selection import Passage, judgement, supporting_sentences
from localctx.values import Block

__all__ = ["VERDICTS", "Judge", "Report", "found_passages", "measure", "support_judge"]

VERDICTS = ("supported", "partial", "none")
N_PASSAGES = 6

Judge = Callable[[Case, Sequence[Block], LexicalIndex, str], str]
"""(case, passages, index of the document, language) → supported, partial or none."""
Key = tuple[str, str, str, str]
"""(language, question kind, answer kind, gold)."""


@dataclass(frozen=True, slots=True)
class Report:
    """How many cases of each key got each verdict; citations: right ones, and answers that needed one."""

    split: Split
    counts: Counter[tuple[Key, str]]
    citations: tuple[int, int]

    def share(self, verdict: str, is_in: Callable[[Key], bool]) -> tuple[int, int]:
        """(judged so, all) of the cases that is_in chooses."""
        chosen = [(key, said, n) for (key, said), n in self.counts.items() if is_in(key)]
        return sum(n for _, said, n in chosen if said == verdict), sum(n for _, _, n in chosen)

    @property
    def rates(self) -> dict[str, tuple[int, int]]:
        """The figures that matter, as (hits, of how many)."""
        return {
            "false supported": self.share("supported", lambda key: key[3] != "supported"),
            "false none": self.share("none", lambda key: key[3] == "supported"),
            "true answers supported": self.share(
                "supported", lambda key: key[1] == "answerable" and key[2] in ("true", "quoted", "short")
            ),
            "unanswerable declined": self.share("none", lambda key: key[1] in NOWHERE),
            "unanswerable supported": self.share("supported", lambda key: key[1] in NOWHERE),
            "citation right": self.citations,
        }

    def rows(self) -> Iterator[tuple[str, str, str, tuple[int, ...]]]:
        """(gold, question kind, answer kind, how many of each verdict) over all languages."""
        for kind in sorted({key[1:] for key, _ in self.counts}, key=lambda key: (key[2], key[0], key[1])):
            said = tuple(
                sum(n for (key, verdict), n in self.counts.items() if key[1:] == kind and verdict == one)
                for one in VERDICTS
            )
            yield kind[2], kind[0], kind[1], said

    def to_json(self) -> dict[str, Any]:
        """Schema `localctx.eval.honesty/1`."""
        return {
            "schema": "localctx.eval.honesty/1",
            "split": self.split,
            "rates": {name: {"n": n, "of": of} for name, (n, of) in self.rates.items()},
            "rows": [
                {
                    "gold": gold,
                    "question": question,
                    "answer": answer,
                    **dict(zip(VERDICTS, said, strict=True)),
                }
                for gold, question, answer, said in self.rows()
            ],
        }

    def lines(self) -> Iterator[str]:
        """A table for people."""
        yield f"{'should be':10} {'question':13} {'answer':14} {'supported':>10} {'partial':>8} {'none':>6}"
        for gold, question, answer, said in self.rows():
            yield f"{gold:10} {question:13} {answer:14} {said[0]:10} {said[1]:8} {said[2]:6}"
        for name, (n, of) in self.rates.items():
            yield f"{name}: {n} of {of} ({n / max(1, of):.1%})"


def support_judge(case: Case, passages: Sequence[Block], index: LexicalIndex, language: str) -> str:
    """The judgement of `ask`."""
    return judgement(
        case.question,
        case.answer,
        [block.text for block in passages],
        headings=[block.heading_path for block in passages],
        absent=index.absent(case.question),
        language=language,
    ).verdict


def measure(
    split: Split, *, n_seeds: int = 4, languages: Sequence[str] = LANGUAGES, judge: Judge = support_judge
) -> Report:
    """Judge every case of a split over the passages that a search for its question finds.

    n_seeds: documents of each kind and language; one has some 80 cases.
    """
    counts: Counter[tuple[Key, str]] = Counter()
    n_right = n_cited = 0
    for language in languages:
        for text in texts(split, language, n_seeds):
            with LexicalIndex.build(text.blocks, language=language) as index:
                for case in text.cases:
                    passages = found_passages(text, index, case)
                    verdict = judge(case, passages, index, language)
                    counts[(language, case.question_kind, case.answer_kind, case.gold), verdict] += 1
                    if case.answer_kind in ("true", "short") and case.question_kind == "answerable":
                        n_cited += 1
                        n_right += _is_cited(case, passages, language)
    return Report(split, counts, (n_right, n_cited))


def found_passages(text: Text, index: LexicalIndex, case: Case) -> list[Block]:
    """The blocks that a search for the question finds, in order; the first ones where it finds none."""
    found = sorted(number for number, _ in index.search(case.question, N_PASSAGES).ranking)
    return [text.blocks[number] for number in found or range(min(N_PASSAGES, len(text.blocks)))]


def _is_cited(case: Case, passages: Sequence[Block], language: str) -> bool:
    """Whether the first citation quotes the sentence with the value, under the heading of its entity."""
    candidates = [Passage(number, block.start, block.text) for number, block in enumerate(passages)]
    cited = supporting_sentences(case.answer, candidates, question=case.question, language=language)
    return (
        bool(cited) and case.value in cited[0].quote and case.entity in passages[cited[0].index].heading_path
    )
