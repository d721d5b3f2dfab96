"""Operators and methods for templates, with the size of a result checked before it is made.

Knows values only. A check refuses by raising TemplateError; it never alters a result.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, ItemsView, Iterable, KeysView, ValuesView
from string import Formatter
from typing import Any

from jinja2.runtime import Undefined

from localctx.errors import ModelError

__all__ = [
    "BINARY_OPERATORS",
    "MAX_CHARS",
    "MAX_ITEMS",
    "NO_RETRY",
    "TemplateError",
    "call_method",
    "charge",
    "check_bits",
    "check_chars",
    "join",
    "modulo",
    "replace_text",
    "start_allowance",
    "strip_text",
    "text_of",
    "too_large",
    "weigh",
]

NO_RETRY = "give another template, or choose another model"
"""Hint of failures that no other form of the messages can avoid."""
MAX_CHARS = 1 << 20
"""Of output, and of any one string on the way to it."""
MAX_ITEMS = 100_000
"""Of any one list, as in the sandbox's range(); also the largest number that a filter takes."""
_MAX_MADE = 1 << 26  # characters and list items made in one rendering, all together
_MAX_BITS = 4096
_MAX_EXPONENT = 128
_CHARS_PER_ITEM = 16
_CONTAINERS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)
_PLAIN = (int, float, type(None), Undefined, range)
_MAX_STRIPPED = 256  # characters of a set to strip: each is looked for at every character of the text
_MAX_BACKWARD = 10_000_000  # length times length of a search from the right, which is not linear
_MAX_WIDTH_DIGITS = 3
_MAX_FLOAT_CHARS = 330  # "%f" of the largest float
_BITS_PER_ITEM = 32


class TemplateError(ModelError):
    """A chat template that fails, is not allowed to do what it tries, or mishandles the messages."""


def too_large(what: str) -> TemplateError:
    return TemplateError(f"the chat template makes {what}", NO_RETRY)


class _Allowance(threading.local):
    """What the rendering of this thread may still make, kept or not."""

    left = _MAX_MADE


_allowance = _Allowance()


def start_allowance() -> None:
    """A rendering begins in this thread."""
    _allowance.left = _MAX_MADE


def charge(value: Any, factor: int = 1) -> None:
    """Count what an operation on this value is about to make: at most `factor` copies."""
    if isinstance(value, str | list | tuple | dict):
        _allowance.left -= len(value) * factor
        if _allowance.left < 0:
            raise too_large(f"more than {_MAX_MADE:,} characters on the way")


def check_chars(n_chars: int) -> None:
    if n_chars > MAX_CHARS:
        raise too_large(f"a text of {n_chars:,} characters")
    _allowance.left -= n_chars
    if _allowance.left < 0:
        raise too_large(f"more than {_MAX_MADE:,} characters on the way")


def weigh(value: Any, printing: bool = False) -> int:
    """Items in a value, nested ones each time they occur; refuses more than a comparison should walk.

    A list that holds one list twice, thirty levels deep, is small in memory and endless to print.
    `printing` refuses what prints more than its items.
    """
    if isinstance(value, str):
        return 1 + len(value) // _CHARS_PER_ITEM
    weight, open_values = 0, [value]
    while open_values:
        item = open_values.pop()
        weight += 1
        if isinstance(item, str):
            weight += len(item) // _CHARS_PER_ITEM
        elif isinstance(item, int):
            weight += item.bit_length() // _BITS_PER_ITEM
        elif isinstance(item, dict):
            open_values += item.keys()
            open_values += item.values()
        elif isinstance(item, _CONTAINERS):
            open_values += item
        elif printing and not isinstance(item, _PLAIN):
            raise too_large(f"text of a {type(item).__name__}")
        if weight + len(open_values) > MAX_ITEMS:
            raise too_large(f"a value of more than {MAX_ITEMS:,} items")
    return weight


def text_of(value: Any) -> str:
    """The value as jinja prints it."""
    if isinstance(value, str):
        return value
    weigh(value, printing=True)
    return str(value)


# --- guarded operators and methods ------------------------------------------------------------------


