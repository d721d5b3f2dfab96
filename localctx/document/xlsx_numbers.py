"""A cell's stored number and its number format → the text that a spreadsheet shows. Pure; knows no file.

What a reader's locale decides (the built-in dates) is written as ISO 8601; formats with conditions, fractions
or literals between digits fall back to the plain number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import TypeAlias

__all__ = ["BUILT_IN", "Show", "shower"]

Show: TypeAlias = Callable[[str], str]
"""The text of a stored number."""

ISO_DATE, ISO_BOTH = "yyyy-mm-dd", "yyyy-mm-dd hh:mm"
BUILT_IN: dict[int, str] = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "#,##0", 6: "#,##0", 7: "#,##0.00", 8: "#,##0.00",
    9: "0%", 10: "0.00%", 11: "0.00E+00", 14: ISO_DATE, 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy",
    18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: ISO_BOTH,
    **dict.fromkeys((*range(27, 37), *range(50, 59)), ISO_DATE),
    37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)",
    41: "#,##0", 42: "#,##0", 43: "#,##0.00", 44: "#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0",
    48: "##0.0E+0", 49: "@",
}  # fmt: skip
"""Formats that a workbook names by number alone; those that differ by locale are the plain ones."""

MAX_DIGITS = 330
"""A double has no more; what is longer is shown as it is stored."""
MAX_DECIMALS = 30
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|[_*](?P<space>.)|\[\$(?P<currency>[^\]-]*)(?P<locale>-[^\]]*)?\]'
    r"|\[(?P<elapsed>h+|m+|s+)\]|\[(?P<bracket>[^\]]*)\]"
    r"|(?P<general>General|Standard)|(?P<ampm>AM/PM|A/P)|(?P<era>[eg]+(?![+-]))|(?P<date>y+|m+|d+|h+|s+)|(?P<exponent>E[+-]0+)"
    r"|(?P<digits>[0#?][0#?,]*(?:\.[0#?]*)?,*|\.[0#?]+)|(?P<fraction>/)|(?P<any>.)",
    re.I | re.S,
)
CONDITION = re.compile(r"[<>=]")


@dataclass(frozen=True, slots=True)
class _Part:
    """One token of a format: its kind (a group of TOKEN, or literal) and text."""

    kind: str
    text: str


class _Unshowable(Exception):
    """The format or number is beyond what is shown here; the plain number stands for it."""


def shower(code: str, *, is_1904: bool = False) -> Show:
    """How numbers under a format are shown. The dates of a workbook count from 1900 or 1904."""
    try:
        sections = [_parts(section) for section in _sections(code)]
    except _Unshowable:
        return plain
    if not any(sections) or (len(sections) == 1 and len(sections[0]) == 1 and _is_general(sections[0])):
        return plain

    def show(value: str) -> str:
        try:
            return _shown(value, sections, is_1904)
        except (_Unshowable, InvalidOperation, OverflowError, ValueError):
            return plain(value)

    return show


def plain(value: str) -> str:
    """A number under no format: whole numbers in full, others with ten digits."""
    try:
        number = Decimal(value)
    except InvalidOperation:
        return value
    if not number.is_finite() or abs(number.adjusted()) > MAX_DIGITS:
        return value
    if number == number.to_integral_value() and number.adjusted() < 17:
        return str(int(number))
    return f"{float(number):.10g}"


def _sections(code: str) -> list[str]:
    """The format's sections: positive, negative, zero, text; a semicolon in quotes or brackets ends none."""
    found = re.findall(r'(?:"[^"]*"?|\\.|\[[^\]]*\]|[^;"\\\[]|\[)+|;', code)
    sections = [""]
    for piece in found:
        if piece == ";":
            sections.append("")
        else:
            sections[-1] += piece
    return sections[:4]


