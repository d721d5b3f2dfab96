"""The words of a question about all records, as looked at from a place among them. Knows no conditions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from localctx.selection.counting_query import Vocabulary
from localctx.selection.counting_words import ARTICLES, CONNECTING, FILLERS, LINKS, OPERATORS
from localctx.selection.record_values import MAX_VALUE_TOKENS

__all__ = ["Token", "is_behind_link", "is_value_next", "longest"]


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the question, or a quotation as a whole, by its key; is_capital: written so throughout."""

    key: str
    is_quoted: bool = False
    is_capital: bool = False


def longest(words: Sequence[Token], at: int, known: Collection[str], most: int) -> tuple[str, int] | None:
    """The longest known phrase that begins at a word, of at most so many words, and how many it has."""
    for size in range(min(most, len(words) - at), 0, -1):
        phrase = " ".join(token.key for token in words[at : at + size])
        if phrase in known:
            return phrase, size
    return None


def is_behind_link(words: Sequence[Token], at: int) -> bool:
    """Whether the words before say that something is what comes."""
    before = [token.key for token in words[:at]]
    while before and before[-1] in ARTICLES:
        before.pop()
    return bool(before) and before[-1] in LINKS


def is_value_next(words: Sequence[Token], at: int, vocabulary: Vocabulary, name: str) -> bool:
    """Whether a value of the field comes next, small words between."""
    held = {value for value, fields in vocabulary.values.items() if name in fields}
    for here in range(at, len(words)):
        token = words[here]
        found = longest(words, here, held, MAX_VALUE_TOKENS)
        if found is not None and found[0] not in FILLERS and found[0] not in CONNECTING:
            return True
        if token.is_quoted or longest(words, here, OPERATORS, 4) is not None:
            return True
        if token.key not in FILLERS:
            return False
    return False
