"""Generated prose in which payments stand in varied sentences, between sentences that speak of other things.

Half of the kinds of other sentences have numbers, dates, names and towns too.
"""

from __future__ import annotations

import random
from typing import Any

__all__ = ["SCHEMA", "payments"]

_FIRST_NAMES = (
    "Anna Bert Carla Dirk Elena Fritz Greta Hugo Ines Jonas Karin Louis Maria Nils Olga Peter Rosa Simon "
    "Tilda Victor"
)
_LAST_NAMES = (
    "Keller Ortiz Lee Brandt Novak Silva Moreau Jensen Rossi Weber Duarte Olsen Fischer Kowalski Marin Haas"
)
_TOWNS = "Lyon Oslo Vienna Porto Leeds Ghent Turin Malmo Basel Riga Bergen Nantes Graz Split"
_MONTHS = "January February March April May June July August September October November December"
FIRST_NAMES, LAST_NAMES, MONTHS = _FIRST_NAMES.split(), _LAST_NAMES.split(), _MONTHS.split()
TOWNS = [*_TOWNS.split(), "New York", "Bad Homburg"]
PAYMENTS = (
    "On {date}, {name} of {city} paid {amount} euros into the fund.",
    "{name}, who lives in {city}, gave {amount} euros on {date}.",
    "A payment of {amount} euros from {name} ({city}) arrived on {date}.",
    "The fund received {amount} euros on {date} from {name} in {city}.",
    "{amount} euros were paid by {name} from {city} on {date}.",
    "In {city}, {name} handed over {amount} euros on {date}.",
    "According to the books, {name} sent {amount} euros from {city} on {date}.",
    "It was on {date} that {name} from {city} transferred {amount} euros.",
)
OTHERS = (
    "The weather was mild and the harbour was full of boats.",
    "Nobody had expected the bridge to stand for {n} years.",
    "The committee met {n} times before the summer.",
    "{name} wrote a long letter about the old mill.",
    "The road to {city} was closed for repairs.",
    "The library was opened on {date} and holds many maps.",
    "Most of the members prefer tea to coffee.",
    "The museum in {city} sold {n} tickets last week.",
    "A new roof cost {amount} euros, which the town paid.",
    "On {date}, {name} of {city} won {n} medals at the games.",
    "{name} was born in {city} on {date} as one of {n} children.",
    "The museum in {city} sold {n} tickets on {date}.",
)
SCHEMA: dict[str, Any] = {
    "title": "payment",
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "who paid"},
        "city": {"type": "string", "description": "where the payer lives"},
        "amount": {"type": "integer", "description": "euros"},
        "date": {"type": "string", "format": "date"},
    },
    "required": ["name", "city", "amount", "date"],
}


def payments(seed: int, n: int) -> tuple[str, list[dict[str, Any]]]:
    """A text with n payments, and the payments."""
    chance = random.Random(seed)
    records: list[dict[str, Any]] = []
    sentences: list[str] = []
    for _ in range(n):
        for _ in range(chance.randint(0, 2)):
            _, told = _date(chance)
            sentences.append(
                chance.choice(OTHERS).format(
                    n=chance.randint(2, 90),
                    name=_name(chance),
                    city=chance.choice(TOWNS),
                    date=told,
                    amount=f"{chance.randint(100, 9000):,}",
                )
            )
        date, told = _date(chance)
        amount = chance.randint(10, 9000)
        record = {"name": _name(chance), "city": chance.choice(TOWNS), "amount": amount, "date": date}
        shown = chance.choice([str(amount), f"{amount:,}"])
        sentences.append(
            chance.choice(PAYMENTS).format(name=record["name"], city=record["city"], amount=shown, date=told)
        )
        records.append(record)
    paragraphs = []
    while sentences:
        size = chance.randint(2, 5)
        paragraphs.append(" ".join(sentences[:size]))
        del sentences[:size]
    return "\n\n".join(paragraphs) + "\n", records


def _name(chance: random.Random) -> str:
    return f"{chance.choice(FIRST_NAMES)} {chance.choice(LAST_NAMES)}"


def _date(chance: random.Random) -> tuple[str, str]:
    """A date as YYYY-MM-DD, and as it is told."""
    year, month, day = chance.randint(1990, 2023), chance.randint(1, 12), chance.randint(1, 28)
    date, name = f"{year}-{month:02}-{day:02}", MONTHS[month - 1]
    return date, chance.choice([f"{day} {name} {year}", f"{name} {day}, {year}", date])