def _multiply(left: Any, right: Any) -> Any:
    for sequence, times in ((left, right), (right, left)):
        if isinstance(sequence, str):
            check_chars(len(sequence) * int(times))
        elif isinstance(sequence, list | tuple):
            check_items(len(sequence) * int(times))
    if isinstance(left, int) and isinstance(right, int):
        check_bits(left.bit_length() + right.bit_length())
    return left * right


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        check_chars(len(left) + len(right))
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        check_items(len(left) + len(right))
    return left + right


def check_items(n_items: int) -> None:
    if n_items > MAX_ITEMS:
        raise too_large("a list that is too long")
    check_chars(n_items)


def check_bits(n_bits: int) -> None:
    if n_bits > _MAX_BITS:
        raise too_large("a number that is too large")


def _power(left: Any, right: Any) -> Any:
    if abs(right) > _MAX_EXPONENT or (isinstance(left, int) and left.bit_length() > _MAX_EXPONENT):
        raise too_large("a number that is too large")
    return left**right


def modulo(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        _check_format(left, "%", [right])
    return left % right


def _check_format(template: str, sign: str, arguments: Iterable[Any]) -> None:
    """Refuses wide or computed field widths, and fields times argument sizes beyond the cap.

    Every number in the template counts as a width: a few are none, but no width is missed.
    """
    digits = re.findall("[0-9]+", template)
    if "*" in template or any(len(run) > _MAX_WIDTH_DIGITS for run in digits):
        raise too_large("a wide or computed field")
    if sign == "{" and any("{" in (field[2] or "") for field in Formatter().parse(template)):
        raise too_large("a wide or computed field")
    size = sum(_chars_of(argument) for argument in arguments)
    check_chars(len(template) + template.count(sign) * size + sum(map(int, digits)))


def _chars_of(argument: Any) -> int:
    """The most characters that one field makes of it, widths apart."""
    values = argument.values() if isinstance(argument, dict) else argument
    values = values if isinstance(values, Iterable) and not isinstance(values, str) else (argument,)
    weight = weigh(argument, printing=True)
    is_float = any(isinstance(value, float) for value in values)
    return weight * _CHARS_PER_ITEM + (_MAX_FLOAT_CHARS if is_float else 0)


def join(separator: Any, values: Iterable[Any]) -> str:
    """The values' texts with the separator between them."""
    between, n_chars = text_of(separator), 0
    texts: list[str] = []
    for value in values:
        texts.append(text_of(value))
        n_chars += len(texts[-1]) + len(between)
        if n_chars > MAX_CHARS or len(texts) > MAX_ITEMS:
            break
    check_items(len(texts))
    check_chars(n_chars)
    return between.join(texts)


def replace_text(text: Any, old: Any, new: Any, count: Any = None) -> str:
    text, old, new = text_of(text), text_of(old), text_of(new)
    limit = -1 if count is None else int(count)
    n = text.count(old) if limit < 0 else min(limit, text.count(old))
    check_chars(len(text) + n * len(new))
    return str(text).replace(old, new, limit)


def strip_text(text: str, name: str, characters: Any = None) -> str:
    if isinstance(characters, str) and len(characters) > _MAX_STRIPPED:
        raise too_large(f"a set of {len(characters):,} characters to strip")
    stripped: str = getattr(text, name)(characters)
    return stripped


def _check_backward(text: str, name: str, wanted: Any) -> None:
    if isinstance(wanted, str) and len(text) * len(wanted) > _MAX_BACKWARD:
        raise too_large(f"a {name} of {len(wanted):,} characters in {len(text):,}")


def call_method(owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a built-in value, sizes checked first."""
    weigh(owner)
    charge(owner, _CHARS_PER_ITEM if "split" in name else 1)
    if isinstance(owner, str):
        if name == "join":
            return join(owner, *args)
        if name == "replace":
            return replace_text(owner, *args)
        if name in ("strip", "lstrip", "rstrip"):
            return strip_text(owner, name, *args)
        if name in ("center", "ljust", "rjust", "zfill"):
            check_chars(int(args[0]) if args else 0)
        elif name in ("rfind", "rindex", "rsplit", "rpartition"):
            _check_backward(owner, name, args[0] if args else kwargs.get("sep"))
        elif name == "format":
            _check_format(owner, "{", (*args, *kwargs.values()))
            return None  # the sandbox's own wrapper runs it
    return getattr(owner, name)(*args, **kwargs)


BINARY_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _add,
    "*": _multiply,
    "**": _power,
    "%": modulo,
}
