"""Filters for templates in place of jinja's own, where those could make too much. Knows values only."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable
from typing import Any

from jinja2.filters import do_int

from localctx.engine.sandbox_limits import (
    TemplateError,
    check_bits,
    check_chars,
    join,
    modulo,
    replace_text,
    strip_text,
    text_of,
    too_large,
    weigh,
)

__all__ = ["OWN_FILTERS"]

_MAX_MARGIN = 16  # characters of an indent or a separator in JSON
_ITEMS_AT_ONCE, _CHARS_AT_ONCE = 16, 256  # a list is charged in steps


def _to_json(value: Any, indent: int | None = None, ensure_ascii: bool = False, **options: Any) -> str:
    weigh(value)
    separators = options.get("separators")
    margins = [indent if isinstance(indent, str) else " " * int(indent or 0), *(separators or ())]
    if any(len(margin) > _MAX_MARGIN for margin in margins):
        raise too_large("JSON with a wide indent or separator")
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=bool(options.get("sort_keys", False)),
    )
    return join("", encoder.iterencode(value)) if indent is not None else encoder.encode(value)


def _int(value: Any, default: int = 0, base: int = 10) -> int:
    number: int = do_int(value, default, base)
    check_bits(number.bit_length() if isinstance(number, int) else 0)
    return number


def _indent(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    text, margin = text_of(text), width if isinstance(width, str) else " " * width
    lines = text.splitlines(keepends=True)
    check_chars(len(text) + len(lines) * len(margin))
    return "".join(
        line if (i == 0 and not first) or (not blank and not line.strip()) else margin + line
        for i, line in enumerate(lines)
    )


def _format(template: Any, *args: Any, **kwargs: Any) -> Any:
    return modulo(text_of(template), kwargs or args)


def _list(values: Iterable[Any]) -> list[Any]:
    items: list[Any] = []
    for value in values:
        items.append(value)
        if len(items) % _ITEMS_AT_ONCE == 0:
            check_chars(_CHARS_AT_ONCE)
    return items


def _sum(values: Iterable[Any], attribute: Any = None, start: float = 0) -> float:
    if attribute is not None:
        raise TemplateError("the chat template uses sum(attribute=…), which is not supported")
    total = start
    for value in values:
        if not isinstance(value, int | float):
            raise too_large("a sum of things that are no numbers")
        total += value
    return total


OWN_FILTERS: dict[str, Callable[..., Any]] = {
    "e": lambda value: html.escape(text_of(value)),
    "escape": lambda value: html.escape(text_of(value)),
    "format": _format,
    "indent": _indent,
    "int": _int,
    "join": lambda values, d="", attribute=None: join(d, _attributes(values, attribute)),
    "replace": replace_text,
    "list": _list,
    "safe": lambda value: value,
    "string": text_of,
    "sum": _sum,
    "tojson": _to_json,
    "trim": lambda value, chars=None: strip_text(text_of(value), "strip", chars),
}


def _attributes(values: Iterable[Any], name: str | None) -> Iterable[Any]:
    return values if name is None else [value.get(name, "") for value in values]
