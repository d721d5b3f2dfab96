"""A question about all records → what is counted or listed, under which conditions. Pure; knows no files.

Every word has to be accounted for: as what is asked, a kind of record, a field, a value that some field has,
a comparison, or a word without meaning of its own. Else nothing is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import regex

from localctx.index.terms import fold
from localctx.selection.counting_words import (
    ALTERNATIVES,
    CONNECTING,
    FILLERS,
    GENERIC_KINDS,
    INTENTS,
    NEGATIONS,
    OPERATORS,
    Intent,
    singular,
)
from localctx.selection.record_fields import field_names
from localctx.selection.record_values import MAX_VALUE_TOKENS, is_number, tokens

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

Operator: TypeAlias = Literal["=", ">", ">=", "<", "<=", "between", "prefix", "suffix", "contains", "exists"]
_QUOTED = regex.compile(r'"([^"]+)"|“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»|\'([^\']{2,})\'(?!\w)|`([^`]+)`')
_INTENT = [(regex.compile(pattern, regex.I), intent) for pattern, intent in INTENTS]


class NotCounted(Exception):
    """The question cannot be answered from fields; the reason is a phrase."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What a record's field has to be; any of `values` will do. Values are keys (record_values.key), for
    `between` a pair of bounds.
    """

    field: str
    operator: Operator
    values: tuple[str, ...] = ()
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """intent: count, list or distinct · targets: the fields asked for, none: the records · kinds: of record,
    none: all.
    """

    intent: Intent
    targets: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    conditions: tuple[Condition, ...] = ()


@dataclass(slots=True)
class Vocabulary:
    """What a document's records have: fields, kinds, which of the question's phrases are values of which
    field; flags: fields that are true or false · names: what the document itself is called.
    """

    fields: dict[str, object] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    values: dict[str, set[str]] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Token:
    """A word of the question, or a quotation as a whole, by its key."""

    key: str
    is_quoted: bool = False


def intent_of(question: str) -> tuple[Intent, str] | None:
    """What kind of answer a question about all records wants, and the rest of it; None: it is no such one."""
    for pattern, intent in _INTENT:
        found = pattern.search(question)
        if found is not None:
            return intent, f"{question[: found.start()]} {question[found.end() :]}"
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
    reader = _Reader(_tokens(rest), vocabulary)
    reader.read()
    if intent == "distinct" and not reader.targets:
        raise NotCounted("which field is to be different is not said")
    kinds = frozenset(reader.kinds)
    if intent == "count" and reader.targets:
        intent = "distinct"
    return Query(intent, tuple(dict.fromkeys(reader.targets)), kinds, tuple(reader.conditions))


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    for match in _QUOTED.finditer(text):
        found += [_Token(key) for key in tokens(text[at : match.start()])]
        inner = next(group for group in match.groups() if group is not None)
        found.append(_Token(" ".join(tokens(inner)), is_quoted=True))
        at = match.end()
    return [*found, *(_Token(key) for key in tokens(text[at:]))]


@dataclass(slots=True)
class _Reader:
    """Goes through the words from left to right. `pending`: a field that no value followed yet."""

    words: Sequence[_Token]
    vocabulary: Vocabulary
    at: int = 0
    pending: str | None = None
    operator: Operator = "="
    is_negated: bool = False
    is_alternative: bool = False
    is_conditional: bool = False
    targets: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    conditions: list[Condition] = field(default_factory=list)
    _names: dict[str, set[str]] = field(default_factory=dict)

    def read(self) -> None:
        """All words. Raises NotCounted."""
        names = field_names(self.vocabulary.fields)
        self._names = {form: names[form] for form in names.keys() - FILLERS}  # a field "a" only by its values
        while self.at < len(self.words):
            if not (self._value() or self._operator() or self._field() or self._kind() or self._small()):
                raise NotCounted(f"{self.words[self.at].key!r} is no field and no value of one")
        self._close()
        if self.operator not in ("=", "contains"):
            raise NotCounted("what is compared is not said")

    def _phrase(self, size: int) -> str | None:
        part = self.words[self.at : self.at + size]
        return None if len(part) < size else " ".join(token.key for token in part)

    def _longest(self, known: Iterable[str], most: int) -> tuple[str, int] | None:
        for size in range(most, 0, -1):
            phrase = self._phrase(size)
            if phrase is not None and phrase in known:
                return phrase, size
        return None

    def _value(self) -> bool:
        token = self.words[self.at]
        found = self._longest(self.vocabulary.values, MAX_VALUE_TOKENS)
        if token.is_quoted:
            found = (token.key, 1)
        is_compared = self.operator not in ("=",)
        if found is None and is_number(token.key) and (is_compared or self.pending):
            found = (token.key, 1)
        if found is None and self.operator in ("prefix", "suffix", "contains"):
            found = (token.key, 1)
        if found is None and self.pending and any(map(str.isdigit, token.key)):
            found = (token.key, 1)
        if found is None or (found[1] == 1 and not token.is_quoted and self._is_other(token.key)):
            return False
        self._take(*found)
        return True

    def _is_other(self, key: str) -> bool:
        """Whether a single word means something else here."""
        if key in self._names and not (self.pending and key in self.vocabulary.values):
            return True
        is_small = key in FILLERS or key in NEGATIONS or key in ALTERNATIVES or key in CONNECTING
        return is_small or any(key == words.split()[0] for words in OPERATORS) or self._is_kind(key)

    def _take(self, value: str, size: int) -> None:
        self.at += size
        name = self._field_of(value)
        last = self.conditions[-1] if self.conditions else None
        if self.operator == "between" and last is not None and last.operator == "between":
            if len(last.values) == 1:
                self.conditions[-1] = Condition(last.field, "between", (*last.values, value), last.is_negated)
                self.operator = "="
                return
        elif self.is_alternative and last is not None:
            if last.field != name or last.operator != self.operator:
                raise NotCounted("'or' between different fields")
            merged = Condition(name, last.operator, (*last.values, value), last.is_negated)
            self.conditions[-1], self.is_alternative = merged, False
            self.pending, self.operator = None, "="
            return
        self.conditions.append(Condition(name, self.operator, (value,), self.is_negated))
        if self.operator != "between":
            self.operator = "="
        self.is_negated, self.pending = False, None
        self.is_conditional = True

    def _field_of(self, value: str) -> str:
        """The field that a value is one of."""
        if self.operator == "between" and self.conditions and len(self.conditions[-1].values) == 1:
            return self.conditions[-1].field
        if self.pending is not None:
            return self.pending
        fields = sorted(self.vocabulary.values.get(value, ()))
        if self.operator == "=" and self.is_alternative and self.conditions[-1:]:
            last = self.conditions[-1].field
            if last in fields:
                return last
        if len(fields) == 1 and self.operator in ("=", "prefix", "suffix"):
            return fields[0]
        if self.operator != "=" or not fields:
            raise NotCounted(f"which field is compared with {value!r} is not said")
        raise NotCounted(f"{value!r} stands in {', '.join(fields)}: name the field")

    def _operator(self) -> bool:
        found = self._longest(OPERATORS, 4)
        if found is None:
            return False
        words, size = found
        self.operator = OPERATORS[words]  # type: ignore[assignment]  # one of Operator
        self.is_conditional = True
        self.at += size
        return True

    def _field(self) -> bool:
        found = self._longest(self._names, 5)
        if found is None:
            return False
        words, size = found
        fields = sorted(self._names[words])
        if len(fields) > 1:
            raise NotCounted(f"{words!r} may be {', '.join(fields)}")
        self._close()
        self.at += size
        (name,) = fields
        is_flag = name in self.vocabulary.flags
        last = self.conditions[-1] if self.conditions else None
        is_behind = last is not None and last.field == name and last.operator == "="
        if is_behind and not self.is_alternative:
            return True  # "the red colour": the value says it already
        if self.is_conditional or is_flag:
            self.pending = name
        else:
            self.targets.append(name)
            self.pending = name if self._is_followed_by_value() else None
            if self.pending:
                self.targets.pop()
        return True

    def _is_followed_by_value(self) -> bool:
        """Whether a value of the field comes next, small words between."""
        for size, token in enumerate(self.words[self.at :]):
            here = self.at + size
            ahead = _Reader(self.words, self.vocabulary, at=here)
            found = ahead._longest(self.vocabulary.values, MAX_VALUE_TOKENS)
            if found is not None and found[0] not in FILLERS and found[0] not in CONNECTING:
                return True
            if token.is_quoted or ahead._longest(OPERATORS, 4) is not None:
                return True
            if token.key not in FILLERS:
                return False
        return False

    def _close(self) -> None:
        """A field without a value: the record has it, or it is true."""
        if self.pending is not None:
            self.conditions.append(Condition(self.pending, "exists", (), self.is_negated))
            self.pending, self.is_negated = None, False

    def _is_kind(self, key: str) -> bool:
        known = self.vocabulary.kinds | self.vocabulary.names
        return key in GENERIC_KINDS or singular(key) in {singular(fold(name)) for name in known}

    def _kind(self) -> bool:
        key = self.words[self.at].key
        if not self._is_kind(key):
            return False
        self.at += 1
        if key not in GENERIC_KINDS:
            self.kinds.update(k for k in self.vocabulary.kinds if singular(fold(k)) == singular(key))
        return True

    def _small(self) -> bool:
        key = self.words[self.at].key
        if key in NEGATIONS:
            if self.pending in self.vocabulary.flags:
                self._close()
            self.is_negated, self.is_conditional = True, True
        elif key in ALTERNATIVES:
            self.is_alternative = bool(self.conditions)
        elif key in CONNECTING:
            if self.operator != "between":
                self._close()
            self.is_conditional = self.is_conditional or key not in ("and", "und", "et", "y", "e")
        elif key not in FILLERS:
            return False
        self.at += 1
        return True
