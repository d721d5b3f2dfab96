"""Pairs of contracts with known edits, in English, German and Chinese, from a seed. Knows no comparison.

A contract is clauses of sentences with slots (amounts, dates, roles, references). Edits are made on B;
numbers of clauses, references, line breaks and quotation marks change with them and are no edits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib.resources import files
from random import Random
from typing import Literal, TypeAlias

from localctx.alignment.values import Kind
from localctx.eval.contract_edits import edited_clauses
from localctx.eval.contract_parts import Clause, Making, Sentence
from localctx.eval.contract_writing import Span, Style, written

__all__ = ["LANGUAGES", "Edit", "Pair", "Split", "pair_of"]

Split: TypeAlias = Literal["calibrate", "judge"]
LANGUAGES = ("en", "de", "zh")


@dataclass(frozen=True, slots=True)
class Edit:
    """A change that was made: kind and level as a comparison should class it, and where it stands (None on
    the side that lacks it).
    """

    kind: Kind
    level: str
    a: Span | None
    b: Span | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts and everything that was done to make B out of A."""

    language: str
    a: str
    b: str
    edits: tuple[Edit, ...]


def pair_of(
    seed: int, language: str, n_edits: int, *, split: Split = "judge", n_copies: int = 1, n_spare: int = 4
) -> Pair:
    """A pair with that many edits. calibrate: from half of the clauses · n_copies: of each clause, for as
    many programmes, so that clauses are alike · n_spare: clauses kept back to be added.
    """
    data = json.loads(files("localctx.eval").joinpath("contracts.json").read_text("utf-8"))[language]
    rng = Random(f"{split} {language} {seed}")  # noqa: S311  # made texts, no secrets
    roles = rng.choice(data["roles"])
    making = Making(language, data, rng, (roles[0], roles[1]))
    bank = data["clauses"][::2] if split == "calibrate" else data["clauses"]
    names = [_name(rng) for _ in range(n_copies)] if n_copies > 1 else [""]
    clauses = [
        making.clause(f"c{copy}-{k}", title, sentences, name)
        for copy, name in enumerate(names)
        for k, (title, sentences) in enumerate(bank)
    ]
    rng.shuffle(clauses)
    making.spare, clauses = clauses[:n_spare], clauses[n_spare:]
    for clause in clauses:
        for sentence in clause.sentences:
            sentence.reference = rng.choice(clauses).key
    clauses.insert(0, _preamble(making))
    style = Style(rng.choice(("plain", "named")), rng.random() < 0.4, rng.random() < 0.5, False)
    edited = edited_clauses(making, clauses, n_edits)
    other = replace(style, is_wrapped=rng.random() < 0.5, has_straight_quotes=rng.random() < 0.3)
    text_a, spans_a = written(making, clauses, style)
    text_b, spans_b = written(making, edited, other)
    edits = tuple(Edit(kind, level, spans_a.get(key), spans_b.get(key)) for kind, level, key in making.edits)
    return Pair(language, text_a, text_b, edits)


def _preamble(making: Making) -> Clause:
    companies = making.rng.sample(making.data["companies"], 2)
    plain = making.data["preamble"]
    values = {"C1": companies[0], "C2": companies[1]}
    return Clause("preamble", "", [Sentence("preamble.0", (plain, plain), values, plain)])


def _name(rng: Random) -> str:
    return "".join(rng.choice("BCDFGKLMNPRSTV") + rng.choice("aeiou") for _ in range(3)).capitalize()
