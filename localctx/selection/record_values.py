"""Values of fields and words of questions in one comparable form, and how they compare. Pure."""

from __future__ import annotations

import functools
from decimal import Decimal, InvalidOperation
from typing import Any

import regex

from localctx.index.terms import fold

__all__ = ["MAX_VALUE_TOKENS", "SIGNED", "Wanted", "compare", "is_bound", "is_number", "key", "tokens"]

MAX_VALUE_TOKENS = 8
"""A value of more words is found only where it is quoted."""
_TOKEN = regex.compile(
    r"(?<![\w.,])[-+−]?\d+(?:[.,]\d+)*(?![\w]|[-/.:@]\w)"
    r"|[<>]=?|!=|≥|≤|≠"
    r"|[\p{L}\p{N}\p{M}_$#]+(?:[-./:@'’+&]+[\p{L}\p{N}\p{M}_]+)*"
)
SIGNED = regex.compile(r"(?<!\w)\w{1,8}[+*−-]+(?=[\s,;.?!]|$)")
"""A word whose last signs a key has not: C++, A-."""
_GROUPED = regex.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_PLAIN = regex.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d{1,3})?")
_DATE = regex.compile(r"\d{4}(?:-\d\d(?:-\d\d.*)?)?")


def tokens(text: str) -> list[str]:
    """The words and numbers of a text, folded; numbers in one form, but those that begin with 0."""
    return [_canonical(found) for found in _TOKEN.findall(fold(text))]


def key(value: Any) -> str:
    """A field's value in the form that questions have; empty for what holds no word."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return _canonical(repr(value))
    return _key_of_text(value) if isinstance(value, str) else ""


@functools.lru_cache(maxsize=1 << 14)
def _key_of_text(text: str) -> str:
    return " ".join(tokens(text))


@functools.lru_cache(maxsize=1 << 12)
def _canonical(token: str) -> str:
    token = token.replace("−", "-")
    plain = token.replace(",", "") if _GROUPED.fullmatch(token) else token
    digits = plain.lstrip("+-")
    if not _PLAIN.fullmatch(plain) or (digits[:1] == "0" and digits[1:2].isdigit()) or len(plain) > 40:
        return token
    try:
        number = Decimal(plain).normalize()
    except InvalidOperation:
        return token
    return "0" if not number else f"{number:f}"


@functools.lru_cache(maxsize=1 << 10)
def _number(token: str) -> int | float | None:
    """The number of a key, in the type that compares with JSON's."""
    if not is_number(token):
        return None
    return int(token) if token.lstrip("+-").isdecimal() else float(token)


def is_number(token: str) -> bool:
    """Whether a key is a number."""
    return _PLAIN.fullmatch(token) is not None


def is_bound(token: str) -> bool:
    """Whether a key is a number or a date, which others compare with."""
    return is_number(token) or _DATE.fullmatch(token) is not None


class Wanted:
    """A set of keys that values are looked for in; what cannot be one of them is passed over quickly."""

    def __init__(self, keys: set[str]) -> None:
        self._keys = keys
        self._heads = {one[:2] for one in keys}
        self._numbers = {float(one) for one in keys if is_number(one)}

    def find(self, value: Any) -> str | None:
        """The value's key where it is wanted."""
        if isinstance(value, str):
            head = value[:2].lower()
            is_plain = head.isascii() and head.isalnum() and len(head) == 2
            if is_plain and head not in self._heads and (head.isdigit() or head[0].isalpha()):
                return None
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and value not in self._numbers:
            return None
        found = key(value)
        return found if found in self._keys else None


def compare(value: Any, bound: str) -> int | None:
    """-1, 0 or 1: how a value stands to a bound, as numbers or as dates as far as the bound goes; None where
    they do not compare.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        limit = _number(bound)
        return None if limit is None else (value > limit) - (value < limit)
    text = key(value)
    if not text:
        return None
    is_date = isinstance(value, str) and len(text) > 4 and _DATE.fullmatch(text) is not None
    if is_date and _DATE.fullmatch(bound):
        head = text[: len(bound)]
        return (head > bound) - (head < bound)
    if is_number(text) and is_number(bound):
        left, right = Decimal(text), Decimal(bound)
        return (left > right) - (left < right)
    return None
