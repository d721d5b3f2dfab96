"""A JSON schema of one record: its properties, whether a value fulfils it, values made fit for it. Pure.

Understands what engine/json_schema.py takes, which has checked the schema before.
"""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import regex

from localctx.index.terms import fold
from localctx.selection.passage_values import date_spans
from localctx.selection.record_values import is_number, tokens

__all__ = ["RecordSchema", "record_schema"]

MAX_DEPTH = 64
_UNIT_WORD = regex.compile(r"\p{L}+|[€$£¥%°]")
_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "array": (list,),
    "object": (dict,), "null": (type(None),),
}  # fmt: skip
_DATE, _TIME = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)"
_FORMATS: dict[str, tuple[regex.Pattern[str], Callable[[str], object]]] = {
    "date": (regex.compile(_DATE), datetime.date.fromisoformat),
    "time": (regex.compile(_TIME), datetime.time.fromisoformat),
    "date-time": (regex.compile(f"{_DATE}T{_TIME}"), datetime.datetime.fromisoformat),
    "uuid": (regex.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"), str),
}
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """The schema of one record, which is an object; document: where its references lead."""

    document: Mapping[str, Any]
    record: Mapping[str, Any]

    @property
    def title(self) -> str:
        """What one record is called."""
        given = self.record.get("title")
        return given if isinstance(given, str) and given.strip() else "record"

    @property
    def properties(self) -> Mapping[str, Any]:
        """Its properties by name."""
        given = self.record.get("properties")
        return given if isinstance(given, Mapping) else {}

    @property
    def required(self) -> frozenset[str]:
        """The names of those that every record has."""
        given = self.record.get("required")
        return frozenset(given) if isinstance(given, list) else frozenset()

    @property
    def descriptions(self) -> tuple[str, ...]:
        """The properties' names, each with its description where it has one."""
        told = []
        for name, schema in self.properties.items():
            text = self.resolved(schema).get("description")
            told.append(f"{name} ({text})" if isinstance(text, str) and text.strip() else name)
        return tuple(told)

    def resolved(self, schema: object) -> Mapping[str, Any]:
        """The schema that a reference leads to, or itself."""
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, Mapping) or "$ref" not in schema:
                break
            target: Any = self.document
            for step in str(schema["$ref"]).split("/")[1:]:
                target = target[step.replace("~1", "/").replace("~0", "~")]
            schema = target
        return schema if isinstance(schema, Mapping) else {}

    def kinds(self, schema: object) -> frozenset[str]:
        """The types that a value may have; none: any."""
        schema = self.resolved(schema)
        given = schema.get("type")
        names = set(given if isinstance(given, list) else [given] if isinstance(given, str) else ())
        for one in _listed(schema.get("anyOf")) + _listed(schema.get("allOf")):
            names |= self.kinds(one)
        return frozenset(names)

    @property
    def has_numbers(self) -> bool:
        """Whether some property is a number."""
        return any(self.kinds(one) & {"number", "integer"} for one in self.properties.values())

    @property
    def number_words(self) -> dict[str, frozenset[str]]:
        """The words that each number property is called and described by, folded: one may be its unit."""
        found = {}
        for name, schema in self.properties.items():
            if self.kinds(schema) & {"number", "integer"}:
                text = f"{name} {self.resolved(schema).get('description', '')}"
                found[name] = frozenset(_UNIT_WORD.findall(fold(text.replace("_", " "))))
        return found

    def made_fit(self, value: Any, schema: object) -> Any:
        """A field's value in the type that the schema asks for, where text can be read so; else as it is."""
        schema = self.resolved(schema)
        kinds = self.kinds(schema)
        if isinstance(value, list) and "array" not in kinds and len(value) == 1:
            value = value[0]
        if "array" in kinds:
            items = value if isinstance(value, list) else [value]
            return [self.made_fit(item, schema.get("items", {})) for item in items]
        if value == "" and "null" in kinds:
            return None
        if isinstance(value, str) and "string" not in kinds:
            return _read(value.strip(), kinds)
        if isinstance(value, str) and schema.get("format") == "date":
            return next((date for *_, date in date_spans(value)), value)
        if kinds == {"string"} and isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, float) and value.is_integer() and "integer" in kinds and "number" not in kinds:
            return int(value)
        return value

    def fulfils(self, value: Any, schema: object, depth: int = 0) -> bool:
        """Whether a value fulfils a schema, as far as schemas are taken."""
        schema = self.resolved(schema)
        if depth > MAX_DEPTH or ("const" in schema and value != schema["const"]):
            return False
        if "enum" in schema and value not in schema["enum"]:
            return False
        if "anyOf" in schema and not any(self.fulfils(value, one, depth + 1) for one in schema["anyOf"]):
            return False
        if not all(self.fulfils(value, one, depth + 1) for one in _listed(schema.get("allOf"))):
            return False
        given = schema.get("type")
        names = given if isinstance(given, list) else [given] if isinstance(given, str) else list(_KINDS)
        return any(_is_of(value, name) for name in names) and self._fulfils_parts(value, schema, depth)

    def _fulfils_parts(self, value: Any, schema: Mapping[str, Any], depth: int) -> bool:
        if isinstance(value, dict):
            known = schema.get("properties", {})
            if not all(name in value for name in schema.get("required", ())):
                return False
            return all(self.fulfils(one, known.get(name, {}), depth + 1) for name, one in value.items())
        if isinstance(value, list):
            low, high = schema.get("minItems", 0), schema.get("maxItems", len(value))
            items = schema.get("items", {})
            return low <= len(value) <= high and all(self.fulfils(i, items, depth + 1) for i in value)
        if isinstance(value, str):
            if not _has_format(value, schema):
                return False
            return bool(schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            bounds = (
                ("minimum", operator.ge), ("maximum", operator.le),
                ("exclusiveMinimum", operator.gt), ("exclusiveMaximum", operator.lt),
            )  # fmt: skip
            return all(holds(value, schema[name]) for name, holds in bounds if name in schema)
        return True

    def leaves(self, value: Any, schema: object) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        """The values inside a record that are no list and no object, with their schemas."""
        schema = self.resolved(schema)
        if isinstance(value, dict):
            known = schema.get("properties", {})
            for name, one in value.items():
                yield from self.leaves(one, known.get(name, {}))
        elif isinstance(value, list):
            for one in value:
                yield from self.leaves(one, schema.get("items", {}))
        else:
            yield value, schema


def record_schema(schema: Mapping[str, Any]) -> RecordSchema:
    """The schema of a record: that of a list's items, where the schema is one of a list."""
    found = RecordSchema(schema, schema)
    record = found.resolved(schema)
    if record.get("type") == "array":
        record = found.resolved(record.get("items", {}))
    return RecordSchema(schema, record)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_of(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _KINDS.get(name, ()))


def _has_format(text: str, schema: Mapping[str, Any]) -> bool:
    """Whether text has the format that a schema asks for; beside values that are named, none is asked for."""
    form = _FORMATS.get(str(schema.get("format")))
    if form is None or {"enum", "const"} & schema.keys():
        return True
    pattern, read = form
    if not pattern.fullmatch(text):
        return False
    try:
        read(text)
    except ValueError:
        return False
    return True


def _read(text: str, kinds: frozenset[str]) -> Any:
    """The text as a number, in brackets below zero, or a truth value, where it is one of those asked for."""
    if "boolean" in kinds and text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    if kinds & {"integer", "number"}:
        found = tokens(text)
        if len(found) == 1 and is_number(found[0]):
            is_below_zero = text.startswith("(") and text.endswith(")") and found[0][0].isdigit()
            number = f"-{found[0]}" if is_below_zero else found[0]
            return int(number) if number.lstrip("+-").isdecimal() else float(number)
    return text
