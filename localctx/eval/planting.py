"""What is planted in a document and what is asked about it, as a task family makes it. Pure: values only.

Knows no family, no tokenizer, no file and no model.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localctx.eval.language import Language

__all__ = ["ANSWERABLE_OF", "Maker", "Plan", "Planned", "source_of"]

ANSWERABLE_OF = 4
"""One question in so many has no answer in the document."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A question. gold: the strings of a right answer, none where the document has no answer · sentences:
    numbers of the planted sentences that hold it · language: of the question.
    """

    task: str
    language: str
    text: str
    gold: tuple[str, ...] = ()
    sentences: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """groups: numbers of sentences that stand together, in the order of the document, each group with its
    depth in [0, 1) · values: all strings that some question asks for · reworded: sentences in other words, by
    number, where there are any.
    """

    sentences: tuple[str, ...]
    groups: tuple[tuple[float, tuple[int, ...]], ...]
    questions: tuple[Planned, ...]
    reworded: Mapping[int, str] = field(default_factory=dict)

    @property
    def values(self) -> frozenset[str]:
        """Every gold string of the document."""
        return frozenset(value for question in self.questions for value in question.gold)


def source_of(seed: int, *purpose: object) -> random.Random:
    """Random numbers that follow from the seed and what they are for alone."""
    return random.Random("/".join(map(str, (seed, *purpose))))  # noqa: S311  # reproducible, not secret


@dataclass(slots=True)
class Maker:
    """The plan so far, to which a task adds. Each draws from a source of its own, so that it does not depend
    on the others. n: questions of each task, n_present of them with an answer in the document.
    """

    language: Language
    other: Language
    seed: int
    length: int
    n: int
    sentences: list[str] = field(default_factory=list)
    groups: list[tuple[float, tuple[int, ...]]] = field(default_factory=list)
    questions: list[Planned] = field(default_factory=list)
    reworded: dict[int, str] = field(default_factory=dict)
    _facts: list[tuple[int, str, int]] | None = None

    @property
    def n_absent(self) -> int:
        """Questions that have no answer."""
        return self.n // ANSWERABLE_OF

    @property
    def n_present(self) -> int:
        """Questions that have one."""
        return self.n - self.n_absent

    def source(self, purpose: str) -> random.Random:
        """Random numbers of this document, for one purpose."""
        return source_of(self.seed, self.language.code, self.length, purpose)

    def plant(self, order: float, *sentences: str) -> tuple[int, ...]:
        """Add sentences that stand together, and return their numbers; groups come in `order`."""
        first = len(self.sentences)
        self.sentences += sentences
        numbers = tuple(range(first, len(self.sentences)))
        self.groups.append((order, numbers))
        return numbers

    def ask(
        self,
        task: str,
        text: str,
        gold: Sequence[str] = (),
        sentences: Sequence[int] = (),
        language: Language | None = None,
    ) -> None:
        """Add a question. gold: strings of a right answer, none where there is none · sentences: numbers of
        those that hold it · language: of the question, where it is not the document's.
        """
        code = (language or self.language).code
        self.questions.append(Planned(task, code, text, tuple(gold), tuple(sentences)))

    def facts(self) -> list[tuple[int, str, int]]:
        """(fact, its number, its sentence) of those that are planted, then those that are not, once only."""
        if self._facts is None:
            source = self.source("facts")
            order = source.sample(range(len(self.language.facts)), self.n)
            numbers = source.sample(range(1_000, 10_000), self.n)
            self._facts = []
            for place, (fact, number) in enumerate(zip(order, numbers, strict=True)):
                sentence = -1
                if place < self.n_present:
                    told = self.language.facts[fact]
                    (sentence,) = self.plant(source.random(), told.sentence.format(n=number))
                    if told.reworded:
                        self.reworded[sentence] = told.reworded.format(n=number)
                self._facts.append((fact, str(number), sentence))
        return self._facts
