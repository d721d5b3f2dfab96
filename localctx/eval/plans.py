"""What is planted in a document and what is asked about it. Pure: a language and a seed in, values out.

Knows no tokenizer, no file and no model. The task families are those of RULER (arXiv 2404.06654), in wording
and data of their own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import TypeAlias

from localctx.errors import UsageError
from localctx.eval.language import Language

__all__ = ["ANSWERABLE_OF", "PROSE_TASKS", "Plan", "Planned", "make_plan", "source_of"]

ANSWERABLE_OF = 4
"""One question in so many has no answer in the document."""
N_TOGETHER = 4
"""Values of one key, and keys of one question."""
N_HOPS = 3
KEYS_BESIDE = 3
"""Keys of the same kind for each one that is asked for, and people."""
NUMBERED = ("multikey", "multivalue", "multiquery", "vt")
"""Tasks with numbers of five digits, each with its own ones."""
VARIABLE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


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
    depth in [0, 1) · values: all strings that some question asks for.
    """

    sentences: tuple[str, ...]
    groups: tuple[tuple[float, tuple[int, ...]], ...]
    questions: tuple[Planned, ...]

    @property
    def values(self) -> frozenset[str]:
        """Every gold string of the document."""
        return frozenset(value for question in self.questions for value in question.gold)


def source_of(seed: int, *purpose: object) -> random.Random:
    """Random numbers that follow from the seed and what they are for alone."""
    return random.Random("/".join(map(str, (seed, *purpose))))  # noqa: S311  # reproducible, not secret


@dataclass(slots=True)
class _Maker:
    """The plan so far. Each task draws from a source of its own, so that it does not depend on the others."""

    language: Language
    other: Language
    seed: int
    length: int
    n: int
    sentences: list[str] = field(default_factory=list)
    groups: list[tuple[float, tuple[int, ...]]] = field(default_factory=list)
    questions: list[Planned] = field(default_factory=list)
    _facts: list[tuple[int, str, int]] | None = None

    @property
    def n_absent(self) -> int:
        return self.n // ANSWERABLE_OF

    @property
    def n_present(self) -> int:
        return self.n - self.n_absent

    def source(self, purpose: str) -> random.Random:
        return source_of(self.seed, self.language.code, self.length, purpose)

    def plant(self, order: float, *sentences: str) -> tuple[int, ...]:
        """Add sentences that stand together; groups come in `order`."""
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
        """Add a question."""
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
                    text = self.language.facts[fact].sentence.format(n=number)
                    (sentence,) = self.plant(source.random(), text)
                self._facts.append((fact, str(number), sentence))
        return self._facts


Task: TypeAlias = Callable[[_Maker], None]


def make_plan(
    language: Language, other: Language, seed: int, length: int, tasks: Sequence[str], n_questions: int
) -> Plan:
    """The plan of one document of prose: n_questions of each task, one in four without an answer.

    `other` is the language of translated questions. Raises UsageError for more questions than there are
    different facts or names.
    """
    maker = _Maker(language, other, seed, length, n_questions)
    most = len(language.facts)
    if n_questions > most and {"single", "paraphrased", "translated"} & set(tasks):
        raise UsageError(
            f"--questions {n_questions}: there are {most} different facts",
            f"at most {most}, or --tasks without single, paraphrased and translated",
        )
    for task in tasks:
        PROSE_TASKS[task](maker)
    ordered = sorted(maker.groups)
    spread = maker.source("depths")
    depths = [(place + spread.uniform(0.1, 0.9)) / len(ordered) for place in range(len(ordered))]
    groups = tuple((depth, numbers) for depth, (_, numbers) in zip(depths, ordered, strict=True))
    return Plan(tuple(maker.sentences), groups, tuple(maker.questions))


def _take(source: random.Random, language: Language, parts: Sequence[Sequence[str]], n: int) -> Iterator[str]:
    """n different names of two parts. Raises UsageError where there are not so many."""
    pairs = list(product(*parts))
    if n > len(pairs):
        raise UsageError(
            f"--questions: {n:,} names are needed, {len(pairs):,} can be made", "fewer questions"
        )
    return (language.space.join(pair) for pair in source.sample(pairs, n))


def _numbers(source: random.Random, task: str, n: int) -> list[int]:
    """n different numbers that no other task has."""
    return source.sample(range(10_000 + NUMBERED.index(task), 100_000, len(NUMBERED)), n)


def _ask_facts(maker: _Maker, task: str, question_of: Callable[[int], str], language: Language) -> None:
    """A question about each fact, planted or not."""
    for fact, number, sentence in maker.facts():
        is_there = sentence >= 0
        gold, sentences = ([number], [sentence]) if is_there else ([], [])
        maker.ask(task, question_of(fact), gold, sentences, language)


def _single(maker: _Maker) -> None:
    """One fact that nothing else is like, asked for in its words."""
    language = maker.language
    _ask_facts(maker, "single", lambda fact: language.facts[fact].asked, language)


def _paraphrased(maker: _Maker) -> None:
    """The same facts, asked for in words that they do not hold."""
    language = maker.language
    _ask_facts(maker, "paraphrased", lambda fact: language.facts[fact].paraphrased, language)


