"""Documents whose chapters say the same of different things, and questions that only the scope tells apart.

Each chapter names its scope (a city, a party, a defined term) once, at its start; a passage some way on gives
a number for "this city", "the Supplier", "the Fund". Attended alone, the passages of several chapters cannot
be told apart. Knows a tokenizer, no model. Everything follows from the seed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from localctx.values import Tokenizer

__all__ = ["KINDS", "Chapter", "ConfusableDocument", "Kind", "Shape", "Word", "make_document", "words"]


Word: TypeAlias = tuple[str, tuple[int, ...]]
"""A word with the white space before it, and its tokens."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What the chapters differ in. Texts with {name} and {number} are filled in."""

    names: tuple[str, ...]
    title: str
    opening: str
    fact: str
    question: str


@dataclass(frozen=True, slots=True)
class Shape:
    """Tokens of filler between a chapter's opening and its passage, of the passage, and how many chapters."""

    n_filler: int = 400
    n_passage: int = 128
    n_chapters: int = 8


@dataclass(frozen=True, slots=True)
class Chapter:
    """text: of the passage, which is tokens [first, end) of the document and holds the fact."""

    name: str
    header: str
    question: str
    answer: str
    text: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class ConfusableDocument:
    """A token stream and its chapters, in order."""

    tokens: tuple[int, ...]
    chapters: tuple[Chapter, ...]


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


KINDS = {
    "city": Kind(
        _names("Lisbon Oslo Quito Hanoi Accra Perth Turin Basel Malmo Osaka Tunis Riga"),
        "Chapter about the city of {name}",
        "\n\nChapter about the city of {name}. Everything in this chapter is about {name}.",
        "\n\nThe secret code of this city is {number}. Remember that the code of this city is {number}.",
        "What is the secret code of {name}?",
    ),
    "party": Kind(
        _names("Halden Brixworth Carvalho Dunmore Elster Fenwick Garrick Holloway Ibsen Jarvis"),
        "Agreement with {name} Ltd",
        "\n\nAgreement with {name} Ltd. In this agreement {name} Ltd is called the Supplier.",
        "\n\nThe Supplier pays a yearly fee of {number} dollars. The fee of the Supplier is {number}.",
        "What yearly fee in dollars does {name} Ltd pay?",
    ),
    "term": Kind(
        _names("Aurora Borealis Cygnus Delphi Equinox Fulcrum Granite Horizon Indigo Juniper"),
        "Rules of the {name} scheme",
        '\n\nRules of the {name} scheme. In these rules "the Fund" means the {name} scheme.',
        "\n\nThe account number of the Fund is {number}. Payments go to the Fund under number {number}.",
        "What is the account number of the {name} scheme?",
    ),
}


def words(text: str, tokenize: Tokenizer) -> list[Word]:
    """The text cut before white space; the words' tokens are those of the text, one after the other."""
    found = re.findall(r"\s*\S+", text)
    return [(word, tuple(tokenize(word, place == 0))) for place, word in enumerate(found)]


def make_document(
    seed: int, haystack: Sequence[Word], tokenize: Tokenizer, kind: Kind, shape: Shape
) -> ConfusableDocument:
    """A document of the kind's sentences between `haystack`'s words (prose that says nothing of the facts).

    Raises ValueError when the haystack is shorter than the document or the kind has too few names.
    """
    source = random.Random(seed)  # noqa: S311  # reproducible, not secret
    if len(kind.names) < shape.n_chapters:
        raise ValueError(f"{shape.n_chapters} chapters, {len(kind.names)} names")
    names = source.sample(kind.names, shape.n_chapters)
    numbers = source.sample(range(10_000, 100_000), shape.n_chapters)
    n_filler = shape.n_chapters * (shape.n_filler + shape.n_passage)
    start = source.randrange(max(1, len(haystack) - n_filler))  # a word has at least one token
    maker = _Maker(haystack, start, tokenize, shape)
    for name, number in zip(names, numbers, strict=True):
        maker.add(kind, name, str(number))
    return ConfusableDocument(tuple(maker.tokens), tuple(maker.chapters))


class _Maker:
    """The document so far, and how far the haystack is used up."""

    def __init__(self, haystack: Sequence[Word], start: int, tokenize: Tokenizer, shape: Shape) -> None:
        self._haystack = haystack
        self._at = start
        self._tokenize = tokenize
        self._shape = shape
        self.tokens: list[int] = []
        self.chapters: list[Chapter] = []

    def add(self, kind: Kind, name: str, number: str) -> None:
        """One chapter: opening, filler, and a passage with the fact in its middle."""
        opening = kind.opening.format(name=name)
        self._append([(opening, tuple(self._tokenize(opening, not self.tokens)))])
        self._append(self._filler(self._shape.n_filler))
        fact = kind.fact.format(number=number)
        fact_tokens = tuple(self._tokenize(fact, False))
        n_around = max(0, self._shape.n_passage - len(fact_tokens))
        first = len(self.tokens)
        text = self._append(
            [*self._filler(n_around // 2), (fact, fact_tokens), *self._filler(n_around - n_around // 2)]
        )
        self.chapters.append(
            Chapter(
                name=name,
                header=f"[{kind.title.format(name=name)}]\n",
                question=kind.question.format(name=name),
                answer=number,
                text=text,
                first=first,
                end=len(self.tokens),
            )
        )

    def _append(self, parts: Iterable[Word]) -> str:
        texts = []
        for text, tokens in parts:
            texts.append(text)
            self.tokens += tokens
        return "".join(texts)

    def _filler(self, n_tokens: int) -> Sequence[Word]:
        """The haystack's next words, of n_tokens or one word more. Raises ValueError at its end."""
        first, n = self._at, 0
        while n < n_tokens:
            if self._at == len(self._haystack):
                raise ValueError(f"the haystack's {len(self._haystack):,} words are too few")
            n += len(self._haystack[self._at][1])
            self._at += 1
        return self._haystack[first : self._at]