def _parts(section: str) -> list[_Part]:
    """The tokens of one section. Raises _Unshowable."""
    parts = []
    for found in TOKEN.finditer(section):
        kind = found.lastgroup or "any"
        if kind in ("quoted", "escaped"):
            parts.append(_Part("literal", found[kind]))
        elif kind == "space":
            parts.append(_Part("literal", " " if found[0][0] == "_" else ""))
        elif kind in ("currency", "locale"):
            parts.append(_system_date(found["locale"] or "", found["currency"] or ""))
        elif kind == "bracket":
            if CONDITION.search(found[kind]):
                raise _Unshowable
        elif kind == "any":
            parts.append(_Part({"@": "text", "%": "percent"}.get(found[kind], "literal"), found[kind]))
        else:
            parts.append(_Part(kind, found[kind]))
    parts = [*filter(lambda part: part.kind != "system", parts)]
    if system := re.match(r"\[\$-(?:x-sys\w+|F[48]00)\]", section, re.I):
        is_time = "time" in system[0].lower() or "F400" in system[0].upper()
        return _parts("hh:mm:ss" if is_time else ISO_DATE)
    return parts


def _system_date(locale: str, currency: str) -> _Part:
    """A bracket of a currency and a locale: the currency is text, a locale alone is nothing."""
    return _Part("literal", currency) if currency else _Part("system", locale)


def _is_general(parts: list[_Part]) -> bool:
    """Whether a section says nothing of the number's form."""
    return any(part.kind in ("general", "text") for part in parts)


def _shown(value: str, sections: list[list[_Part]], is_1904: bool) -> str:
    """The number under the section that its sign asks for."""
    number = Decimal(value)
    if not number.is_finite() or abs(number.adjusted()) > MAX_DIGITS:
        raise _Unshowable
    is_negative = number < 0
    parts, needs_sign = sections[0], is_negative
    if is_negative and len(sections) > 1:
        parts, needs_sign = sections[1], False
    elif number == 0 and len(sections) > 2:
        parts = sections[2]
    if _is_general(parts):
        sign = "-" if needs_sign else ""
        value = plain(str(abs(number)))
        return sign + "".join(value if p.kind in ("general", "text") else p.text for p in parts).strip()
    if any(part.kind in ("date", "elapsed", "era") for part in parts):
        return _shown_date(number, parts, is_1904)
    text = _shown_number(abs(number), parts).strip()
    return f"-{text}" if needs_sign and any(c in "123456789" for c in text) else text


def _shown_number(number: Decimal, parts: list[_Part]) -> str:
    """Digits with their literals. Raises _Unshowable."""
    kinds = [part.kind for part in parts]
    if kinds.count("digits") != 1 or "fraction" in kinds:
        if "digits" not in kinds and "fraction" not in kinds:
            return "".join(part.text for part in parts if part.kind == "literal")
        raise _Unshowable
    n_percent = kinds.count("percent")
    exponent = next((part.text for part in parts if part.kind == "exponent"), None)
    shown = []
    with localcontext() as context:
        context.prec = MAX_DIGITS + MAX_DECIMALS + 10
        number = number.scaleb(2 * n_percent)
        for part in parts:
            if part.kind == "digits":
                shown.append(_digits(number, part.text, exponent))
            elif part.kind in ("literal", "percent"):
                shown.append(part.text)
    return "".join(shown)


