"""Texts whose facts stand further apart than a window: codes of people, and people who share them.

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

__all__ = ["CODES", "Asked", "CodeDocument", "Kind", "code_document"]

CODES = 8
"""People with a code of their own in a document, and as many who share one of theirs."""
NAMES = (
    "Anna", "Bruno", "Clara", "David", "Elena", "Frank", "Greta", "Henry", "Irene", "Jacob", "Karen", "Louis",
    "Maria", "Nolan", "Olga", "Peter",
)  # fmt: skip
OWN, SHARED = (0.02, 0.30), (0.58, 0.72)
"""Shares of the text between which the two kinds of sentences stand."""
Kind: TypeAlias = Literal["own", "shared"]


@dataclass(frozen=True, slots=True)
class Asked:
    """own: the code stands in one sentence · shared: one sentence names another person, whose code stands far
    before it. right: number of the code · span: tokens [first, end) of the sentence about the person.
    """

    kind: Kind
    question: str
    right: int
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class CodeDocument:
    """codes: what may be answered."""

    tokens: tuple[int, ...]
    codes: tuple[str, ...]
    asked: tuple[Asked, ...]


def code_document(tokenize: Tokenizer, n_tokens: int, seed: int) -> CodeDocument:
    """A document of n_tokens of made prose with its sentences in it."""
    source = random.Random(f"codes {seed}")  # noqa: S311  # a draw that anyone can repeat
    names = source.sample(NAMES, 2 * CODES)
    leading = source.sample("123456789", CODES)  # the first digit tells them apart
    codes = tuple(f"{digit}{source.randrange(1000):03}" for digit in leading)
    owners, sharers = names[:CODES], names[CODES:]
    of_whom = source.sample(range(CODES), CODES)
    facts = [f"The code of {owner} is {code}." for owner, code in zip(owners, codes, strict=True)]
    facts += [
        f"The code of {sharer} is the same as the code of {owners[whose]}."
        for sharer, whose in zip(sharers, of_whom, strict=True)
    ]
    tokens, spans = _written(tokenize, n_tokens, facts, source)
    rights = [*range(CODES), *of_whom]
    asked = tuple(
        Asked("own" if n < CODES else "shared", f" The code of {names[n]} is", rights[n], spans[n])
        for n in range(2 * CODES)
    )
    return CodeDocument(tuple(tokens), codes, asked)


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
        for number in range(CODES):
            yield n_tokens * (low + (high - low) * number / CODES)
