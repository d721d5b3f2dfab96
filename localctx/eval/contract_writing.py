"""The clauses of a generated contract → its text, and where each clause and sentence stands in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from localctx.eval.contract_parts import Clause, Making, Sentence

__all__ = ["Span", "Style", "written"]

Span: TypeAlias = tuple[int, int]
WIDTH = 76


@dataclass(frozen=True, slots=True)
class Style:
    """How a contract is written down."""

    numbering: str
    by_sentence: bool
    is_wrapped: bool
    has_straight_quotes: bool


def written(making: Making, clauses: list[Clause], style: Style) -> tuple[str, dict[str, Span]]:
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
    making: Making, clause: Clause, numbers: dict[str, int], style: Style
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


def _filled(making: Making, sentence: Sentence, numbers: dict[str, int]) -> str:
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
