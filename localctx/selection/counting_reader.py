"""The words of a question about all records, from left to right → what is asked for, under which conditions.

What may be read in two ways is not read. Knows no documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from localctx.index.terms import fold
from localctx.selection.counting_query import COMPARISONS, Condition, NotCounted, Operator, Vocabulary
from localctx.selection.counting_tokens import Token, is_behind_link, is_value_next, longest
from localctx.selection.counting_words import (
    ALL,
    ALTERNATIVES,
    AND,
    ARTICLES,
    CONNECTING,
    FILLERS,
    GENERIC_KINDS,
    NEGATIONS,
    OPERATORS,
    PARTS,
    RANGES,
    singular,
)
from localctx.selection.record_fields import field_names
from localctx.selection.record_values import MAX_VALUE_TOKENS, is_bound, is_number

__all__ = ["Reader"]

_RELATING = frozenset({"from", "in"})
"""Words between a field and a value that belongs to another one: `a customer from Paris`."""


@dataclass(slots=True)
class Reader:
    """Goes through the words from left to right. `pending`: a field that no value followed
    yet; is_kind_first: a kind of record stands before a field asked for."""

    words: Sequence[Token]
    vocabulary: Vocabulary
    at: int = 0
    pending: str | None = None
    operator: Operator = "="
    is_negated: bool = False
    is_alternative: bool = False
    is_conditional: bool = False
    is_kind_first: bool = False
    targets: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    conditions: list[Condition] = field(default_factory=list)
    _value_end: int = -1
    _is_not_shared: bool = False
    _is_of_records: bool = False
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
        if self.is_alternative:
            raise NotCounted("'or' stands between what are no two values of one field")
        if self.is_negated:
            raise NotCounted("what is not to be is not said")

    def _value(self) -> bool:
        token = self.words[self.at]
        found = longest(self.words, self.at, self.vocabulary.values, MAX_VALUE_TOKENS)
        if token.is_quoted:
            found = (token.key, 1)
        is_compared = self.operator not in ("=",)
        if found is None and is_number(token.key) and (is_compared or self.pending):
            found = (token.key, 1)
        if found is None and self.operator in ("prefix", "suffix", "contains"):
            found = (token.key, 1)
        if found is None and self.pending and any(map(str.isdigit, token.key)):
            found = (token.key, 1)
        if found is None or (found[1] == 1 and not token.is_quoted and self._is_other(token)):
            return False
        self._take(*found)
        return True

    def _is_other(self, token: Token) -> bool:
        """Whether a single word means something else here. Raises NotCounted where it may mean both."""
        key, fields = token.key, self.vocabulary.values.get(token.key, set())
        if key in self._names:
            return self.pending not in fields
        is_small = key in FILLERS or key in NEGATIONS or key in ALTERNATIVES or key in CONNECTING
        if is_small and fields and (token.is_capital or self.pending in fields):
            raise NotCounted(f"{key!r} may be a value of {', '.join(sorted(fields))}: quote it if it is")
        return is_small or any(key == words.split()[0] for words in OPERATORS) or self._is_kind(key)

    def _take(self, value: str, size: int) -> None:
        start = self.at
        self.at += size
        last = self.conditions[-1] if self.conditions else None
        is_second = self.operator == "between" and last is not None and last.operator == "between"
        if is_second and last is not None and len(last.values) == 1:
            self._check_bound(value)
            if is_number(value) and is_number(last.values[0]) and float(value) < float(last.values[0]):
                raise NotCounted(f"nothing is between {last.values[0]} and {value}")
            self.conditions[-1] = Condition(last.field, "between", (*last.values, value), last.is_negated)
            self.operator, self._is_not_shared = "=", False
        elif self.is_alternative:
            name = self._field_of(value, start)
            if last is None or last.field != name or last.operator != self.operator:
                raise NotCounted("'or' between different fields")
            if self.is_negated or last.operator in COMPARISONS:
                raise NotCounted("what 'or' stands between is not clear")
            self.conditions[-1] = Condition(name, last.operator, (*last.values, value), last.is_negated)
            self.is_alternative, self.pending, self.operator = False, None, "="
        else:
            self._check_range(start)
            is_named = self.pending is not None
            self._add(self._field_of(value, start), self.operator, (value,), is_named=is_named)
            self.operator = "between" if self.operator == "between" else "="
        self._value_end = self.at
        self.is_conditional = True

    def _add(self, name: str, operator: Operator, values: tuple[str, ...], *, is_named: bool) -> None:
        """Another condition, all of which have to hold. Raises NotCounted where it may be meant otherwise."""
        if operator in COMPARISONS:
            self._check_bound(values[0])
        if self._is_not_shared and not self.is_negated and not (is_named and values):
            raise NotCounted("whether 'not' goes on after 'and' is not said")
        for before in self.conditions:
            is_plain = before.operator == "exists" and not before.is_negated
            is_double = before.field == name and not is_plain and "=" in (before.operator, operator)
            is_meant = before.is_negated and self.is_negated
            if is_double and not is_meant and (name not in self.vocabulary.lists or before.is_negated):
                raise NotCounted(f"{name} is asked for twice (say 'or' between values)")
        self.conditions.append(Condition(name, operator, values, self.is_negated))
        self.is_negated, self.pending, self._is_not_shared = False, None, False

    def _check_bound(self, value: str) -> None:
        if not is_bound(value):
            raise NotCounted(f"{value!r} is no number and no date to compare with")

    def _check_range(self, start: int) -> None:
        """`price from 50`, `to 100`: a bound that no comparison says."""
        before = self.words[start - 1].key if start else ""
        is_equal = start > 1 and self.words[start - 2].key.startswith("equal")
        value = self.words[start].key
        is_bound = self.operator == "=" and before in RANGES and any(map(str.isdigit, value))
        if is_bound and self.pending is not None and not is_equal:
            raise NotCounted(f"'{before} {value}' is no comparison (say 'at least' or 'at most')")

    def _field_of(self, value: str, start: int) -> str:
        """The field that a value is one of."""
        fields = sorted(self.vocabulary.values.get(value, ()))
        if self.pending is not None:
            if self.operator != "=" or not fields or self.pending in fields:
                return self.pending
            is_related = self.words[start - 1].key in _RELATING and not self.is_negated
            if not is_related or self.is_alternative or any(map(str.isdigit, value)):
                raise NotCounted(f"{value!r} is no {self.pending}, but stands in {', '.join(fields)}")
            self._close()
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
        found = longest(self.words, self.at, OPERATORS, 4)
        if found is None:
            return False
        words, size = found
        if self.operator != "=":
            raise NotCounted("what is compared is not said")
        self.operator = OPERATORS[words]  # type: ignore[assignment]  # one of Operator
        self.is_conditional = True
        self.at += size
        return True

    def _field(self) -> bool:
        found = longest(self.words, self.at, self._names, 5)
        if found is None:
            return False
        words, size = found
        fields = sorted(self._names[words])
        if len(fields) > 1:
            raise NotCounted(f"{words!r} may be {', '.join(fields)}")
        (name,) = fields
        if self.is_conditional and self.at and self.words[self.at - 1].key in ALL:
            raise NotCounted(f"what all of {name} are is not said")
        others = self.vocabulary.values.get(words, set()) - {name}
        if others:
            raise NotCounted(f"{words!r} is a field, and a value of {', '.join(sorted(others))}")
        if self.pending is not None and self.pending not in self.vocabulary.flags:
            raise NotCounted(f"how {self.pending} and {name} belong together is not said")
        if (
            name not in self.vocabulary.flags
            and is_behind_link(self.words, self.at)
            and not is_value_next(self.words, self.at + size, self.vocabulary, name)
        ):
            raise NotCounted(f"values are not compared with those of {name}")
        self._close()
        is_adjective_before = self._value_end == self.at
        self.at += size
        last = self.conditions[-1] if self.conditions else None
        is_behind = last is not None and last.field == name and last.operator == "="
        if is_behind and not (self.is_alternative or self.is_negated):
            return True  # "the red colour": the value says it already
        is_conditional = self.is_conditional and not (is_adjective_before and not self._is_of_records)
        if (
            is_conditional
            or name in self.vocabulary.flags
            or is_value_next(self.words, self.at, self.vocabulary, name)
        ):
            self.pending = name
        elif self.is_negated or self.is_alternative:
            raise NotCounted(f"what {name} is to be is not said")
        else:
            self.is_kind_first = self.is_kind_first or self._is_of_records
            self.targets.append(name)
        return True

    def _close(self) -> None:
        """A field without a value: the record has it, or it is true."""
        if self.pending is None:
            return
        name, is_flag = self.pending, self.pending in self.vocabulary.flags
        if self.operator not in ("=", "contains"):
            raise NotCounted("what is compared is not said")
        if self.is_alternative:
            raise NotCounted("'or' between different fields")
        if not is_flag and name in self.vocabulary.nones:
            none = self.vocabulary.nones[name]
            raise NotCounted(f"whether {name} {none!r} means that there is none is not known: name the value")
        self.operator = "="
        self._add(name, "exists", (), is_named=False)

    def _is_kind(self, key: str) -> bool:
        known = self.vocabulary.kinds | self.vocabulary.names
        return key in GENERIC_KINDS or singular(key) in {singular(fold(name)) for name in known}

    def _kind(self) -> bool:
        key = self.words[self.at].key
        if not self._is_kind(key):
            return False
        self.at += 1
        self._is_of_records = True
        if key not in GENERIC_KINDS:
            self.kinds.update(k for k in self.vocabulary.kinds if singular(fold(k)) == singular(key))
        return True

    def _small(self) -> bool:
        key = self.words[self.at].key
        if key in NEGATIONS:
            if self.pending in self.vocabulary.flags:
                self._close()
            if self.is_negated:
                raise NotCounted("it says 'not' twice")
            self.is_negated, self.is_conditional = True, True
        elif key in ALTERNATIVES:
            self._close()
            self.is_alternative = True
        elif key in CONNECTING:
            self._connect(key)
        elif key.startswith("contain") and (self.pending or self.targets):
            raise NotCounted(f"say 'containing' for {key!r}")
        elif key in PARTS and not self._is_beside_field():
            raise NotCounted(f"{key!r} of what is not said")
        elif key not in FILLERS:
            return False
        self.at += 1
        return True

    def _is_beside_field(self) -> bool:
        """Whether `value` or `field` stands before or behind the name of one."""
        at = self.at + 1
        while at < len(self.words) and self.words[at].key in ARTICLES | {"of"}:
            at += 1
        return bool(self.pending or self.targets) or longest(self.words, at, self._names, 5) is not None

    def _connect(self, key: str) -> None:
        if self.operator != "between":
            self._close()
        if key in AND:
            if self.is_negated and self.operator != "between":
                raise NotCounted("whether 'not' goes on after 'and' is not said")
            self._is_not_shared = bool(self.conditions) and self.conditions[-1].is_negated
            return
        self._is_not_shared = False
        self.is_conditional = True
