"""How the values of `--kv KEY=VALUE` are read: text in, a value or an error of one line out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from localctx.errors import NotYetAvailable, UsageError

__all__ = [
    "FUSED",
    "SECOND_LOOKS",
    "SELECTORS",
    "STREAMING",
    "Layers",
    "Parser",
    "error_bound",
    "layers",
    "one_of",
    "rank",
    "refresh",
    "streaming",
    "whole",
]

Layers: TypeAlias = int | tuple[tuple[int, int], ...]
"""So many layers, or those in inclusive ranges."""
Parser: TypeAlias = Callable[[str, str], Any]
"""(key, value) to the typed value; raises UsageError."""
SELECTORS = ("lexical", "dense", "landmarks")
SECOND_LOOKS = ("maxsim", "mmr", "head", "tail")
FUSED = ("lexical", "dense", "maxsim")
"""What `rank=fused` stands for."""
STREAMING = "streaming"
"""The value of cache_type that means `--strategy stream`."""


def one_of(*names: str) -> Parser:
    def parse(key: str, value: str) -> str:
        if value.lower() not in names:
            close = difflib.get_close_matches(value.lower(), names, n=1)
            raise UsageError(
                f"--kv {key}={value} is not understood" + (f"; did you mean {close[0]!r}?" if close else ""),
                f"one of {', '.join(names)}",
            )
        return value.lower()

    return parse


def whole(low: int, high: int, step: int = 1) -> Parser:
    def parse(key: str, value: str) -> int:
        digits = value.replace("_", "")
        number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else -1
        if not low <= number <= high or number % step:
            multiple = f", a multiple of {step}" if step > 1 else ""
            raise UsageError(f"--kv {key}={value} is out of range", f"from {low} to {high}{multiple}")
        return number

    return parse


def rank(key: str, value: str) -> tuple[str, ...]:
    names = value.lower().replace("fused", "+".join(FUSED)).split("+")
    known = (*SELECTORS, *SECOND_LOOKS)
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, (*known, "fused"), n=1)
            raise UsageError(
                f"--kv {key}={value} is not understood" + (f"; did you mean {close[0]!r}?" if close else ""),
                f"fused, or some of {', '.join(known)} joined by +",
            )
    if not set(names) & set(SELECTORS):
        raise UsageError(
            f"--kv {key}={value} looks at what others found, so it needs another",
            f"{key}=fused+{value}",
        )
    return tuple(name for name in known if name in names)


def error_bound(key: str, value: str) -> float | None:
    if value.lower() == "none":
        return None
    number = _number(key, value)
    if not 1e-6 <= number <= 1e6:
        raise UsageError(f"--kv {key}={value} is out of range", "from 1e-6 to 1e6, or none")
    return number


def refresh(key: str, value: str) -> float | None:
    if value.lower() == "auto":
        return None
    number = _number(key, value.removesuffix("%"))
    if not 0 <= number <= 100:
        raise UsageError(f"--kv {key}={value} is out of range", "auto, or from 0 to 100%")
    return number / 100


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"--kv {key}={value} is no number") from None


def layers(key: str, value: str) -> Layers:
    if re.fullmatch("[1-9][0-9]{0,3}", value):
        return int(value)
    ranges = []
    for part in value.split("+"):
        found = re.fullmatch("([0-9]{1,4})(?:-([0-9]{1,4}))?", part)
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise UsageError(f"--kv {key}={value} is not understood", "a number of layers, or as 8-15+24-24")
        ranges.append((int(found[1]), int(found[2] or found[1])))
    return tuple(ranges)


def streaming(key: str, value: str) -> bool:
    if value != STREAMING:
        raise NotYetAvailable(f"--kv {key}={value} is not available yet", f"{key}={STREAMING}")
    return True
