"""Texts → comparable terms; passages → the places that may support an answer. Pure text; knows no documents.

A term is a stemmed content word, a number by its value ("#1250000"), a code word ("px200"), or a pair of
characters of a script without spaces. Two sentences in a row with the headings above them are a place.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import regex

from localctx.index.terms import UNSPACED, content_words, fold, stem
from localctx.selection.key_sentences import sentences
from localctx.selection.numbers import numbers
from localctx.selection.word_forms import BASE_FORMS, GERMAN_NUMBERS, WEAK_WORDS

__all__ = ["Place", "holds", "own_terms", "places", "rarity", "runs", "share_of", "terms"]

ROW_CHARACTERS = 60
MIN_STEM = 4
LIKE_LETTERS = 5
ABSENT_HOLDERS = 0.4
KEPT_TEXTS = 4096

_GERMAN_ENDING = regex.compile(r"(?:ern|em|en|er|es|e|n|s)$")

_UNSPACED = regex.compile(f"[{UNSPACED}]+")
_BINDING = regex.compile(
    r"什么时候|什么|怎么|怎样|如何|多少|哪些|哪个|哪里|哪一|哪年|何时|几时|时候|多长|多久|是否|可以|必须|以下|之前|之后|以后|那里|这个|那个|没有"
    r"|です|ます|した|から|まで|[的是为在由了有和与及或对被把将从到于以也就都而其此该这那之所个吗呢谁几请问很多须要应不]"
)
_CODE = regex.compile(
    r"(?<![\p{Latin}\p{N}])(?:\p{Lu}[\p{Lu}\p{Nd}]*[-/.]?\p{Nd}[\p{Lu}\p{Nd}]*(?:[-/.][\p{Lu}\p{Nd}]+)*)(?![\p{Latin}\p{N}])"
)
"""PX-200, B52: letters in capitals, then digits."""
_SIGNS = {
    "%": regex.compile(r"[%％]|\bper ?cent\b|\bprozent\b|百分之", regex.IGNORECASE),
    "$": regex.compile(r"\$|\bdollars?\b|美元", regex.IGNORECASE),
    "€": regex.compile(r"€|\beuros?\b|欧元", regex.IGNORECASE),
    "£": regex.compile(r"£|\bpounds?\b|英镑", regex.IGNORECASE),
}
_SIGN_WORDS = frozenset(("percent", "cent", "prozent", "dollar", "euro", "pound"))
_LONE = ("1",)
"""Spelled "one" and "first" are seldom numbers."""


@dataclass(frozen=True, slots=True)
class Place:
    """One sentence of passage `passage` and the one before it, under headings (their terms, outermost first).

    number: its own among all places · all_terms: those of both sentences and of the headings · above: the
    text of the headings.
    """

    number: int
    passage: int
    text: str
    terms: frozenset[str]
    all_terms: frozenset[str]
    before_text: str = ""
    before_terms: frozenset[str] = frozenset()
    headings: tuple[frozenset[str], ...] = ()
    above: str = ""

    @property
    def both(self) -> str:
        """The two sentences."""
        return f"{self.before_text} {self.text}".strip()


@functools.lru_cache(maxsize=KEPT_TEXTS)
def terms(text: str, language: str = "en", *, readings: bool = False) -> frozenset[str]:
    """The terms of a text; with `readings` also the parts of its numbers, 12 and 300 of "12 300"."""
    found = {fold(regex.sub(r"[^\p{L}\p{N}]", "", code[0])) for code in _CODE.finditer(text)}
    text = _CODE.sub(" ", text)
    spelled = text
    for number in numbers(text):
        if not (number.spelled and number.key in _LONE):
            found.add(f"#{number.key}")
            found.update(f"#{part}" for part in number.parts if readings)
        gap = " " * (number.end - number.start)
        spelled = spelled[: number.start] + gap + spelled[number.end :]
    for word in content_words(spelled if spelled.isascii() else _UNSPACED.sub(" ", spelled)):
        if word in GERMAN_NUMBERS and language == "de":
            found.add(f"#{GERMAN_NUMBERS[word]}")
        elif word not in WEAK_WORDS and not word[0].isdecimal():
            found.add(_stem(word, language))
    found.update(sign for sign, pattern in _SIGNS.items() if pattern.search(text))
    return frozenset(found.difference(_SIGN_WORDS)).union(*runs(text))


@functools.lru_cache(maxsize=1 << 14)
def _stem(word: str, language: str) -> str:
    if language == "de" and len(word) > MIN_STEM:
        return _GERMAN_ENDING.sub("", word) if len(word) > MIN_STEM + 1 else word.removesuffix("e")
    return stem(stem(BASE_FORMS.get(word, word)))


def places(
    passages: Sequence[str], headings: Sequence[Sequence[str]] = (), language: str = "en"
) -> list[Place]:
    """Every sentence of the passages together with the one before it."""
    found: list[Place] = []
    for number, passage in enumerate(passages):
        above = tuple(terms(line, language, readings=True) for line in headings[number]) if headings else ()
        lines = "\n".join(headings[number]) if headings else ""
        before_text, before = "", frozenset[str]()
        for unit in _units(passage, language):
            here = terms(unit, language, readings=True)
            all_terms = here.union(before, *above)
            place = Place(len(found), number, unit, here, all_terms, before_text, before, above, lines)
            found.append(place)
            before_text, before = unit, here
    return found


def _units(passage: str, language: str) -> Iterator[str]:
    """Sentences; the short lines of a list or table each by itself."""
    for sentence in sentences(passage, language):
        lines = sentence.text.splitlines()
        yield from lines if max(map(len, lines)) <= ROW_CHARACTERS else [sentence.text]


def rarity(wanted: Collection[str], found: Sequence[Place]) -> dict[str, float]:
    """Each wanted term's weight: the fewer places hold it, the more; most where none does."""
    n_holding = Counter(term for place in found for term in wanted if holds(place.terms, term))
    return {term: math.log(2 + len(found) / (n_holding[term] or ABSENT_HOLDERS)) for term in wanted}


