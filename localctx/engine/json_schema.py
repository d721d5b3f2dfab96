"""A JSON schema → the GBNF grammar of the JSON that fulfils it. Pure; knows no model and no files.

What the grammar cannot hold is refused by name, never ignored: an answer that came to its end is valid.
Objects are closed: they have the declared properties only, in their order. Annotations are passed over.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from localctx.engine.gbnf import PRIMITIVES, integers, literal, repeated
from localctx.engine.schema_keywords import (
    ANNOTATIONS,
    KEYWORDS,
    at,
    binds,
    bounds,
    check_choices,
    implied_types,
    integer_range,
    is_of,
    only,
    string_of,
    wrong,
)
from localctx.engine.source_values import STRING_RULE, NothingFits, Sources, one_of, string_rules

__all__ = ["grammar_of"]

MAX_DEPTH = 64


def grammar_of(schema: object, sources: Sources | None = None) -> str:
    """The grammar, whose rule `root` is one JSON value without white space around it.

    sources: what strings, numbers and dates are taken from; lengths of strings are not looked at then.
    Raises UsageError naming the place and the keyword that is wrong or not supported, NothingFits where the
    sources have nothing for what must be there.
    """
    writer = _Writer(schema, sources)
    root = writer.value(schema, "", frozenset(), 0)
    if sources is not None and STRING_RULE in writer.refs:
        writer.rules.update(string_rules(sources.phrases))
    rules = {"root": root, **writer.rules, **PRIMITIVES}
    return "\n".join(f"{name} ::= {rule}" for name, rule in rules.items()) + "\n"


@dataclass(slots=True)
class _Writer:
    """The rules so far. Places are JSON pointers without their first slash."""

    document: object
    sources: Sources | None = None
    rules: dict[str, str] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)

    def value(self, schema: object, place: str, within: frozenset[str], depth: int) -> str:
        """An expression for a value that fulfils `schema`; `within`: the references that led here without a
        bracket between, which would never end.
        """
        if depth > MAX_DEPTH:
            raise wrong(place, f"nested more than {MAX_DEPTH} deep")
        if schema is True or schema == {}:
            return "value"
        if not isinstance(schema, Mapping):
            raise wrong(place, "a schema is an object" if schema is not False else "nothing fulfils `false`")
        rest = {key: given for key, given in schema.items() if key not in ANNOTATIONS or binds(schema, key)}
        for key in ("$ref", "anyOf", "allOf", "enum", "const"):
            if key in rest:
                return self._whole(key, rest, place, within, depth)
        types = rest.pop("type") if "type" in rest else implied_types(rest, place)
        names = types if isinstance(types, list) else [types]
        if not names or not all(isinstance(name, str) and name in KEYWORDS for name in names):
            raise wrong(place, f"type {json.dumps(types)} is not one of {', '.join(KEYWORDS)}")
        known = frozenset[str]().union(*(KEYWORDS[name] for name in names), {"format"})
        only(rest, known, place)
        parts = _fitting(functools.partial(self._typed, name, rest, place, depth) for name in names)
        return parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"

    def _whole(
        self, key: str, rest: Mapping[str, Any], place: str, within: frozenset[str], depth: int
    ) -> str:
        """Keywords that say all of a value; beside them nothing else may bind it."""
        given, here = rest[key], f"{place}/{key}".lstrip("/")
        is_constant = key in ("enum", "const")
        only(rest, frozenset({key, "type"} if is_constant else {key}), place)
        if key == "$ref":
            return self._reference(given, place, within, depth)
        if is_constant:
            return self._constants(given if key == "enum" else [given], rest.get("type"), here)
        if not isinstance(given, list) or not given:
            raise wrong(here, "is not a list of schemas")
        if key == "allOf" and len(given) > 1:
            raise wrong(place, "allOf of several schemas is not supported")
        check_choices(len(given), "schemas", here)
        parts = _fitting(
            functools.partial(self.value, one, f"{here}/{n}", within, depth + 1)
            for n, one in enumerate(given)
        )
        return f"({' | '.join(parts)})"

    def _reference(self, given: object, place: str, within: frozenset[str], depth: int) -> str:
        """The rule of a schema that is defined elsewhere in the document."""
        if not isinstance(given, str) or not (given == "#" or given.startswith("#/")):
            raise wrong(place, f"$ref {json.dumps(given)} leads out of the schema")
        if given in within:
            raise wrong(place, f"$ref {given} leads back to itself without end")
        if given not in self.refs:
            name = self.refs[given] = f"ref-{len(self.refs)}"
            target = self.document
            steps = [step.replace("~1", "/").replace("~0", "~") for step in given.split("/")[1:]]
            for step in steps:
                if not isinstance(target, Mapping) or step not in target:
                    raise wrong(place, f"$ref {given} leads nowhere")
                target = target[step]
            self.rules[name] = self.value(target, given[2:], within | {given}, depth + 1)
        return self.refs[given]

    def _constants(self, values: object, types: object, place: str) -> str:
        """One of the values, written as JSON."""
        if not isinstance(values, list) or not values:
            raise wrong(place, "is not a list of values")
        check_choices(len(values), "values", place)
        names = types if isinstance(types, list) else [types]
        kept = [one for one in values if types is None or any(is_of(one, name) for name in names)]
        if not kept:
            raise wrong(place, f"no value is of type {json.dumps(types)}")
        try:
            texts = [literal(json.dumps(one, ensure_ascii=False)) for one in kept]
        except UnicodeEncodeError:
            raise wrong(place, "holds half of a surrogate pair") from None
        return f"({' | '.join(texts)})"

    def _typed(self, name: str, rest: Mapping[str, Any], place: str, depth: int) -> str:
        """A value of one type; what is said of other types does not bind it."""
        match name:
            case "object":
                return self._object(rest, place, depth)
            case "array":
                each = self.value(rest.get("items", True), at(place, "items"), frozenset(), depth + 1)
                items = repeated(self._rule(each), *bounds(rest, "minItems", "maxItems", place), '"," ws')
                return f'"[" ws {items} "]"'
            case "string":
                return (
                    string_of(rest, place)
                    if self.sources is None
                    else self._source_string(rest, self.sources)
                )
            case "integer":
                low, high = integer_range(rest, place)
                if self.sources is not None:
                    return self._rule(one_of(_between(self.sources.numbers_for(place), low, high)))
                return self._rule(integers(low, high))
            case "number":
                if rest.get("minimum", 0) != 0:
                    raise wrong(place, "minimum of a number other than 0 is not supported")
                if self.sources is not None:
                    found = self.sources.numbers_for(place)
                    is_positive = "minimum" in rest
                    return self._rule(one_of([n for n in found if not (is_positive and n[0] == "-")]))
                return "non-negative" if "minimum" in rest else "number"
        return name

    def _source_string(self, rest: Mapping[str, Any], sources: Sources) -> str:
        """A date or a run of words of the sources."""
        kind = rest.get("format")
        if kind == "date":
            return self._rule(one_of([json.dumps(date) for date in sources.dates]))
        if kind is not None:
            return f"{kind}-string"
        if not sources.phrases:
            raise NothingFits
        self.refs[STRING_RULE] = STRING_RULE
        return STRING_RULE

    def _object(self, rest: Mapping[str, Any], place: str, depth: int) -> str:
        """The declared properties in their order, or any names where none are declared."""
        properties, required = rest.get("properties", {}), rest.get("required", [])
        if not isinstance(properties, Mapping):
            raise wrong(at(place, "properties"), "is not an object")
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise wrong(at(place, "required"), "is not a list of names")
        more = rest.get("additionalProperties", True)
        if more is False and set(required) - set(properties):
            raise wrong(at(place, "required"), "names what additionalProperties forbids")
        members = {**properties, **{name: more for name in required if name not in properties}}
        check_choices(len(members), "properties", place)
        if not members:
            if more is False:
                return '"{" ws "}"'
            each = self.value(more, at(place, "additionalProperties"), frozenset(), depth + 1)
            member = self._rule(f'string ws ":" ws {each} ws')
            return f'"{{" ws {repeated(member, 0, None, separator=chr(34) + "," + chr(34) + " ws")} "}}"'
        return f'"{{" ws {self._members(list(members.items()), set(required), place, depth)} "}}"'

    def _members(
        self, members: Sequence[tuple[str, object]], required: set[str], place: str, depth: int
    ) -> str:
        """Rules from the last property to the first: what may follow when none was written yet, and when one
        was.
        """
        first = following = '""'
        for name, schema in reversed(members):
            try:
                written = self.value(schema, at(place, f"properties/{name}"), frozenset(), depth + 1)
            except NothingFits:
                if name in required:
                    raise
                continue
            try:
                key = literal(json.dumps(name, ensure_ascii=False))
            except UnicodeEncodeError:
                raise wrong(place, "a property's name holds half of a surrogate pair") from None
            pair = self._rule(f'{key} ws ":" ws {written} ws')
            skipped = ("", "") if name in required else (f" | {first}", f" | {following}")
            first, following = (
                self._rule(f"{pair} {following}{skipped[0]}"),
                self._rule(f'"," ws {pair} {following}{skipped[1]}'),
            )
        return first

    def _rule(self, expression: str) -> str:
        """A name for the expression."""
        name = f"r-{len(self.rules)}"
        self.rules[name] = expression
        return name


def _fitting(makers: Iterable[Callable[[], str]]) -> list[str]:
    """The expressions that can be made. Raises NothingFits where none can."""
    parts = []
    for make in makers:
        with contextlib.suppress(NothingFits):
            parts.append(make())
    if not parts:
        raise NothingFits
    return parts


def _between(numbers: Sequence[str], low: int | None, high: int | None) -> list[str]:
    """The whole numbers within bounds."""
    whole = [number for number in numbers if number.lstrip("-").isdecimal()]
    return [n for n in whole if (low is None or int(n) >= low) and (high is None or int(n) <= high)]
