"""An answer beside the strings of a right one. Pure; knows neither model nor document."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import regex

from localctx.eval.documents import Question
from localctx.selection import says_not_found
from localctx.session.answer import Support

__all__ = ["Score", "mean", "normalised", "score"]

_GROUPED = regex.compile(r"(?<=\d)[,. '\u00a0\u202f](?=\d{3}(?!\d))")
_LATIN = regex.compile(r"[\p{Latin}\p{N}]")


@dataclass(frozen=True, slots=True)
class Score:
    """recall: share of the gold strings in the answer · is_match: all of them, and no other value that the
    document gives · is_declined: the answer says that there is none. Of a question without an answer the
    first two are None.
    """

    recall: float | None
    is_match: bool | None
    is_declined: bool

    @property
    def is_false(self) -> bool | None:
        """Of a question without an answer: whether it was answered all the same."""
        return not self.is_declined if self.recall is None else None


def normalised(text: str) -> str:
    """Compatibility forms, case and white space made one; digits not grouped."""
    return " ".join(_GROUPED.sub("", unicodedata.normalize("NFKC", text)).casefold().split())


def score(question: Question, answer: str, support: Support) -> Score:
    """How an answer does. It declines when it says so, or when the document was found not to support it."""
    is_declined = support == "none" or says_not_found(answer)
    if not question.gold:
        return Score(None, None, is_declined)
    said = normalised(answer)
    held = _held(question.gold, said)
    is_match = len(held) == len(question.gold) and not _held(question.wrong, said)
    return Score(len(held) / len(question.gold), is_match, is_declined)


def _held(values: Sequence[str], said: str) -> list[str]:
    return [value for value in values if _holds(said, normalised(value))]


def _holds(said: str, value: str) -> bool:
    """Whether the value stands there by itself, not within a longer number or word."""
    edge = r"[\p{Latin}\p{N}]"
    before = rf"(?<!{edge})" if _LATIN.match(value[0]) else ""
    after = rf"(?!{edge})" if _LATIN.match(value[-1]) else ""
    return regex.search(before + regex.escape(value) + after, said) is not None


def mean(values: Iterable[float | None]) -> float | None:
    """Of those that are there; None of none."""
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None
