"""Pairs of contracts with known edits, in English, German and Chinese, from a seed. Knows no comparison.

A contract is clauses of sentences with slots (amounts, dates, roles, references). Edits are made on B;
numbers of clauses, references, line breaks and quotation marks change with them and are no edits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib.resources import files
from random import Random
from typing import Any, Literal, TypeAlias

from localctx.alignment.values import Kind

__all__ = ["LANGUAGES", "Edit", "Pair", "Split", "pair_of"]

Split: TypeAlias = Literal["calibrate", "judge"]
Span: TypeAlias = tuple[int, int]
LANGUAGES = ("en", "de", "zh")
WIDTH = 76
TRIES = 40
MOVED_LEAST = 3
"""Clauses that a moved clause passes at least."""
SHARES: tuple[tuple[Kind, str, int], ...] = (
    ("number", "", 18), ("date", "", 9), ("party", "", 10), ("reworded", "", 19), ("added", "sentence", 8),
    ("removed", "sentence", 8), ("added", "clause", 6), ("removed", "clause", 6), ("moved", "clause", 16),
)  # fmt: skip
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


@dataclass(slots=True)
class _Sentence:
    key: str
    wordings: tuple[str, str]
    values: dict[str, str]
    template: str
    reference: str = ""


@dataclass(slots=True)
class _Clause:
    key: str
    title: str
    sentences: list[_Sentence]


@dataclass(frozen=True, slots=True)
class _Style:
    """How a contract is written down."""

    numbering: str
    by_sentence: bool
    is_wrapped: bool
    has_straight_quotes: bool


@dataclass(slots=True)
class _Making:
    """One pair on its way."""

    language: str
    data: dict[str, Any]
    rng: Random
    roles: tuple[str, str]
    spare: list[_Clause] = field(default_factory=list)
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

    def clause(self, key: str, title: str, sentences: list[list[str]], suffix: str = "") -> _Clause:
        """A clause with values; `suffix`: what tells copies of one clause apart."""
        prefix = _PREFIX[self.language].format(x=suffix) if suffix else ""
        made: list[_Sentence] = []
        for place, (plain, other) in enumerate(sentences):
            values = {slot: self.value(slot) for slot in "DSMPT" if f"{{{slot}}}" in plain}
            made.append(_Sentence(f"{key}.{place}", (prefix + plain, prefix + other), values, prefix + plain))
        return _Clause(key, f"{title} – {suffix}" if suffix else title, made)


def pair_of(
    seed: int, language: str, n_edits: int, *, split: Split = "judge", n_copies: int = 1, n_spare: int = 4
) -> Pair:
    """A pair with that many edits. calibrate: from half of the clauses · n_copies: of each clause, for as
    many programmes, so that clauses are alike · n_spare: clauses kept back to be added.
    """
    data = json.loads(files("localctx.eval").joinpath("contracts.json").read_text("utf-8"))[language]
    rng = Random(f"{split} {language} {seed}")  # noqa: S311  # made texts, no secrets
    roles = rng.choice(data["roles"])
    making = _Making(language, data, rng, (roles[0], roles[1]))
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
    style = _Style(rng.choice(("plain", "named")), rng.random() < 0.4, rng.random() < 0.5, False)
    edited = _edited(making, clauses, n_edits)
    other = replace(style, is_wrapped=rng.random() < 0.5, has_straight_quotes=rng.random() < 0.3)
    text_a, spans_a = _written(making, clauses, style)
    text_b, spans_b = _written(making, edited, other)
    edits = tuple(Edit(kind, level, spans_a.get(key), spans_b.get(key)) for kind, level, key in making.edits)
    return Pair(language, text_a, text_b, edits)


def _preamble(making: _Making) -> _Clause:
    companies = making.rng.sample(making.data["companies"], 2)
    plain = making.data["preamble"]
    values = {"C1": companies[0], "C2": companies[1]}
    return _Clause("preamble", "", [_Sentence("preamble.0", (plain, plain), values, plain)])


def _name(rng: Random) -> str:
    return "".join(rng.choice("BCDFGKLMNPRSTV") + rng.choice("aeiou") for _ in range(3)).capitalize()


def _edited(making: _Making, clauses: list[_Clause], n_edits: int) -> list[_Clause]:
    """B: the clauses after edits, each noted with the key of what it touched."""
    edited = [
        _Clause(c.key, c.title, [replace(s, values=dict(s.values)) for s in c.sentences]) for c in clauses
    ]
    weights = [weight for _, _, weight in SHARES]
    for kind, level, _ in making.rng.choices(SHARES, weights, k=4 * n_edits):
        n_before = len(making.edits)
        if n_before >= n_edits:
            break
        for _ in range(TRIES):
            _edit(making, edited, kind, level)
            if len(making.edits) > n_before:
                break
    return edited


def _edit(making: _Making, edited: list[_Clause], kind: Kind, level: str) -> None:
    """Make one edit, or none where what was drawn does not allow it."""
    rng = making.rng
    place = rng.randrange(1, len(edited))
    clause = edited[place]
    if kind == "moved":
        to = rng.randrange(1, len(edited))
        if abs(to - place) < MOVED_LEAST or clause.key in making.touched or clause.key.startswith("new"):
            return
        edited.insert(to, edited.pop(place))
        making.touched.add(clause.key)
        making.edits.append(("moved", "clause", clause.key))
    elif level == "clause":
        _edit_clause(making, edited, place, kind)
    elif level == "sentence":
        _edit_sentences(making, clause, kind)
    else:
        target = edited[0] if kind == "party" and rng.random() < 0.2 else clause
        sentence = rng.choice(target.sentences)
        if sentence.key not in making.touched and _reword(making, sentence, kind):
            making.touched.add(sentence.key)
            making.edits.append((kind, "entity" if kind != "reworded" else "paragraph", sentence.key))


def _edit_clause(making: _Making, edited: list[_Clause], place: int, kind: Kind) -> None:
    clause = edited[place]
    if kind == "added" and making.spare:
        new = making.spare.pop()
        for sentence in new.sentences:
            sentence.reference = edited[1].key
        edited.insert(place, new)
        keys = {sentence.key for sentence in new.sentences}
        making.touched |= {new.key, *keys}
        making.edits.append(("added", "clause", new.key))
    elif kind == "removed":
        keys = {clause.key, *(sentence.key for sentence in clause.sentences)}
        is_named = any(s.reference == clause.key and "{R}" in s.template for c in edited for s in c.sentences)
        if not keys & making.touched and not is_named and len(edited) > MOVED_LEAST:
            edited.remove(clause)
            making.touched |= keys
            making.edits.append(("removed", "clause", clause.key))


def _edit_sentences(making: _Making, clause: _Clause, kind: Kind) -> None:
    at = making.rng.randrange(len(clause.sentences) + (kind == "added"))
    if kind == "removed":
        sentence = clause.sentences[at]
        if len(clause.sentences) > 1 and sentence.key not in making.touched:
            clause.sentences.remove(sentence)
            making.touched.add(sentence.key)
            making.edits.append(("removed", "sentence", sentence.key))
    elif making.spare and (taken := making.rng.choice(making.spare)).sentences:
        if clause.key in making.touched and clause.key.startswith("new"):
            return
        sentence = taken.sentences.pop()
        sentence.reference = clause.key
        if not taken.sentences:
            making.spare.remove(taken)
        clause.sentences.insert(at, sentence)
        making.touched.add(sentence.key)
        making.edits.append(("added", "sentence", sentence.key))


def _reword(making: _Making, sentence: _Sentence, kind: Kind) -> bool:
    """Change a sentence; False where it has nothing of that kind."""
    rng = making.rng
    if kind in ("number", "date"):
        slots = [slot for slot in sentence.values if slot in ("T" if kind == "date" else "DSMP")]
        if not slots:
            return False
        slot = rng.choice(slots)
        old = sentence.values[slot]
        while sentence.values[slot] == old:
            sentence.values[slot] = making.value(slot)
        return True
    if kind == "party":
        return _change_party(making, sentence)
    way = rng.random()
    if way < 0.5:
        sentence.template = sentence.wordings[1]
    elif way < 0.75:
        pairs = [pair for pair in making.data["not"] if pair[0] in sentence.template]
        if pairs and "不" not in sentence.template:
            sentence.template = _swapped(sentence.template, rng.choice(pairs))
    else:
        pairs = [pair for pair in making.data["words"] if pair[0] in sentence.template]
        if pairs:
            sentence.template = _swapped(sentence.template, rng.choice(pairs))
    return sentence.template != sentence.wordings[0]


def _swapped(text: str, pair: list[str]) -> str:
    return text.replace(pair[0], pair[1], 1)


def _change_party(making: _Making, sentence: _Sentence) -> bool:
    if "C1" in sentence.values:
        others = [name for name in making.data["companies"] if name not in sentence.values.values()]
        sentence.values[making.rng.choice(("C1", "C2"))] = making.rng.choice(others)
        return True
    if "{A}" not in sentence.template and "{B}" not in sentence.template:
        return False
    swapped = sentence.template.replace("{A}", "\0").replace("{B}", "{A}").replace("\0", "{B}")
    sentence.template = swapped
    return True


def _written(making: _Making, clauses: list[_Clause], style: _Style) -> tuple[str, dict[str, Span]]:
    """The contract's text, and where each clause and sentence stands in it."""
    numbers = {clause.key: number for number, clause in enumerate(clauses) if number}
    pieces = [making.data["title"], "\n\n"]
    at = sum(map(len, pieces))
    spans: dict[str, Span] = {}
    for clause in clauses:
        start = at
        for key, piece in _pieces(making, clause, numbers, style):
            if key:
                spans[key] = (at, at + len(piece.rstrip()))
            pieces.append(piece)
            at += len(piece)
        spans[clause.key] = (start, at)
    return "".join(pieces), spans


