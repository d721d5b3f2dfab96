"""Documents with questions and given answers whose truth is known: seeded, in English, German and Chinese.

The answers are given, so that nothing depends on what a model says: true, reworded, invented, half invented,
with another value, negated, borrowed from another entity or year, copied from beside the question. More than
a quarter of the questions have no answer in the document. Two sets of wordings and seeds, `calibrate` and
`judge`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from random import Random
from typing import Any, Literal

import regex

from localctx.values import Block

__all__ = ["LANGUAGES", "NOWHERE", "SPLITS", "Case", "Split", "Text", "texts"]

Split = Literal["calibrate", "judge"]
SPLITS: tuple[Split, ...] = ("calibrate", "judge")
LANGUAGES = ("en", "de", "zh")
N_ENTITIES = 3
NOWHERE = ("off-topic", "absent-fact", "absent-here", "wrong-entity", "wrong-year")
"""Kinds of questions that the document does not answer; `absent-here`: it says so of another entity only."""

_SEEDS = {"calibrate": 1000, "judge": 7000}
_UNITS: dict[str, dict[str, str]] = {
    "en": {
        "months": "{} months", "days": "{} days", "hours": "{} hours", "money": "{:,} euros",
        "volts": "{} volts", "kilograms": "{} kilograms", "degrees": "{} degrees", "metres": "{} metres",
        "millions": "{} million euros", "count": "{}",
    },
    "de": {
        "months": "{} Monaten", "days": "{} Tagen", "hours": "{} Stunden", "money": "{} Euro",
        "volts": "{} Volt", "kilograms": "{} Kilogramm", "degrees": "{} Grad", "metres": "{} Metern",
        "millions": "{} Millionen Euro", "count": "{}",
    },
    "zh": {
        "months": "{}个月", "days": "{}天", "hours": "{}小时", "money": "{}元", "volts": "{}伏",
        "kilograms": "{}千克", "degrees": "{}度", "metres": "{}米", "millions": "{}百万元", "count": "{}",
    },
}  # fmt: skip
_RANGES = {
    "months": (2, 36), "days": (5, 95), "hours": (100, 4000), "money": (200, 9800), "volts": (5, 240),
    "kilograms": (4, 95), "degrees": (40, 190), "metres": (3, 900), "millions": (12, 980), "count": (30, 990),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """A question, a given answer, and what an honest judgement of it is.

    question_kind: answerable, reworded, or one of NOWHERE · gold: supported, partial (half of it is true) or
    none · value, entity: what the document answers, and under which heading; "" where it does not.
    """

    question: str
    answer: str
    question_kind: str
    answer_kind: str
    gold: Literal["supported", "partial", "none"]
    value: str = ""
    entity: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A document in Markdown, as blocks, with its cases."""

    language: str
    markdown: str
    blocks: tuple[Block, ...]
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class _Fact:
    """What a document says: a template's facts of one entity in one year, and the value."""

    words: dict[str, str]
    entity: str
    year: int
    value: str

    def say(
        self, part: str, *, value: str | None = None, year: int | None = None, entity: str | None = None
    ) -> str:
        """The part of the template ("s" statement, "q" question, "a" answer …), filled in."""
        text = self.words[part].replace("{v}", value or self.value).replace("{y}", str(year or self.year))
        return _first_upper(regex.sub(r"\{e(\|[^}]*)?\}", entity or self.entity, text))

    def say_generic(self) -> str:
        """The statement with "the tenant" for the entity's name, which its heading has."""
        text = self.words["s"].replace("{v}", self.value).replace("{y}", str(self.year))
        return _first_upper(regex.sub(r"\{e\|([^}]*)\}", r"\1", text))


def texts(split: Split, language: str, n_seeds: int = 4) -> Iterator[Text]:
    """The documents of a split, n_seeds for each of three kinds: contract, technical prose, report."""
    data = json.loads(files("localctx.eval").joinpath("honesty.json").read_text("utf-8"))[language][split]
    for number, domain in enumerate(data["domains"]):
        for seed in range(n_seeds):
            rng = Random(_SEEDS[split] + 97 * seed + 13 * number + LANGUAGES.index(language))  # noqa: S311  # test data
            yield _text(data, domain, language, rng)


def _text(data: dict[str, Any], domain: dict[str, Any], language: str, rng: Random) -> Text:
    """One document about three entities; a fact is withheld of all of them, another one of the last."""
    entities = rng.sample(domain["entities"], N_ENTITIES + 1)
    stranger = entities.pop()
    order = rng.sample(domain["facts"], len(domain["facts"]))
    withheld, lacking = order[0], order[1]
    years = sorted(rng.sample(range(2005, 2024), 3)) if domain.get("years") else [rng.randrange(2005, 2024)]
    known = years[:2] if domain.get("years") else years

    def value(kind: str) -> str:
        return _value(data, kind, language, rng)

    told = [
        _Fact(words, entity, year, value(words["v"]))
        for entity in entities
        for year in known
        for words in domain["facts"]
        if words is not withheld and not (words is lacking and entity == entities[-1])
    ]
    blocks = _blocks(domain["title"], entities, told, data["filler"], language, rng)
    made: list[Case] = []
    for fact in rng.sample([fact for fact in told if fact.entity != entities[-1]], 3):
        made += _answerable(fact, told, value)
    made += _nowhere(_Fact(withheld, entities[0], known[0], value(withheld["v"])), "absent-fact", told, value)
    made += _nowhere(_Fact(lacking, entities[-1], known[0], value(lacking["v"])), "absent-here", told, value)
    made += _nowhere(_Fact(lacking, stranger, known[0], value(lacking["v"])), "wrong-entity", told, value)
    if domain.get("years"):
        made += _nowhere(
            _Fact(lacking, entities[0], years[2], value(lacking["v"])), "wrong-year", told, value
        )
    for question in rng.sample(data["off"], 2):
        made += _off_topic(question, told, lacking, rng)
    markdown = "".join(block.text for block in blocks)
    return Text(language, markdown, tuple(blocks), tuple(made))


