"""Values that stand in a passage → grammar expressions that write nothing else. Pure; knows no text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localctx.engine.gbnf import literal

__all__ = ["MAX_WORDS", "STRING_RULE", "NothingFits", "Phrase", "Sources", "one_of", "string_rules"]

MAX_WORDS = 400
"""Words of a passage that a string may begin with; llama.cpp follows all of them side by side."""
STRING_RULE = "source-string"


class NothingFits(Exception):
    """No value of the passage can stand at a place that must have one."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words in a row, of which any run may be a value that neither begins nor ends with one of `inner`, the
    places of words that only join others.
    """

    words: tuple[str, ...]
    inner: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Sources:
    """What a passage holds. numbers: as JSON · dates: as YYYY-MM-DD · numbers_at: other numbers for some
    places of the schema.
    """

    phrases: Sequence[Phrase] = ()
    numbers: Sequence[str] = ()
    dates: Sequence[str] = ()
    numbers_at: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def numbers_for(self, place: str) -> Sequence[str]:
        """The numbers that may stand at a place of the schema."""
        return self.numbers_at.get(place, self.numbers)


def one_of(values: Sequence[str]) -> str:
    """One of the JSON texts. Raises NothingFits where there is none."""
    if not values:
        raise NothingFits
    return f"({' | '.join(literal(value) for value in dict.fromkeys(values))})"


def string_rules(phrases: Sequence[Phrase]) -> dict[str, str]:
    """The rule STRING_RULE, with one for every word: it, and what may follow it. Raises NothingFits."""
    rules: dict[str, str] = {}
    starts: list[str] = []
    for number, phrase in enumerate(phrases):
        last = len(phrase.words) - 1
        for n, word in enumerate(phrase.words):
            name = f"w-{number}-{n}"
            text = literal(json.dumps(word, ensure_ascii=False)[1:-1])
            onward = f' " " w-{number}-{n + 1}' if n < last else ""
            rules[name] = (
                f"{text}{onward}" if n in phrase.inner else f"{text} ({onward} )?" if onward else text
            )
            if n not in phrase.inner:
                starts.append(name)
    if not starts:
        raise NothingFits
    rules[STRING_RULE] = rf'"\"" ( {" | ".join(starts[:MAX_WORDS])} ) "\""'
    return rules
