"""Pieces of llama.cpp's grammar notation (GBNF): literals, repetitions, ranges of integers, JSON's own rules.

Strings hold no \\u escapes and no bare control characters, so that every answer is text that can be written.
"""

from __future__ import annotations

__all__ = ["PRIMITIVES", "integers", "literal", "repeated"]

PRIMITIVES = {
    "ws": r'"" | " " | "\n" [ \t]{0,20}',
    "value": "object | array | string | number | boolean | null",
    "object": '"{" ws ( string ws ":" ws value ws ( "," ws string ws ":" ws value ws )* )? "}"',
    "array": '"[" ws ( value ws ( "," ws value ws )* )? "]"',
    "string": r'"\"" char* "\""',
    "char": r'[^"\\\x00-\x1F\x7F] | "\\" ["\\/bfnrt]',
    "number": '"-"? non-negative',
    "non-negative": '( "0" | [1-9] [0-9]{0,14} ) ( "." [0-9]{1,15} )? ( [eE] [-+]? [0-9]{1,2} )?',
    "boolean": '"true" | "false"',
    "null": '"null"',
    "date": '[0-9]{3} [1-9] "-" ( month31 | month30 | february )',
    "month31": '( "0" [13578] | "1" [02] ) "-" ( "0" [1-9] | [12] [0-9] | "3" [01] )',
    "month30": '( "0" [469] | "11" ) "-" ( "0" [1-9] | [12] [0-9] | "30" )',
    "february": '"02-" ( "0" [1-9] | "1" [0-9] | "2" [0-8] )',
    "time": '( [01] [0-9] | "2" [0-3] ) ":" [0-5] [0-9] ":" [0-5] [0-9] ( "." [0-9]{1,6} )?'
    ' ( "Z" | [-+] ( [01] [0-9] | "2" [0-3] ) ":" [0-5] [0-9] )',
    "date-string": r'"\"" date "\""',
    "time-string": r'"\"" time "\""',
    "date-time-string": r'"\"" date "T" time "\""',
    "uuid-string": r'"\"" [0-9a-fA-F]{8} ( "-" [0-9a-fA-F]{4} ){3} "-" [0-9a-fA-F]{12} "\""',
}
MAX_DIGITS = 15


def literal(text: str) -> str:
    """The text as a literal. Raises UnicodeEncodeError for half of a surrogate pair."""
    text.encode("utf-8")
    escaped = "".join(
        f"\\{c}" if c in '"\\' else f"\\x{ord(c):02X}" if c < " " or c == "\x7f" else c for c in text
    )
    return f'"{escaped}"'


def repeated(item: str, least: int, most: int | None, separator: str = "") -> str:
    """`item` from `least` to `most` times (None: without end), the separator between."""
    if most == 0:
        return '""'
    if not separator:
        return f"{item}{{{least},{'' if most is None else most}}}"
    low, high = max(least - 1, 0), "" if most is None else str(most - 1)
    several = f"{item} ws" if most == 1 else f"{item} ws ( {separator} {item} ws ){{{low},{high}}}"
    return several if least else f"( {several} )?"


def integers(low: int | None, high: int | None) -> str:
    """Every integer of at most 15 digits from `low` to `high`, both included; None: without a bound."""
    most = 10**MAX_DIGITS - 1
    low, high = -most if low is None else low, most if high is None else high
    parts = []
    if low < 0:
        negative = _digits(max(1, -high), -low)
        parts.append(f'"-" ( {" | ".join(negative)} )')
    if high >= 0:
        parts += _digits(max(0, low), high)
    return " | ".join(parts)


def _digits(low: int, high: int) -> list[str]:
    """The decimal numbers from `low` to `high`, none below 0, as alternatives."""
    parts = []
    for n_digits in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (n_digits - 1) if n_digits > 1 else 0)
        last = min(high, 10**n_digits - 1)
        parts += _same_length(str(first), str(last))
    return parts


def _same_length(low: str, high: str) -> list[str]:
    """The numbers between two of as many digits."""
    if low == high:
        return [f'"{low}"']
    n_same = next(n for n in range(len(low)) if low[n] != high[n])
    head, rest = low[:n_same], len(low) - n_same - 1
    if low[n_same:] == low[n_same] + "0" * rest and high[n_same:] == high[n_same] + "9" * rest:
        return [_join(head, f"[{low[n_same]}-{high[n_same]}]", rest)]
    parts = []
    first, last = int(low[n_same]), int(high[n_same])
    if rest and low[n_same + 1 :] != "0" * rest:
        parts += _same_length(low, low[: n_same + 1] + "9" * rest)
        first += 1
    tail = (
        _same_length(high[: n_same + 1] + "0" * rest, high)
        if rest and high[n_same + 1 :] != "9" * rest
        else []
    )
    last -= bool(tail)
    if first <= last:
        parts.append(_join(head, f"[{first}-{last}]", rest))
    return parts + tail


def _join(head: str, digit: str, n_free: int) -> str:
    free = f" [0-9]{{{n_free}}}" if n_free else ""
    return (f'"{head}" ' if head else "") + digit + free
