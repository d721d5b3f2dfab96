"""What the generators need of a language: sentences with slots, facts, names. Knows no tokenizer."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Fact", "Language", "Names", "Prose", "Wording", "lines", "rows", "terms"]


@dataclass(frozen=True, slots=True)
class Fact:
    """sentence: with {n} where a number goes · asked: a question in its words · paraphrased: the same
    question without any of its content words · reworded: the sentence without any of those of `asked`;
    empty where there is none.
    """

    sentence: str
    asked: str
    paraphrased: str
    reworded: str = ""


@dataclass(frozen=True, slots=True)
class Prose:
    """Sentences that tell nothing anyone asks for: templates, and what goes into each of their slots."""

    templates: tuple[str, ...]
    slots: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Names:
    """What facts are about. Nothing of it stands in the prose.

    things: made of two parts, as are people and towns · words: real words for lists · code: parts of words
    that mean nothing.
    """

    thing: tuple[tuple[str, ...], tuple[str, ...]]
    person: tuple[tuple[str, ...], tuple[str, ...]]
    town: tuple[tuple[str, ...], tuple[str, ...]]
    jobs: tuple[str, ...]
    words: tuple[str, ...]
    code: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wording:
    """Sentences of the planted facts and the questions about them, with {slots}.

    Of lists, the last question of each asks for what no list holds.
    """

    number_of: str
    asks_number: str
    seen_at: str
    asks_seen: str
    holds: str
    asks_holds: str
    is_set: str
    is_set_to: str
    asks_set: str
    born: str
    works: str
    asks_born: str
    asks_job: str
    asks_common: tuple[str, ...]
    asks_frequent: tuple[str, ...]
    comma: str
    last_comma: str


@dataclass(frozen=True, slots=True)
class Language:
    """One language. `space` stands between sentences and between the parts of names."""

    code: str
    space: str
    prose: Prose
    facts: tuple[Fact, ...]
    names: Names
    wording: Wording

    def listed(self, items: list[str]) -> str:
        """The items as a sentence lists them."""
        if len(items) < 2:
            return "".join(items)
        return self.wording.comma.join(items[:-1]) + self.wording.last_comma + items[-1]


def lines(text: str) -> tuple[str, ...]:
    """The lines of a text, blank ones left out."""
    return tuple(line.strip() for line in text.strip().splitlines() if line.strip())


def terms(text: str) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(" ".join(term.split()) for term in text.split(",") if term.strip())


def rows(text: str) -> tuple[Fact, ...]:
    """Facts of three lines each, or four, with a blank line between them."""
    return tuple(Fact(*lines(row)) for row in text.strip().split("\n\n"))