def runs(text: str) -> list[frozenset[str]]:
    """Of unspaced scripts the pairs of each run between binding characters: about the text's words."""
    if text.isascii():
        return []
    parts = [part for run in _UNSPACED.findall(text) for part in _BINDING.split(run)]
    return [frozenset(map("".join, itertools.pairwise(part))) for part in parts if len(part) > 1]


def own_terms(answer: str, known: Collection[str], language: str = "en") -> frozenset[str]:
    """The answer's terms that are not known; without pairs of unspaced scripts that join both kinds."""
    own = terms(answer, language) - frozenset(known)
    seams: set[str] = set()
    for run in _UNSPACED.findall(answer):
        for part in _BINDING.split(run):
            pairs = ["".join(pair) for pair in itertools.pairwise(part)]
            for at, pair in enumerate(pairs):
                beside = pairs[max(0, at - 1) : at] + pairs[at + 1 : at + 2]
                if any(one in known for one in beside):
                    seams.add(pair)
    return own - seams


def holds(held: Collection[str], term: str) -> bool:
    """Whether the terms hold this one or, of a longer word, one that differs in its ending only."""
    if term in held:
        return True
    if len(term) < LIKE_LETTERS or not term.isalpha():
        return False
    alike = _by_beginning(held if isinstance(held, frozenset) else frozenset(held)).get(term[:LIKE_LETTERS])
    if alike is None:
        return False  # whatever is like it shares these letters
    stump = term[: len(term) - 1]
    return any(
        (other.startswith(stump) and len(term) > LIKE_LETTERS and abs(len(other) - len(term)) <= 2)
        or (other.startswith(term) and len(other) - len(term) <= 3)
        or (term.startswith(other) and len(term) - len(other) <= 3)
        for other in alike
    )


@functools.lru_cache(maxsize=KEPT_TEXTS)
def _by_beginning(held: frozenset[str]) -> dict[str, list[str]]:
    """The longer ones by their first letters."""
    found: dict[str, list[str]] = {}
    for term in held:
        if len(term) >= LIKE_LETTERS:
            found.setdefault(term[:LIKE_LETTERS], []).append(term)
    return found


def share_of(
    wanted: Collection[str], held: Collection[str], weights: dict[str, float] | None = None
) -> float:
    """The (weighted) share of `wanted` that is in `held`; 1 where nothing is wanted."""
    if not wanted:
        return 1.0
    held = held if isinstance(held, frozenset) else frozenset(held)
    if not weights:
        return sum(holds(held, t) for t in wanted) / len(wanted)
    return sum(weights[t] for t in wanted if holds(held, t)) / sum(weights[t] for t in wanted)
