"""Whether a record fulfils a condition; where its values leave that open, nothing is counted. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import regex

from localctx.selection.counting_query import Condition, NotCounted, Vocabulary
from localctx.selection.record_values import SIGNED, compare, is_bound, key

__all__ = ["Rule", "looks_like_number", "may_mean_none"]

_NONES = frozenset(
    {"0", "no", "n", "none", "null", "nil", "nan", "n/a", "na", "n.a.", "nein", "non", "off", "f"}
    | {"unknown", "unbekannt", "missing", "empty"}
)
_MAX_NONE = 9
_NUMBER = regex.compile(
    r"\W{0,2}(?:(?:usd|eur|gbp|chf|jpy|rs)\.?\s?)?\d[\d.,'\s]*\W{0,2}\p{L}{0,12}\W?", regex.I
)


def may_mean_none(value: Any) -> bool:
    """Whether a value that is there may say that there is none: 0, no, n/a, a dash."""
    if isinstance(value, (int, float)):
        return not isinstance(value, bool) and (value == 0 or math.isnan(value))
    if not isinstance(value, str) or not value or len(value) > _MAX_NONE:
        return False
    text = value.strip().lower()
    return text in _NONES or not any(map(str.isalnum, text)) or (text[0] in "+-0" and key(text) == "0")


def looks_like_number(value: Any) -> bool:
    """Whether a value is a number, maybe with a unit."""
    if isinstance(value, (int, float)):
        return not isinstance(value, bool)
    return isinstance(value, str) and len(value) <= 40 and _NUMBER.fullmatch(value.strip()) is not None


@dataclass(slots=True)
class Rule:
    """A condition, with what the records' fields are known to hold."""

    condition: Condition
    vocabulary: Vocabulary
    _strange: tuple[str, ...] = field(init=False)
    _bounds: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Values that no record has in this field: a part of what one has may be meant. Raises NotCounted."""
        condition, held = self.condition, self.vocabulary.values
        strange = [one for one in condition.values if condition.field not in held.get(one, ())]
        self._bounds = tuple(filter(is_bound, condition.values))
        self._strange = tuple(strange) if condition.operator == "=" else ()
        for one in self._strange:
            if any(map(str.isdigit, one)) and not is_bound(one):
                raise NotCounted(f"no record has {condition.field} {one!r}")

    def holds(self, fields: Mapping[str, Any]) -> bool:
        """Whether the record fulfils it. Raises NotCounted where that cannot be told."""
        condition = self.condition
        given = fields.get(condition.field)
        values = [one for one in (given if isinstance(given, list) else [given]) if one not in (None, "")]
        if not values and condition.is_negated and condition.operator != "exists":
            raise NotCounted(f"whether records without {condition.field} are meant is not said")
        return any(self._holds(one) for one in values) != condition.is_negated

    def _holds(self, value: Any) -> bool:
        condition = self.condition
        match condition.operator:
            case "exists":
                return key(value) != "false"
            case "=":
                return self._equals(value)
            case "prefix":
                return key(value).startswith(condition.values)
            case "suffix":
                return key(value).endswith(condition.values)
            case "contains":
                return any(one in key(value) for one in condition.values)
            case "between":
                low, high = (self._order(value, bound) for bound in condition.values)
                return low is not None and high is not None and low >= 0 >= high
        return any(_stands(self._order(value, bound), condition.operator) for bound in condition.values)

    def _equals(self, value: Any) -> bool:
        found, condition = key(value), self.condition
        if found in condition.values:
            if isinstance(value, str) and SIGNED.search(value):
                raise NotCounted(f"signs as in {condition.field} {value!r} are not told apart")
            return True
        if isinstance(value, str) and any(compare(value, one) == 0 for one in self._bounds):
            return True  # a day of the year or month that is asked for
        for one in self._strange:
            if f" {one} " in f" {found} ":
                raise NotCounted(f"{condition.field} is never {one!r} but may be {value!r}")
        for one in self._bounds:
            if looks_like_number(value) or (one in self._strange and _has_digits(value)):
                self._order(value, one)
        return False

    def _order(self, value: Any, bound: str) -> int | None:
        order = compare(value, bound)
        if order is None and not may_mean_none(value):
            raise NotCounted(f"{self.condition.field} {value!r} does not compare with {bound}")
        return order


def _has_digits(value: Any) -> bool:
    return isinstance(value, str) and any(map(str.isdigit, value))


def _stands(order: int | None, operator: str) -> bool:
    if order is None:
        return False
    return order > 0 if operator == ">" else order >= 0 if operator == ">=" else (
        order < 0 if operator == "<" else order <= 0
    )  # fmt: skip