def _translated(maker: _Maker) -> None:
    """The same facts, asked for in another language."""
    _ask_facts(maker, "translated", lambda fact: maker.other.facts[fact].asked, maker.other)


def _multikey(maker: _Maker) -> None:
    """One key among many of the same kind."""
    source, language, wording = maker.source("multikey"), maker.language, maker.language.wording
    n_keys = maker.n_present * (1 + KEYS_BESIDE)
    things = list(_take(source, language, language.names.thing, n_keys + maker.n_absent))
    numbers = _numbers(source, "multikey", n_keys)
    for place, thing in enumerate(things[:n_keys]):
        number = str(numbers[place])
        planted = maker.plant(source.random(), wording.number_of.format(thing=thing, n=number))
        if place < maker.n_present:
            maker.ask("multikey", wording.asks_number.format(thing=thing), [number], planted)
    for thing in things[n_keys:]:
        maker.ask("multikey", wording.asks_number.format(thing=thing))


def _multivalue(maker: _Maker) -> None:
    """Several values of one key, each in a place of its own."""
    source, language, wording = maker.source("multivalue"), maker.language, maker.language.wording
    things = list(_take(source, language, language.names.thing, maker.n))
    numbers = iter(_numbers(source, "multivalue", maker.n_present * N_TOGETHER))
    for place, thing in enumerate(things):
        gold: list[str] = []
        planted: list[int] = []
        if place < maker.n_present:
            for _ in range(N_TOGETHER):
                gold.append(str(next(numbers)))
                planted += maker.plant(source.random(), wording.seen_at.format(thing=thing, n=gold[-1]))
        maker.ask("multivalue", wording.asks_seen.format(thing=thing), gold, planted)


def _multiquery(maker: _Maker) -> None:
    """Several keys in one question."""
    source, language, wording = maker.source("multiquery"), maker.language, maker.language.wording
    people = list(_take(source, language, language.names.person, maker.n * N_TOGETHER))
    numbers = iter(_numbers(source, "multiquery", maker.n_present * N_TOGETHER))
    for place in range(maker.n):
        asked = people[place * N_TOGETHER : (place + 1) * N_TOGETHER]
        gold: list[str] = []
        planted: list[int] = []
        if place < maker.n_present:
            for person in asked:
                gold.append(str(next(numbers)))
                planted += maker.plant(source.random(), wording.holds.format(person=person, n=gold[-1]))
        maker.ask("multiquery", wording.asks_holds.format(people=language.listed(asked)), gold, planted)


def _variables(maker: _Maker) -> None:
    """A value that is handed on from variable to variable, in the order of the document."""
    source, wording = maker.source("vt"), maker.language.wording
    numbers = _numbers(source, "vt", maker.n)
    names = _variable_names(source, maker.n_present * (1 + N_HOPS))
    for place, number in enumerate(numbers):
        gold: list[str] = []
        planted: list[int] = []
        if place < maker.n_present:
            gold = names[place * (1 + N_HOPS) : (place + 1) * (1 + N_HOPS)]
            depths = sorted(source.random() for _ in gold)
            sentences = [wording.is_set.format(x=gold[0], n=number)]
            sentences += [wording.is_set_to.format(x=x, y=y) for y, x in pairwise(gold)]
            for depth, sentence in zip(depths, sentences, strict=True):
                planted += maker.plant(depth, sentence)
        maker.ask("vt", wording.asks_set.format(n=number), gold, planted)


def _variable_names(source: random.Random, n: int) -> list[str]:
    """n different names of four capitals."""
    names: dict[str, None] = {}
    while len(names) < n:
        names["".join(source.choice(VARIABLE_LETTERS) for _ in range(4))] = None
    return list(names)


def _qa(maker: _Maker) -> None:
    """Short biographies that are all alike; every second question goes by way of the town."""
    source, language, wording = maker.source("qa"), maker.language, maker.language.wording
    n_people = maker.n_present * (1 + KEYS_BESIDE)
    people = list(_take(source, language, language.names.person, n_people + maker.n_absent))
    towns = ["".join(pair) for pair in product(*language.names.town)]
    if n_people + maker.n_absent > len(towns):
        raise UsageError(f"--questions: {n_people:,} towns are needed, there are {len(towns)}", "fewer")
    towns = source.sample(towns, n_people + maker.n_absent)
    for place in range(n_people + maker.n_absent):
        person, town, job = people[place], towns[place], source.choice(language.names.jobs)
        by_town = place % 2 == 1
        text = wording.asks_job.format(town=town) if by_town else wording.asks_born.format(person=person)
        if place >= n_people:
            maker.ask("qa", text)
            continue
        born, works = maker.plant(
            source.random(),
            wording.born.format(person=person, town=town),
            wording.works.format(person=person, job=job),
        )
        if place < maker.n_present:
            maker.ask("qa", text, [job if by_town else town], [born, works] if by_town else [born])


PROSE_TASKS: dict[str, Task] = {
    "single": _single,
    "paraphrased": _paraphrased,
    "translated": _translated,
    "multikey": _multikey,
    "multivalue": _multivalue,
    "multiquery": _multiquery,
    "vt": _variables,
    "qa": _qa,
}
