"""A passage → what may be a value of a record in it: phrases, numbers, dates. Pure text; knows no schema.

A phrase ends where a sentence, a clause or a bracket ends, and at small words but those that join names. What
a date is written with is part of no phrase and no number.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import regex

from localctx.index.terms import fold
from localctx.selection.numbers import Number, numbers

__all__ = [
    "PassageValues",
    "before_joiner",
    "date_spans",
    "overlap",
    "passage_values",
    "units_in",
    "without_words",
]

UNIT_COUNT = 2
"""How often a word has to stand beside figures to be their unit."""

_MONTH_NAMES = (
    "january januar janvier enero gennaio janeiro januari|february februar fevrier febrero febbraio "
    "fevereiro februari|march marz mars marzo marco maart|april avril abril aprile|may mai mayo maggio maio "
    "mei|june juni juin junio giugno junho|july juli juillet julio luglio julho|august aout agosto augustus"
    "|september septembre septiembre settembre setembro|october oktober octobre octubre ottobre outubro"
    "|november novembre noviembre novembro|december dezember decembre diciembre dicembre dezembro"
)
_MONTHS = {
    name: number for number, names in enumerate(_MONTH_NAMES.split("|"), 1) for name in names.split()
} | {name.split()[0][:3]: number for number, name in enumerate(_MONTH_NAMES.split("|"), 1)}
_MONTHS["sept"] = 9
_DATE = regex.compile(
    r"(?<![\p{L}\p{N}])(?:"
    r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"
    r"|(?P<d2>\d{1,2})\.\s?(?P<m2>\d{1,2})\.\s?(?P<y2>\d{4})"
    r"|(?P<d3>\d{1,2})(?:st|nd|rd|th|er|[.º])?\s+(?:of\s+|de\s+)?(?P<m3>\p{L}{3,10})\.?,?\s+(?:de\s+|of\s+)?"
    r"(?P<y3>\d{4})"
    r"|(?P<m4>\p{L}{3,10})\.?\s+(?P<d4>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<y4>\d{4})"
    r"|(?P<y5>\d{4})年(?P<m5>\d{1,2})月(?P<d5>\d{1,2})日"
    r")(?!\p{N})"
)
_WORD = regex.compile(r"[\p{L}\p{N}\p{M}](?:[^\s()\[\]{}\"“”„«»;]*[\p{L}\p{N}\p{M}])?")
_BREAK = regex.compile(r"[^\s]")
_UNIT = r"\p{L}+|[€$£¥%°]"
_BEFORE = regex.compile(rf"({_UNIT})[\s-]?$")
_BEHIND = regex.compile(rf"[\s-]?({_UNIT})")
_FIGURE = regex.compile(rf"(?:({_UNIT})\s?)?(?<![\p{{L}}\p{{N}}])\p{{Nd}}[\p{{Nd}}.,']*(?:[\s-]?({_UNIT}))?")
_SIGN = regex.compile(r"(?<![^\s(\[{|:=\"“„«'])(?:[-−][€$£¥]?|[€$£¥][-−])$")
"""A minus before a number, but between numbers (3-5) or in a code (A-5)."""
_BRACKET, _BRACKETED = regex.compile(r"\([€$£¥]?$"), regex.compile(r"[\p{Nd}.,']*[.,]\p{Nd}{2}\s?[€$£¥]?\)")
"""An amount as accounts write what is below 0: (5.00)."""
_SENTENCE_END = ".!?…。"
_JOINER_WORDS = "of de del della di da do dos du des von van der den zu la le al bin y and & und et"
_JOINERS = frozenset(_JOINER_WORDS.split())


Run: TypeAlias = tuple[tuple[str, ...], frozenset[int]]
"""Words in a row, and the places of those that only join others."""


@dataclass(frozen=True, slots=True)
class PassageValues:
    """phrases: words in a row, with the places of those that only join · numbers: as JSON, in order · dates:
    as YYYY-MM-DD, in order · units: the words beside each number.
    """

    phrases: tuple[Run, ...]
    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    units: tuple[frozenset[str], ...] = ()

    def numbers_of(self, units: Collection[str]) -> tuple[str, ...]:
        """The numbers beside which one of the words stands."""
        return tuple(
            n for n, beside in zip(self.numbers, self.units, strict=True) if not beside.isdisjoint(units)
        )


def passage_values(text: str, small: frozenset[str], *, has_numbers: bool = True) -> PassageValues:
    """What stands in a passage. small: the stop words of its language, folded · has_numbers: numbers are
    values of their own, so that phrases hold none.
    """
    dates = list(date_spans(text))
    spans = [(start, end) for start, end, _ in dates]
    free = _without(text, spans)
    found = list(numbers(free))
    taken = [*spans, *((number.start, number.end) for number in found if has_numbers)]
    phrases = tuple(_phrases(_without(text, taken), small))
    units: dict[str, frozenset[str]] = {}
    for number in found:
        for key, start in _signed(free, number, found):
            units[key] = units.get(key, frozenset()) | _beside(free, start, number.end)
    named = tuple(dict.fromkeys(date for *_, date in dates))
    return PassageValues(phrases, tuple(units), named, tuple(units.values()))


def _signed(text: str, number: Number, found: Sequence[Number]) -> Iterator[tuple[str, int]]:
    """A number's key with its sign, and where that begins; both where brackets may mean either, unless they
    repeat a number in words: "five (5.00)".
    """
    head, key = text[max(0, number.start - 3) : number.start], number.key
    may_have = not number.spelled and key.strip("0.") != "" and key.count(".") < 2
    sign = _SIGN.search(head) if may_have else None
    if sign is None:
        yield key, number.start
    else:
        yield f"-{key}", number.start - (sign[0][-1] in "-−")
    is_bracketed = may_have and _BRACKET.search(head) and _BRACKETED.match(text, number.start)
    spelled = (one.key for one in found if one.spelled and one.end <= number.start)
    if is_bracketed and key not in spelled:
        yield f"-{key}", number.start


def _beside(text: str, start: int, end: int) -> frozenset[str]:
    """The words before and behind a span, folded."""
    found = _BEFORE.search(text[max(0, start - 40) : start]), _BEHIND.match(text, end)
    return frozenset(fold(match[1]) for match in found if match is not None)


def units_in(text: Iterable[str], wanted: Collection[str]) -> frozenset[str]:
    """Those of the words (folded) that stand beside figures of a text, again and again."""
    counts: Counter[str] = Counter()
    for piece in text:
        for match in _FIGURE.finditer(piece):
            counts.update(word for group in match.groups() if group and (word := fold(group)) in wanted)
    return frozenset(word for word, n in counts.items() if n >= UNIT_COUNT)


def date_spans(text: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, YYYY-MM-DD) of the whole dates that a text names, day by day."""
    for match in _DATE.finditer(text):
        parts = {name[0]: value for name, value in match.groupdict().items() if value is not None}
        month = int(parts["m"]) if parts["m"].isdigit() else _MONTHS.get(fold(parts["m"]), 0)
        try:
            date = datetime.date(int(parts["y"]), month, int(parts["d"]))
        except ValueError:
            continue
        yield match.start(), match.end(), date.isoformat()


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with a mark that no phrase and no number crosses in the place of every span."""
    for start, end in spans:
        text = f"{text[:start]}{';' * (end - start)}{text[end:]}"
    return text


def _phrases(text: str, small: frozenset[str]) -> Iterator[Run]:
    words: list[str] = []
    inner: set[int] = set()
    end = 0
    starts_sentence = True
    for match in _WORD.finditer(text):
        between = text[end : match.start()]
        starts_sentence = (
            starts_sentence or any(mark in between for mark in _SENTENCE_END) or "\n\n" in between
        )
        word, end = match[0], match.end()
        is_small = fold(word) in small and (starts_sentence or not word[0].isupper())
        if _BREAK.search(between) or (is_small and fold(word) not in _JOINERS):
            yield from _trimmed(words, inner)
            words, inner = [], set()
        if not is_small or (words and fold(word) in _JOINERS):
            if is_small or fold(word) in _JOINERS:
                inner.add(len(words))
            words.append(word)
        starts_sentence = False
    yield from _trimmed(words, inner)


def _trimmed(words: list[str], inner: set[int]) -> Iterator[Run]:
    """The phrase without joining words at its ends."""
    first, last = 0, len(words)
    while first < last and first in inner:
        first += 1
    while last > first and last - 1 in inner:
        last -= 1
    if first < last:
        yield tuple(words[first:last]), frozenset(place - first for place in inner if first <= place < last)


def without_words(phrases: Sequence[Run], taken: Sequence[str]) -> tuple[Run, ...]:
    """The phrases without a run of words, which parts them."""
    wanted, size = [fold(word) for word in taken], len(taken)
    left: list[Run] = []
    for words, inner in phrases:
        first, start = 0, 0
        while size and first + size <= len(words):
            if [fold(word) for word in words[first : first + size]] == wanted:
                left += _trimmed(list(words[start:first]), {n - start for n in inner if n >= start})
                first = start = first + size
            else:
                first += 1
        left += _trimmed(list(words[start:]), {n - start for n in inner if n >= start})
    return tuple(left)


def overlap(longer: Sequence[str], shorter: Sequence[str]) -> int | None:
    """Where the words of one value stand in those of another; None where they do not."""
    wanted, size = [fold(word) for word in shorter], len(shorter)
    for first in range(len(longer) - size + 1):
        if [fold(word) for word in longer[first : first + size]] == wanted:
            return first
    return None


def before_joiner(words: Sequence[str], place: int) -> tuple[str, ...]:
    """The words before a joining word in front of `place`; none where there is no such one."""
    end = place
    while end > 0 and fold(words[end - 1]) in _JOINERS:
        end -= 1
    return tuple(words[:end]) if end < place else ()


def whole_name(
    words: Sequence[str], phrases: Sequence[Run], first: str, taken: Collection[str]
) -> tuple[str, ...]:
    """A name with the capitalised words beside it, but for `first`, with which the sentence begins, and words
    (folded) that other values have; what is no name, or stands in several places, as it is.
    """
    places = [(run, place) for run, _ in phrases if (place := overlap(run, words)) is not None]
    if len(places) != 1 or not all(word[:1].isupper() for word in words):
        return tuple(words)
    run, start = places[0]
    end = start + len(words)

    def belongs(word: str) -> bool:
        return word[:1].isupper() and word != first and fold(word) not in taken

    while start > 0 and belongs(run[start - 1]):
        start -= 1
    while end < len(run) and belongs(run[end]):
        end += 1
    return tuple(run[start:end])