def _answerable(fact: _Fact, told: Sequence[_Fact], value: Callable[[str], str]) -> Iterator[Case]:
    """Answers to a question that the document answers."""
    asked, other = fact.say("q"), _another(fact.value, fact.words["v"], value)
    given: list[tuple[str, str, Literal["supported", "partial", "none"]]] = [
        (fact.say("a"), "true", "supported"),
        (fact.say("s"), "quoted", "supported"),
        (_first_upper(fact.value), "short", "supported"),
        (fact.say("p"), "paraphrased", "supported"),
        (fact.say("h"), "half-invented", "partial"),
        (f"{fact.say('a')} {fact.say('i')}", "half-invented", "partial"),
        (fact.say("a", value=other), "value changed", "none"),
        (_first_upper(other), "value changed", "none"),
        (fact.say("n"), "negated", "none"),
        (fact.say("i"), "invented", "none"),
        (fact.say("p", value=other), "invented", "none"),
    ]
    for borrowed in _neighbours(fact, told)[:2]:
        given.append((fact.say("a", value=borrowed.value), "borrowed", "none"))
    for answer, kind, gold in given:
        yield Case(asked, answer, "answerable", kind, gold, fact.value, fact.entity)
    for answer, kind, gold in (given[0], given[3], given[6]):
        yield Case(fact.say("r"), answer, "reworded", kind, gold, fact.value, fact.entity)


def _nowhere(asked: _Fact, kind: str, told: Sequence[_Fact], value: Callable[[str], str]) -> Iterator[Case]:
    """Answers to a question that the document, near as it is, does not answer: all of them are wrong."""
    question = asked.say("q")
    yield Case(question, asked.say("a"), kind, "invented", "none")
    yield Case(question, _first_upper(asked.value), kind, "invented", "none")
    yield Case(question, asked.say("i"), kind, "invented", "none")
    near = _neighbours(asked, told) or [fact for fact in told if fact.entity == asked.entity]
    for fact in near[:2]:
        is_same = fact.words is asked.words
        if is_same:
            yield Case(question, asked.say("a", value=fact.value), kind, "borrowed", "none")
            yield Case(question, _first_upper(fact.value), kind, "borrowed", "none")
        yield Case(question, fact.say("s"), kind, "copied", "none")
        yield Case(question, fact.say_generic(), kind, "copied", "none")
    yield Case(asked.say("r"), asked.say("a"), kind, "invented", "none")


def _off_topic(question: str, told: Sequence[_Fact], words: dict[str, str], rng: Random) -> Iterator[Case]:
    """Answers to a question about something else."""
    fact, other = rng.sample(list(told), 2)
    yield Case(question, fact.say("s"), "off-topic", "copied", "none")
    yield Case(question, other.say_generic(), "off-topic", "copied", "none")
    yield Case(question, _first_upper(other.value), "off-topic", "copied", "none")
    yield Case(question, fact.say("i"), "off-topic", "invented", "none")
    yield Case(question, fact.say("a", value=words["i"].rstrip(".。")), "off-topic", "invented", "none")


def _neighbours(fact: _Fact, told: Sequence[_Fact]) -> list[_Fact]:
    """The same fact of others, or of other years, with other values."""
    return [one for one in told if one.words is fact.words and one.value != fact.value]


def _another(value: str, kind: str, make: Callable[[str], str]) -> str:
    """Another value of the same kind."""
    while (other := make(kind)) == value:
        pass
    return other


def _value(data: dict[str, Any], kind: str, language: str, rng: Random) -> str:
    """A value as the language writes it."""
    if kind == "person":
        return str(rng.choice(data["people"]))
    if kind == "place":
        return str(rng.choice(data["places"]))
    number = rng.randrange(*_RANGES[kind])
    shown = _UNITS[language][kind].format(number)
    if language == "de" and kind == "money" and number >= 1000:
        shown = shown.replace(str(number), f"{number // 1000}.{number % 1000:03}")
    return shown


def _blocks(
    title: str,
    entities: Sequence[str],
    told: Sequence[_Fact],
    filler: Sequence[str],
    language: str,
    rng: Random,
) -> list[Block]:
    """A section an entity, in two blocks; the second one's heading is known, but not in its text."""
    joint = "" if language == "zh" else " "
    parts: list[tuple[str, tuple[str, ...]]] = [
        (f"# {title}\n\n{joint.join(rng.sample(filler, 2))}\n\n", (title,))
    ]
    for entity in entities:
        facts = [fact for fact in told if fact.entity == entity]
        said = [fact.say_generic() if rng.random() < 0.4 else fact.say("s") for fact in facts]
        said += rng.sample(filler, 2)
        rng.shuffle(said)
        half = len(said) // 2
        path: tuple[str, ...] = (title, entity)
        parts.append((f"## {entity}\n\n{joint.join(said[:half])}{joint or chr(10)}", path))
        parts.append((joint.join(said[half:]) + "\n\n", path))
    blocks, at = [], 0
    for index, (text, path) in enumerate(parts):
        blocks.append(
            Block(index, at, at + len(text), text, (0,) * len(text.split()), "paragraph", heading_path=path)
        )
        at += len(text)
    return blocks


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]
