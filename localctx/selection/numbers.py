"""Text → the numbers it states, each as one canonical decimal string. Pure text; knows no documents.

"3,000,000", "3 000 000", "3 million", "three million", "300万" and "三百万" are all "3000000". Percent signs,
currencies and ordinal endings are not part of the key: "25%" and "25 percent" are both "25".
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

import regex

__all__ = ["Number", "figures", "figures_like", "numbers", "spelled_like"]

MAX_DIGITS = 40
SURE_DIGITS = 28  # values of more may be rounded
SPACES = " \u00a0\u2009\u202f"
_MARK = f"[,.'’{SPACES}]?"
_WORD_CHARACTER = regex.compile(r"\w")
_OTHER_DIGIT = regex.compile(r"(?![0-9])\p{Nd}")

_SCALES = {
    r"hundred": 2,
    r"thousand|tausend|mille|mil|duizend|тысяч\w*|тыс\.?|k": 3,
    r"mill?i[oó]n(?:s|en|es|i)?|millones|milh(?:ão|ões)|miljoen|mio\.?|mln\.?|миллион\w*|млн\.?": 6,
    r"billion|milliard(?:s|en|e|i)?|miliardi?|miljard|bn|mrd\.?|миллиард\w*|млрд\.?": 9,
    r"trillion": 12,
    "[万萬만]": 4,
    "[亿億억]": 8,
    "百": 2,
    "千": 3,
}
_SCALE_PATTERN = "|".join(
    f"(?P<s{power}_{place}>{words})" for place, (words, power) in enumerate(_SCALES.items())
)
_DIGITS = (
    r"(?<![\p{Latin}\p{Greek}\p{Cyrillic}\p{Nd}])"
    rf"(?:(?P<grouped>\p{{Nd}}{{1,3}}(?P<mark>[,.'’{SPACES}])\p{{Nd}}{{3}}(?:(?P=mark)\p{{Nd}}{{3}})*(?!\p{{Nd}})"
    r"(?:(?!(?P=mark))[.,]\p{Nd}+)?)"
    r"|(?P<version>\p{Nd}+(?:\.\p{Nd}+){2,})"
    r"|(?P<plain>\p{Nd}+(?:[.,]\p{Nd}+)?))"
    rf"(?:[{SPACES}\n-]?(?:{_SCALE_PATTERN})(?![\p{{Latin}}\p{{Cyrillic}}]))?"
)

_ONE_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TEN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINAL_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth"
)
_TEN_ORDINAL_WORDS = "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth"
_UNITS = (
    {word: value for value, word in enumerate(_ONE_WORDS.split())}
    | {word: 20 + 10 * value for value, word in enumerate(_TEN_WORDS.split())}
    | {word: 1 + value for value, word in enumerate(_ORDINAL_WORDS.split())}
    | {word: 20 + 10 * value for value, word in enumerate(_TEN_ORDINAL_WORDS.split())}
)
_MULTIPLES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_UNIT_WORD = "|".join(sorted(_UNITS, key=len, reverse=True))
_SPELLED_WORD = f"{_UNIT_WORD}|{'|'.join(_MULTIPLES)}"
_SPELLED = (
    rf"(?<![\p{{L}}\p{{N}}])(?:an?\s+(?:{'|'.join(_MULTIPLES)})|{_UNIT_WORD})"
    rf"(?:(?:\s+and\s+|[\s-]+)(?:{_SPELLED_WORD}))*(?:th|s)?(?![\p{{L}}\p{{N}}])"
)
_SPELLED_PART = _SPELLED_WORD

_HAN_DIGITS = {sign: value for value, sign in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_HAN_SMALL = {"十": 10, "百": 100, "千": 1000}
_HAN_LARGE = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_HAN_SIGNS = "".join([*_HAN_DIGITS, *_HAN_SMALL, *_HAN_LARGE])
_HAN = regex.compile(rf"(?<!\p{{Nd}})[{_HAN_SIGNS}]+")


@dataclass(frozen=True, slots=True)
class Number:
    """A number: its canonical value and where it stands; `spelled` when written in words.

    `parts`: other readings of the same place, such as the 12 and the 300 of "12 300".
    """

    key: str
    start: int
    end: int
    spelled: bool = False
    parts: tuple[str, ...] = ()


def numbers(text: str) -> Iterator[Number]:
    """Every number in `text`: digits of any script and Chinese numerals, then English words."""
    yield from figures(text)
    for match in _compiled(_SPELLED).finditer(text):
        yield _from_words(match)


def figures(text: str) -> Iterator[Number]:
    """The numbers written in digits of any script or in Chinese numerals."""
    for match in _compiled(_DIGITS).finditer(text):
        yield _from_digits(match)
    yield from _han(text)


def figures_like(keys: Iterable[str], text: str) -> Iterator[Number]:
    """figures(), but of those in digits only such as may have one of `keys` as a value, and a few more.

    Much faster than figures() on long texts: only places with the right digits in a row are looked at.
    """
    patterns = sorted({_digits_of(key) for key in keys})
    if any(len(one) > SURE_DIGITS for one in patterns) or _OTHER_DIGIT.search(text):
        yield from figures(text)
        return
    if not patterns:
        return
    done = 0
    for hit in regex.finditer("|".join(_MARK.join(one) for one in patterns), text):
        for match in _compiled(_DIGITS).finditer(text, pos=_outside(text, hit.start(), done)):
            if match.start() >= hit.end():
                break
            done = match.end()
            yield _from_digits(match)
    yield from _han(text)


def _digits_of(key: str) -> str:
    """The digits of a value that any way of writing it has in a row, but for marks between them."""
    return "".join(filter(str.isdecimal, key)).strip("0") or "0"


def _outside(text: str, at: int, least: int) -> int:
    """A place in [least, at] inside no number in digits, as `least` is: behind two gaps, no digit between."""
    gap = _gap_before(text, at, least)
    while gap >= least:
        before = _gap_before(text, gap, least)
        if not any(map(str.isdecimal, text[before + 1 : gap])):
            break
        gap = before
    return max(gap + 1, least)


def _gap_before(text: str, at: int, least: int) -> int:
    """Where the last white space in [least, at) is; least - 1 without one."""
    at -= 1
    while at >= least and not text[at].isspace():
        at -= 1
    return at


def _han(text: str) -> Iterator[Number]:
    """The numbers in Chinese numerals."""
    if not text.isascii() and any(sign in text for sign in _HAN_SIGNS):
        for match in _HAN.finditer(text):
            if (value := _from_han(match[0])) is not None:
                yield Number(str(value), match.start(), match.end(), spelled=True)


def spelled_like(keys: Iterable[str], text: str) -> Iterator[Number]:
    """The numbers in English words that begin as one of `keys` (canonical values) would be spelled.

    Much faster than numbers() on long texts: only places with the right first word are looked at.
    """
    first = sorted({word for key in keys for word in _first_words(key)})
    if not first:
        return
    text = text.lower()
    for word in first:
        for at in _word_starts(word, text):
            spelled = _compiled(_SPELLED).match(text, pos=at)
            if spelled is not None:
                yield _from_words(spelled)


def _word_starts(word: str, text: str) -> Iterator[int]:
    """Where a word of the text begins so; `word` may be a pattern, which takes ten times as long."""
    if not word.isalpha():
        yield from (match.start() for match in regex.finditer(rf"\b(?:{word})", text))
        return
    at = text.find(word)
    while at >= 0:
        if at == 0 or text[at - 1] == " " or not _WORD_CHARACTER.match(text, at - 1):
            yield at
        at = text.find(word, at + len(word))


@functools.cache
def _compiled(pattern: str) -> regex.Pattern[str]:
    """The pattern for any case, compiled when it is first needed."""
    return regex.compile(pattern, regex.IGNORECASE)


@functools.lru_cache(maxsize=1024)
def _first_words(key: str) -> set[str]:
    """The words with which the spelling of a whole number may begin: 1863 with "eighteen" or "one"."""
    if not key.isdecimal() or len(key) > 15:
        return set()
    value = int(key)
    readings = {value, value // 100} if 1000 < value < 10_000 else {value}
    found: set[str] = set()
    for reading in readings:
        group = int(f"{reading:,}".partition(",")[0])
        leading = group // 100 if group >= 100 else group
        leading = leading // 10 * 10 if leading >= 20 else leading
        found.update(word for word, unit in _UNITS.items() if unit == leading)
        if leading == 1:
            found.add(r"an?\s+(?=hundred|thousand|million|billion|trillion)")
    return found


def _canonical(value: Decimal) -> str:
    """The value without exponent or trailing zeros."""
    shown = format(value, "f")
    return (shown.rstrip("0").rstrip(".") if "." in shown else shown) or "0"


def _ascii_digits(text: str) -> str:
    """`text` with digits of any script as 0-9."""
    return text if text.isascii() else "".join(str(unicodedata.digit(c, c)) for c in text)


def _from_digits(match: regex.Match[str]) -> Number:
    """The number a match of _DIGITS states."""
    start, end = match.span()
    if version := match["version"]:
        return Number(_ascii_digits(version), start, end)
    parts: tuple[str, ...] = ()
    if grouped := match["grouped"]:
        mark, digits = match["mark"], _ascii_digits(grouped)
        ascii_text = digits if mark in ",." else digits.replace(",", ".")
        whole, point, fraction = ascii_text.rpartition("." if mark != "." else ",")
        text = (whole if point else fraction).replace(mark, "") + ("." + fraction if point else "")
        if mark in ",." and text.startswith("0"):
            text = ascii_text.replace(",", ".")
        if mark in SPACES:
            parts = tuple(_canonical(Decimal(part)) for part in ascii_text.split(mark))
    else:
        text = _ascii_digits(match["plain"]).replace(",", ".")
    if len(text) > MAX_DIGITS or text.count(".") > 1:
        return Number(text, start, end)
    value = Decimal(text)
    if match.end() == match.end("grouped" if match["grouped"] else "plain"):
        return Number(_canonical(value), start, end, parts=parts)
    scale = next((name for name, found in match.groupdict().items() if name[0] == "s" and found), None)
    if scale is None:
        return Number(_canonical(value), start, end, parts=parts)
    power = int(scale[1:].partition("_")[0])
    return Number(_canonical(value.scaleb(power)), start, end, parts=(_canonical(value), *parts))


def _from_words(match: regex.Match[str]) -> Number:
    """The number that a run of English number words states; "nineteen forty-five" is 1945."""
    values: list[int] = []
    total = group = 0
    last: int | None = None  # the word before, as a value, within one number
    for part in _compiled(_SPELLED_PART).findall(match[0].lower()):
        if part in _MULTIPLES:
            multiple = _MULTIPLES[part]
            if multiple == 100:
                group = max(group, 1) * 100
            else:
                total, group = total + max(group, 1) * multiple, 0
            last = multiple
            continue
        value = _UNITS[part]
        continues = last is None or last >= 100 or (20 <= last < 100 and value < 10)
        if not continues:
            values.append(total + group)
            total = group = 0
        group += value
        last = value
    values.append(total + group)
    parts = tuple(map(str, values[1:]))
    if len(values) == 2 and all(10 <= value < 100 for value in values):
        parts = (*map(str, values),)
        values = [values[0] * 100 + values[1]]
    return Number(str(values[0]), *match.span(), spelled=True, parts=parts)


def _from_han(text: str) -> int | None:
    """The value of Chinese numerals; a bare row of digits ("一九四九") is read digit by digit.

    None for a lone hundred or more: without a figure it is part of a word.
    """
    if len(text) > MAX_DIGITS or (len(text) == 1 and text not in _HAN_DIGITS and text != "十"):
        return None
    if all(sign in _HAN_DIGITS for sign in text):
        return int("".join(str(_HAN_DIGITS[sign]) for sign in text))
    total = section = digit = 0
    for sign in text:
        if sign in _HAN_DIGITS:
            digit = _HAN_DIGITS[sign]
        elif sign in _HAN_SMALL:
            section, digit = section + (digit or 1) * _HAN_SMALL[sign], 0
        else:
            total, section, digit = (total + max(section + digit, 1)) * _HAN_LARGE[sign], 0, 0
    return total + section + digit
