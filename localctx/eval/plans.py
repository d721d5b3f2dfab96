"""The task families: what each plants and asks. Pure: a language and a seed in, values out.

Knows no tokenizer, no file and no model. The families are those of RULER (arXiv 2404.06654), in wording
and data of their own; register_task() adds others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from typing import TypeAlias

from localctx.errors import UsageError
from localctx.eval.language import Language
from localctx.eval.planting import Maker, Plan

__all__ = ["PROSE_TASKS", "Task", "make_plan", "register_task"]

N_TOGETHER = 4
"""Values of one key, and keys of one question."""
N_HOPS = 3
KEYS_BESIDE = 3
"""Keys of the same kind for each one that is asked for, and people."""
NUMBERED = ("multikey", "multivalue", "multiquery", "vt")
"""Tasks with numbers of five digits, each with its own ones."""
VARIABLE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"

Task: TypeAlias = Callable[[Maker], None]
"""Plants sentences and asks about them; maker.n questions, the last maker.n_absent of them without answer."""


def register_task(name: str, task: Task) -> None:
    """Add a family, which `--tasks` then knows by its name. Raises UsageError for a name that is taken."""
    if name in PROSE_TASKS or not name.isidentifier():
        raise UsageError(f"a task cannot be called {name!r}", "a word that no other task has")
    PROSE_TASKS[name] = task


def make_plan(
    language: Language, other: Language, seed: int, length: int, tasks: Sequence[str], n_questions: int
) -> Plan:
    """The plan of one document of prose: n_questions of each task, one in four without an answer.

    `other` is the language of translated questions. Raises UsageError for more questions than there are
    different facts or names.
    """
    maker = Maker(language, other, seed, length, n_questions)
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
    return Plan(tuple(maker.sentences), groups, tuple(maker.questions), maker.reworded)


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


def _ask_facts(maker: Maker, task: str, question_of: Callable[[int], str], language: Language) -> None:
    """A question about each fact, planted or not."""
    for fact, number, sentence in maker.facts():
        is_there = sentence >= 0
        gold, sentences = ([number], [sentence]) if is_there else ([], [])
        maker.ask(task, question_of(fact), gold, sentences, language)


def _single(maker: Maker) -> None:
    """One fact that nothing else is like, asked for in its words."""
    language = maker.language
    _ask_facts(maker, "single", lambda fact: language.facts[fact].asked, language)


def _paraphrased(maker: Maker) -> None:
    """The same facts, asked for in words that they do not hold."""
    language = maker.language
    _ask_facts(maker, "paraphrased", lambda fact: language.facts[fact].paraphrased, language)


def _translated(maker: Maker) -> None:
    """The same facts, asked for in another language."""
    _ask_facts(maker, "translated", lambda fact: maker.other.facts[fact].asked, maker.other)


def _multikey(maker: Maker) -> None:
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


def _multivalue(maker: Maker) -> None:
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


def _multiquery(maker: Maker) -> None:
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


def _variables(maker: Maker) -> None:
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


def _qa(maker: Maker) -> None:
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
