"""Texts whose facts stand further apart than a window: where people live, and who lives with whom.

Knows a tokenizer and no model. One seed makes one document.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from localctx.eval.english import ENGLISH
from localctx.eval.prose import made_sentences
from localctx.values import Tokenizer

__all__ = ["CITIES", "Asked", "Homes", "Kind", "homes"]

CITIES = ("Oslo", "Cairo", "Lima", "Delhi", "Rome", "Tokyo", "Paris", "Berlin")
PEOPLE = ("Anna", "Bruno", "Clara", "David", "Elena", "Frank", "Greta", "Henry")
SISTERS = ("Ida", "Karen", "Maria", "Olga", "Paula", "Rita", "Susan", "Tina")
OWN, SHARED = (0.02, 0.30), (0.58, 0.72)
"""Shares of the text between which the two kinds of sentences stand."""
Kind: TypeAlias = Literal["one hop", "two hops"]


@dataclass(frozen=True, slots=True)
class Asked:
    """one hop: the city stands in one sentence about the person · two hops: the sentence names another
    person, whose city stands far before it. right: number of the city · span: tokens [first, end) of the
    sentence about the person.
    """

    kind: Kind
    question: str
    right: int
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Homes:
    """A document of made prose in which eight people live in eight cities, and a sister with each."""

    tokens: tuple[int, ...]
    asked: tuple[Asked, ...]


def homes(tokenize: Tokenizer, n_tokens: int, seed: int) -> Homes:
    """The document of a seed, n_tokens long."""
    source = random.Random(f"homes {seed}")  # noqa: S311  # a draw that anyone can repeat
    n = len(CITIES)
    people, sisters = source.sample(PEOPLE, n), source.sample(SISTERS, n)
    cities, brothers = source.sample(range(n), n), source.sample(range(n), n)
    facts = [f"{one} lives in {CITIES[city]}." for one, city in zip(people, cities, strict=True)]
    facts += [
        f"{one} is the sister of {people[brother]}. She lives with {people[brother]}."
        for one, brother in zip(sisters, brothers, strict=True)
    ]
    tokens, spans = _written(tokenize, n_tokens, facts, source)
    rights = [*cities, *(cities[brother] for brother in brothers)]
    asked = tuple(
        Asked("one hop" if number < n else "two hops", f" {name} lives in", rights[number], spans[number])
        for number, name in enumerate([*people, *sisters])
    )
    return Homes(tuple(tokens), asked)


def _written(
    tokenize: Tokenizer, n_tokens: int, facts: Sequence[str], source: random.Random
) -> tuple[list[int], list[tuple[int, int]]]:
    """The tokens, and where in them each fact stands."""
    prose, places = made_sentences(ENGLISH, source), list(_places(n_tokens))
    tokens: list[int] = []
    spans: list[tuple[int, int]] = []
    while len(tokens) < n_tokens:
        before = " " if tokens else ""
        if len(spans) < len(facts) and len(tokens) >= places[len(spans)]:
            added = tokenize(before + facts[len(spans)], not tokens)
            spans.append((len(tokens), len(tokens) + len(added)))
        else:
            added = tokenize(before + next(prose), not tokens)
        tokens += added
    return tokens[:n_tokens], spans


def _places(n_tokens: int) -> Iterator[float]:
    for low, high in (OWN, SHARED):
        for number in range(len(CITIES)):
            yield n_tokens * (low + (high - low) * number / len(CITIES))