def _digits(number: Decimal, pattern: str, exponent: str | None) -> str:
    """The number by a pattern of 0, #, ?, comma and point, rounded half up."""
    whole, _, decimals = pattern.partition(".")
    trimmed = pattern.rstrip(",")
    number = number.scaleb(-3 * (len(pattern) - len(trimmed)))
    is_grouped = "," in whole.rstrip(",")
    n_most = min(sum(c in "0#?" for c in decimals), MAX_DECIMALS)
    n_least = min(sum(c == "0" for c in decimals), MAX_DECIMALS)
    tail = ""
    if exponent is not None:
        power = number.adjusted() if number else 0
        if (number.scaleb(-power)).quantize(Decimal(1).scaleb(-n_most), ROUND_HALF_UP) >= 10:
            power += 1
        number = number.scaleb(-power)
        sign = "-" if power < 0 else "+" if exponent[1] == "+" else ""
        tail = f"E{sign}{abs(power):0{len(exponent) - 2}d}"
    text = f"{number.quantize(Decimal(1).scaleb(-n_most), ROUND_HALF_UP):f}"
    left, _, right = text.partition(".")
    while len(right) > n_least and right.endswith("0"):
        right = right[:-1]
    n_whole = sum(c == "0" for c in whole)
    left = left.lstrip("0").zfill(n_whole) if n_whole or left != "0" else ""
    if is_grouped and left:
        left = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", left)
    return left + (f".{right}" if right else "") + tail


def _shown_date(number: Decimal, parts: list[_Part], is_1904: bool) -> str:
    """A serial day number as a date, a time or a length of time. Raises _Unshowable."""
    if any(part.kind == "era" for part in parts):
        parts = _parts(ISO_DATE)
    decimals = (p.text for p in parts if p.kind == "digits" and p.text.startswith("."))
    n_fraction = max((len(text) - 1 for text in decimals), default=0)
    step = Decimal(1).scaleb(-min(n_fraction, 6))
    seconds = (number * 86400).quantize(step, ROUND_HALF_UP)
    if seconds < 0 or number >= 2_958_466:
        raise _Unshowable
    days, rest = divmod(seconds, 86400)
    base = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30 if days >= 60 else 31)
    moment = base + timedelta(days=int(days), microseconds=int(rest * 1_000_000))
    is_half_day = any(part.kind == "ampm" for part in parts)
    shown = []
    for at, part in enumerate(parts):
        match part.kind:
            case "date":
                shown.append(_date_part(part.text.lower(), moment, is_half_day, _is_minutes(parts, at)))
            case "elapsed":
                unit = {"h": 3600, "m": 60, "s": 1}[part.text[0].lower()]
                shown.append(str(int(seconds // unit)).zfill(len(part.text)))
            case "ampm":
                shown.append(("A" if moment.hour < 12 else "P") + ("M" if "M" in part.text.upper() else ""))
            case "digits" if part.text.startswith("."):
                shown.append(f"{moment.microsecond / 1e6:.{len(part.text) - 1}f}"[1:])
            case "literal" | "fraction" | "digits":
                shown.append(part.text)
    return "".join(shown).strip()


def _is_minutes(parts: list[_Part], at: int) -> bool:
    """Whether an m at this place means minutes: hours before it, or seconds behind it."""
    units = [(n, p.text[0].lower()) for n, p in enumerate(parts) if p.kind in ("date", "elapsed")]
    place = next(i for i, (n, _) in enumerate(units) if n == at)
    before = units[place - 1][1] if place else ""
    behind = units[place + 1][1] if place + 1 < len(units) else ""
    return before == "h" or behind == "s"


def _date_part(text: str, moment: datetime, is_half_day: bool, is_minutes: bool) -> str:
    """One run of y, m, d, h or s."""
    letter, n = text[0], len(text)
    if letter == "y":
        return f"{moment.year:04d}" if n > 2 else f"{moment.year % 100:02d}"
    if letter == "m" and is_minutes:
        return f"{moment.minute:0{min(n, 2)}d}"
    if letter == "m":
        name = MONTHS[moment.month - 1]
        return f"{moment.month:0{n}d}" if n <= 2 else {3: name[:3], 5: name[0]}.get(n, name)
    if letter == "d":
        name = WEEKDAYS[moment.weekday()]
        return f"{moment.day:0{n}d}" if n <= 2 else (name[:3] if n == 3 else name)
    if letter == "h":
        hour = (moment.hour % 12 or 12) if is_half_day else moment.hour
        return f"{hour:0{min(n, 2)}d}"
    return f"{moment.second:0{min(n, 2)}d}"
