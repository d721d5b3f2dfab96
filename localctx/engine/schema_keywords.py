"""What the keywords of a JSON schema say, one by one. Pure; knows no grammar of whole values.

What is not understood is refused by its place and name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from localctx.engine.gbnf import repeated
from localctx.errors import UsageError

__all__ = [
    "ANNOTATIONS",
    "KEYWORDS",
    "at",
    "binds",
    "bounds",
    "check_choices",
    "implied_types",
    "integer_range",
    "is_of",
    "only",
    "string_of",
    "wrong",
]

MAX_REPEATS = 1000
"""llama.cpp refuses grammars that repeat more."""
MAX_CHOICES = 1000
"""Properties of one object, values of one enum, schemas of one anyOf: llama.cpp follows all that are possible
side by side at every token, so that ever more of them take seconds a token.
"""
ANNOTATIONS = frozenset({
    "$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "title", "description", "default",
    "examples", "deprecated", "readOnly", "writeOnly", "format", "discriminator", "contentEncoding",
    "contentMediaType", "strict", "name",
})  # fmt: skip
KEYWORDS = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "number": frozenset({"minimum"}),
    "boolean": frozenset[str](),
    "null": frozenset[str](),
}
"""What is understood of each type, beside `type` itself."""
FORMATS = ("date", "time", "date-time", "uuid")
HINT = "docs/batch.md lists what a schema may hold"


def at(place: str, step: str) -> str:
    """The place behind a step, a JSON pointer without its first slash."""
    return f"{place}/{step}".lstrip("/")


def wrong(place: str, what: str) -> UsageError:
    """The error of a schema, to be raised."""
    return UsageError(f"schema at {place or 'its top'}: {what}", HINT)


def check_choices(n: int, what: str, place: str) -> None:
    """Refuse more than llama.cpp can follow side by side."""
    if n > MAX_CHOICES:
        raise wrong(place, f"{n:,} {what} are more than the {MAX_CHOICES:,} that one place may have")


def only(rest: Mapping[str, Any], known: frozenset[str], place: str) -> None:
    """Refuse the first keyword that is not among `known`."""
    for key in rest:
        if key not in known:
            raise wrong(place, f"{json.dumps(key)} is not supported here")


def binds(schema: Mapping[str, Any], key: str) -> bool:
    """Whether an annotation is one of those that are fulfilled: a known format of a string."""
    kind = schema.get("type", "string")
    is_text = kind == "string" or (isinstance(kind, list) and "string" in kind)
    return key == "format" and schema["format"] in FORMATS and is_text and not {"enum", "const"} & set(schema)


def string_of(rest: Mapping[str, Any], place: str) -> str:
    """Text of a known format, or of a length."""
    if "format" in rest:
        if KEYWORDS["string"] & set(rest):
            raise wrong(place, "format beside a length is not supported")
        return f"{rest['format']}-string"
    low, high = bounds(rest, "minLength", "maxLength", place)
    return "string" if (low, high) == (0, None) else rf'"\"" {repeated("char", low, high)} "\""'


def implied_types(rest: Mapping[str, Any], place: str) -> list[str]:
    """Without a type, that of the keywords: what a schema says of strings only leaves numbers free."""
    for name, known in KEYWORDS.items():
        if known and known & set(rest):
            return [name]
    if "format" in rest:
        return ["string"]
    only(rest, frozenset(), place)
    return list(KEYWORDS)


def is_of(value: object, name: object) -> bool:
    """Whether a JSON value is of a schema's type."""
    if isinstance(value, bool) or value is None:
        return name == ("null" if value is None else "boolean")
    if isinstance(value, (int, float)):
        return name == "number" or (name == "integer" and float(value).is_integer())
    kinds: dict[object, type] = {"string": str, "array": list, "object": dict}
    return name in kinds and isinstance(value, kinds[name])


def bounds(rest: Mapping[str, Any], least: str, most: str, place: str) -> tuple[int, int | None]:
    """How many there may be."""
    low, high = rest.get(least, 0), rest.get(most)
    for key, number in ((least, low), (most, high)):
        if number is None and key == most:
            continue
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_REPEATS:
            raise wrong(place, f"{key} is not a whole number up to {MAX_REPEATS}")
    if high is not None and high < low:
        raise wrong(place, f"{least} is above {most}")
    return low, high


def integer_range(rest: Mapping[str, Any], place: str) -> tuple[int | None, int | None]:
    """The least and the largest integer; None: without a bound."""
    for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        number = rest.get(key, 0)
        if isinstance(number, bool) or not isinstance(number, int) or abs(number) >= 10**15:
            raise wrong(place, f"{key} is not a whole number of up to 15 digits")
    lows = [rest[key] + extra for key, extra in (("minimum", 0), ("exclusiveMinimum", 1)) if key in rest]
    highs = [rest[key] - less for key, less in (("maximum", 0), ("exclusiveMaximum", 1)) if key in rest]
    low, high = max(lows, default=None), min(highs, default=None)
    if low is not None and high is not None and low > high:
        raise wrong(place, "no integer lies between its bounds")
    return low, high
