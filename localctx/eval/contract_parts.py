"""What a generated contract is made of: clauses of sentences with slots, and their values from a seed.

Knows neither edits nor how a contract is written down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from localctx.alignment.values import Kind

__all__ = ["Clause", "Making", "Sentence"]

_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
}
_SPELLED = {
    10: "ten",
    14: "fourteen",
    20: "twenty",
    30: "thirty",
    45: "forty-five",
    60: "sixty",
    90: "ninety",
}
_PREFIX = {"en": "For the {x} programme: ", "de": "Für das Programm {x} gilt: ", "zh": "就{x}项目而言，"}


@dataclass(slots=True)
class Sentence:
    """A sentence in two wordings, the template that it has now, and what stands in its slots. reference: the
    key of the clause that it refers to.
    """

    key: str
    wordings: tuple[str, str]
    values: dict[str, str]
    template: str
    reference: str = ""


@dataclass(slots=True)
class Clause:
    """A titled clause, known by its key when it has moved."""

    key: str
    title: str
    sentences: list[Sentence]


@dataclass(slots=True)
class Making:
    """One pair on its way."""

    language: str
    data: dict[str, Any]
    rng: Random
    roles: tuple[str, str]
    spare: list[Clause] = field(default_factory=list)
    edits: list[tuple[Kind, str, str]] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)

    def value(self, slot: str) -> str:
        """A value of a slot, as the language writes it."""
        rng, language = self.rng, self.language
        if slot == "D":
            return str(rng.choice((3, 5, 7, 10, 12, 14, 18, 21, 24, 28, 30, 36, 48, 60, 72, 90)))
        if slot == "S":
            number = rng.choice(sorted(_SPELLED))
            return f"{_SPELLED[number]} ({number})" if language == "en" else str(number)
        if slot == "P":
            return rng.choice(("2", "3.5", "4", "5", "7.25", "8", "9", "12")).replace(
                ".", "," if language == "de" else "."
            )
        if slot == "M":
            amount = rng.randrange(5, 900) * 500
            plain = f"{amount:,}"
            return {"en": f"EUR {plain}", "de": f"{plain.replace(',', '.')} EUR", "zh": f"{amount}元"}[
                language
            ]
        return self._date()

    def _date(self) -> str:
        day, month, year = self.rng.randint(1, 28), self.rng.randint(1, 12), self.rng.randint(2024, 2031)
        if self.language == "zh":
            return f"{year}年{month}月{day}日"
        name = _MONTHS[self.language].split()[month - 1]
        return f"{day}. {name} {year}" if self.language == "de" else f"{day} {name} {year}"

    def clause(self, key: str, title: str, sentences: list[list[str]], suffix: str = "") -> Clause:
        """A clause with values; `suffix`: what tells copies of one clause apart."""
        prefix = _PREFIX[self.language].format(x=suffix) if suffix else ""
        made: list[Sentence] = []
        for place, (plain, other) in enumerate(sentences):
            values = {slot: self.value(slot) for slot in "DSMPT" if f"{{{slot}}}" in plain}
            made.append(Sentence(f"{key}.{place}", (prefix + plain, prefix + other), values, prefix + plain))
        return Clause(key, f"{title} – {suffix}" if suffix else title, made)
