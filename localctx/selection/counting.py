"""A question about all records → what is counted or listed, under which conditions. Pure; knows no files.

Every word has to be accounted for: as what is asked, a kind of record, a field, a value that some field has,
a comparison, or a word without meaning of its own. Else nothing is counted.
"""

from __future__ import annotations

import regex

from localctx.selection.counting_query import Condition, NotCounted, Operator, Query, Vocabulary
from localctx.selection.counting_reader import Reader
from localctx.selection.counting_tokens import Token
from localctx.selection.counting_words import INTENTS, Intent
from localctx.selection.record_values import MAX_VALUE_TOKENS, SIGNED, tokens

__all__ = [
    "Condition",
    "NotCounted",
    "Operator",
    "Query",
    "Vocabulary",
    "asks_for_all",
    "parse",
    "value_keys",
]

_QUOTED = regex.compile(r'"([^"]+)"|“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»|\'([^\']{2,})\'(?!\w)|`([^`]+)`')
_IN_TOTAL = regex.compile(r"\bin\s+total\W*$", regex.I)
_CAPITALS = regex.compile(r"(?<!\w)\p{Lu}+(?!\w)")
_INTENT = [(regex.compile(pattern, regex.I), intent) for pattern, intent in INTENTS]


def intent_of(question: str) -> tuple[Intent, str] | None:
    """What kind of answer a question about all records wants, and the rest of it; None: it is no such one."""
    for pattern, intent in _INTENT:
        found = pattern.search(question)
        if found is not None:
            rest = _IN_TOTAL.sub(" ", question[found.end() :])
            return intent, f"{question[: found.start()]} {rest}"
    return None


def asks_for_all(question: str) -> bool:
    """Whether only the whole of a document answers the question: how many there are, or all of them."""
    return intent_of(question) is not None


def value_keys(question: str) -> set[str]:
    """The phrases of a question that may be values of a field, by their keys."""
    found = intent_of(question)
    read = _tokens(found[1] if found else question)
    keys = {token.key for token in read if token.is_quoted}
    for size in range(1, MAX_VALUE_TOKENS + 1):
        for first in range(len(read) - size + 1):
            keys.add(" ".join(token.key for token in read[first : first + size]))
    return keys


def parse(question: str, vocabulary: Vocabulary) -> Query:
    """The question as a query. Raises NotCounted with the word that is not understood."""
    found = intent_of(question)
    if found is None:
        raise NotCounted("it does not ask how many or which")
    intent, rest = found
    if (signed := SIGNED.search(rest)) is not None:
        raise NotCounted(f"signs as in {signed[0]!r} are not told apart")
    reader = Reader(_tokens(rest), vocabulary)
    reader.read()
    targets = tuple(dict.fromkeys(reader.targets))
    if intent == "distinct" and not targets:
        raise NotCounted("which field is to be different is not said")
    if intent != "list" and len(targets) > 1:
        raise NotCounted(f"whether {' or '.join(targets)} is counted is not said")
    if intent == "count" and targets:
        _check_counted(targets[0], reader, vocabulary)
        intent = "distinct"
    return Query(intent, targets, frozenset(reader.kinds), tuple(reader.conditions))


def _check_counted(name: str, reader: Reader, vocabulary: Vocabulary) -> None:
    """Whether `how many NAME` can only mean how many values. Raises NotCounted."""
    if name in vocabulary.numeric:
        raise NotCounted(f"{name} holds numbers: say 'how many different {name}', or which records")
    if name in vocabulary.nones:
        raise NotCounted(f"{name} holds {vocabulary.nones[name]!r}: name the value")
    if reader.is_kind_first:
        raise NotCounted(f"whether records or values of {name} are counted is not said")


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    capitals = {key for word in _CAPITALS.findall(text) for key in tokens(word)}
    at = 0
    for match in _QUOTED.finditer(text):
        found += [Token(key, is_capital=key in capitals) for key in tokens(text[at : match.start()])]
        inner = next(group for group in match.groups() if group is not None)
        found.append(Token(" ".join(tokens(inner)), is_quoted=True))
        at = match.end()
    return [*found, *(Token(key, is_capital=key in capitals) for key in tokens(text[at:]))]
