"""Facts planted in a text by a seed: one sentence each, on the text's own matter, with a figure of its own.

A fact is found in a summary by its figure and its name. Knows no model.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from localctx.index.stop_words import stop_words
from localctx.index.terms import content_words, words
from localctx.selection import sentences

__all__ = ["N_DECILES", "Fact", "found", "planted"]

N_DECILES = 10
NAMES = (
    "Tannau", "Orlebeck", "Quarzfeld", "Brimwell", "Hestholm", "Calderby", "Vosstal", "Merrowick",
    "Dunharrow", "Elmsgate", "Farnholt", "Grauden", "Ibsworth", "Jarrowby", "Kelmstadt", "Lindquay",
    "Norrheim", "Ostvale", "Penwold", "Rusthall", "Selwick", "Thornmere", "Ulverstead", "Wexbourne",
)  # fmt: skip
FORMS = (
    "The {a} and the {b} of {name} came to {figure} in all, as the record of that {c} shows.",
    "At {name} they counted {figure} cases of {a} and {b}, more than of any other {c}.",
    "It was {name} that gave {figure} crowns for the {a}, since {b} depended on its {c}.",
)
MIN_LETTERS, N_TOPICS = 5, 12


@dataclass(frozen=True, slots=True)
class Fact:
    """A planted sentence. decile: tenth of the text that it stands in, from 0."""

    sentence: str
    name: str
    figure: str
    decile: int


def planted(text: str, n_facts: int, seed: int, language: str = "en") -> tuple[str, list[Fact]]:
    """The text with n_facts facts, spread evenly, each behind a sentence's end; and the facts.

    The same arguments give the same text. Raises ValueError for more facts than names or sentences.
    """
    chance = random.Random(seed)  # noqa: S311  # a text, no secret
    ends = [one.end for one in sentences(text, language)]
    if n_facts > min(len(NAMES), len(ends)):
        raise ValueError(f"{n_facts} facts, {len(NAMES)} names, {len(ends)} sentences")
    names = chance.sample(NAMES, n_facts)
    figures = chance.sample(range(2_100, 9_900), n_facts)
    stops = stop_words(words(text[:4000]))
    pieces, facts, at = [], list[Fact](), 0
    for number in range(n_facts):
        middle = len(text) * (2 * number + 1) // (2 * n_facts)
        end = next((end for end in ends if end >= max(middle, at + 1)), ends[-1])
        topics = _topics(text[max(0, end - 3000) : end + 3000], stops)
        a, b, c = chance.sample(topics, 3)
        figure = f"{figures[number]:,}"
        sentence = chance.choice(FORMS).format(a=a, b=b, c=c, name=names[number], figure=figure)
        decile = min(N_DECILES - 1, number * N_DECILES // n_facts)
        facts.append(Fact(sentence, names[number], figure, decile))
        pieces += [text[at:end], " ", sentence]
        at = end
    return "".join([*pieces, text[at:]]), facts


def _topics(text: str, stops: frozenset[str]) -> list[str]:
    """The words that a stretch of text is about, most frequent first."""
    found = (word.lower() for word in content_words(text, stops) if word.isalpha())
    counted = Counter(word for word in found if len(word) >= MIN_LETTERS)
    topics = [word for word, _ in counted.most_common(N_TOPICS)]
    return topics if len(topics) >= 3 else [*topics, "houses", "people", "years"]


def found(summary: str, facts: Sequence[Fact]) -> list[bool]:
    """Which of the facts a summary tells: name and figure stand in the same of its lines."""
    lines = [line.replace(",", "") for line in summary.splitlines()]
    return [
        any(fact.name in line and fact.figure.replace(",", "") in line for line in lines) for fact in facts
    ]
