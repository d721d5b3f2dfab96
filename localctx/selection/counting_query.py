"""What is counted or listed of all records, under which conditions; how records may be named. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from localctx.selection.counting_words import Intent

__all__ = ["COMPARISONS", "Condition", "NotCounted", "Operator", "Query", "Vocabulary"]

Operator: TypeAlias = Literal["=", ">", ">=", "<", "<=", "between", "prefix", "suffix", "contains", "exists"]
COMPARISONS = frozenset({">", ">=", "<", "<=", "between"})


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
    field; flags: fields that are true or false · names: what the document itself is called · numeric, lists:
    fields with numbers, with several values · nones: fields with a value that may mean none, and that.
    """

    fields: dict[str, object] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    values: dict[str, set[str]] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    numeric: set[str] = field(default_factory=set)
    lists: set[str] = field(default_factory=set)
    nones: dict[str, str] = field(default_factory=dict)