def _pieces(
    making: _Making, clause: _Clause, numbers: dict[str, int], style: _Style
) -> Iterator[tuple[str, str]]:
    """Pieces of a clause's text, each with its sentence's key or ""."""
    number = numbers.get(clause.key)
    gap = "" if making.language == "zh" else " "
    if number is not None:
        yield "", f"{_head(making.language, style.numbering, number)}{clause.title}\n\n"
    column = 0
    for place, sentence in enumerate(clause.sentences, start=1):
        text = _filled(making, sentence, numbers)
        if style.has_straight_quotes:
            text = text.translate(str.maketrans("“”„", '"""'))
        if style.by_sentence and number is not None:
            yield "", f"{number}.{place}{gap or ' '}"
            column = 5
        if style.is_wrapped:
            text, column = _wrapped(text, column, making.language)
        is_last = place == len(clause.sentences)
        yield sentence.key, text + ("\n\n" if is_last or style.by_sentence else gap)


def _head(language: str, numbering: str, number: int) -> str:
    if language == "de":
        return f"§ {number} " if numbering == "named" else f"{number}. "
    if language == "zh":
        return f"第{_han(number)}条 " if numbering == "named" else f"{number}. "
    return f"Section {number}. " if numbering == "named" else f"{number}. "


def _han(number: int) -> str:
    digits = "零一二三四五六七八九"
    if number >= 100:
        return str(number)
    tens, ones = divmod(number, 10)
    return ("" if tens == 0 else ("" if tens == 1 else digits[tens]) + "十") + (digits[ones] if ones else "")


def _filled(making: _Making, sentence: _Sentence, numbers: dict[str, int]) -> str:
    number = numbers.get(sentence.reference, 1)
    shown = _han(number) if making.language == "zh" else number
    reference = making.data["reference"].format(n=shown)
    return sentence.template.format(A=making.roles[0], B=making.roles[1], R=reference, **sentence.values)


def _wrapped(text: str, column: int, language: str) -> tuple[str, int]:
    """The text with line breaks so that no line is wider; the column behind it. Lengths stay: a break takes a
    space's place (none in Chinese).
    """
    if language == "zh":
        return text, 0
    words = text.split(" ")
    lines = words[0]
    column += len(words[0])
    for word in words[1:]:
        if column + 1 + len(word) > WIDTH:
            lines, column = f"{lines}\n{word}", len(word)
        else:
            lines, column = f"{lines} {word}", column + 1 + len(word)
    return lines, column + 1
