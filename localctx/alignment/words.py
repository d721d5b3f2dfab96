"""A stretch of text → its words with their places, and the words as characters. Pure.

Case, hyphens, quotation marks, bullets, emphasis and white space do not count. Han characters are words of
their own. `Alphabet` gives every word a character, so that a string library compares sequences of words.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sized
from dataclasses import dataclass, field

import regex

from localctx.errors import LimitExceeded

__all__ = [
    "LEADERS",
    "SIGN",
    "Alphabet",
    "Words",
    "is_too_long",
    "letter",
    "n_letters",
    "shared_content",
    "similarity",
    "words_of",
]

_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}"
_DASHES = "-\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
"""What may be a minus sign; a longer dash is none."""
SIGN = (
    r"(?<![\p{N}\p{M}\p{Pd}%‰°)\]}.’”»」』）])"
    rf"(?<!(?![{_CJK}])\p{{L}})(?<!\p{{Nd}}\s?\p{{Sc}})[{_DASHES}]"
    r"(?=[.,]?\p{Nd}|(?:\p{Sc}|\p{Lu}{3}(?!\p{L}))[ \u00A0]?[.,]?\p{Nd})"
)
"""A dash that is a minus: a number or an amount is glued to it, no word or number stands before."""
_MARKS = (
    r"(?<!#)#(?!#)(?:(?<=[\p{L}\p{N}]#)|(?=[\p{L}\p{N}]))"
    r"|(?<=[\p{L}\p{N}])\*(?=[\p{L}\p{N}])|(?<=\p{Nd}[ \t]?\*?)\*(?=\*?[ \t]?\p{Nd})"
    r"|(?<![\p{N}~])~(?=[ \t]?\p{Nd})"
)
"""What is formatting elsewhere: "C#", "#5", "2*3", "~500"."""
LEADERS = r"\.{4,}|(?:[.·][ \t\u00A0]){3,}[.·]?|…{2,}|_{3,}"
_TOKEN = regex.compile(
    rf"(?P<leaders>{LEADERS})|(?P<sign>{SIGN})|\p{{Nd}}+(?:[.,:/'’]\p{{Nd}}+)*|[{_CJK}]"
    rf"|(?:(?![{_CJK}])[\p{{L}}\p{{M}}])+(?:['’]\p{{L}}+)*|{_MARKS}"
    r"|[^\s\p{L}\p{N}\p{M}\p{Pd}\p{Pi}\p{Pf}\p{Cf}\p{Cc}\"'„‟`´*_#•‣▪●○◦~|«»「」『』《》\uFFFD]|\p{N}"
)
MINUS = "-"
_MONTHS = (
    "january february march april may june july august september october november december jan feb mar "
    "apr jun jul aug sep sept oct nov dec januar februar märz mai juni juli oktober dezember"
)
_NUMBER_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand "
    "million zwei drei vier fünf sechs sieben acht neun zehn zwölf vierzehn fünfzehn zwanzig dreißig "
    "sechzig neunzig"
)
_HAN_NUMBERS = "〇零一二两三四五六七八九十百千万"
_MASKED = frozenset((*_MONTHS.split(), *_NUMBER_WORDS.split(), *_HAN_NUMBERS))
_MASK = "\ue000"
_FIRST = 0x100
_SURROGATES = (0xD800, 0xE100)
"""Code points that no word gets: surrogates, and the masks behind them."""
_LAST = 0x10FFFF
MOST_CELLS = 1 << 28
"""Of the table of two sequences; finding what differs takes a bit a cell: 32 MiB."""


@dataclass(frozen=True, slots=True)
class Words:
    """texts: as compared · starts, ends: where each stands in the text it came from."""

    texts: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def words_of(text: str, start: int = 0) -> Words:
    """The words of a text that begins at `start`; a minus sign before a number is one of its own."""
    found = [match for match in _TOKEN.finditer(text) if match["leaders"] is None]
    return Words(
        tuple(MINUS if match["sign"] else _compared(match[0]) for match in found),
        tuple(match.start() + start for match in found),
        tuple(match.end() + start for match in found),
    )


def _compared(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().replace("’", "'")


@dataclass(slots=True)
class Alphabet:
    """Words as characters; one for both documents."""

    known: dict[str, str] = field(default_factory=dict)

    def spell(self, words: tuple[str, ...]) -> str:
        """One character a word."""
        return "".join(self.known.get(word) or self._new(word) for word in words)

    def masked(self, words: tuple[str, ...]) -> str:
        """The same with all numbers, months and number words in a row as one character."""
        spelled: list[str] = []
        for word in words:
            if word[0].isdigit() or word in _MASKED or word == MINUS:
                if not spelled or spelled[-1] != _MASK:
                    spelled.append(_MASK)
            else:
                spelled.append(self.known.get(word) or self._new(word))
        return "".join(spelled)

    def _new(self, word: str) -> str:
        """The next free character. Raises LimitExceeded beyond the last one: two words never share one."""
        self.known[word] = character = letter(len(self.known))
        return character


def letter(number: int) -> str:
    """The character of that number. Raises LimitExceeded where there are no more."""
    if number >= n_letters():
        raise LimitExceeded(
            f"the two documents have more than {n_letters():,} different words",
            "compare parts of them: --pages A-B, or split the files",
        )
    code = _FIRST + number
    return chr(code if code < _SURROGATES[0] else code + _SURROGATES[1] - _SURROGATES[0])


def n_letters() -> int:
    """How many different words can have characters of their own."""
    return _LAST + 1 - _FIRST - (_SURROGATES[1] - _SURROGATES[0])


def shared_content(one: str, other: str) -> float:
    """Share of content words, by their stems, that two texts have in common in whatever order, in [0, 1]."""
    from localctx.index.terms import content_words, stem

    ours, theirs = ({stem(word) for word in content_words(text)} for text in (one, other))
    return 2 * len(ours & theirs) / (len(ours) + len(theirs)) if ours and theirs else 0.0


def similarity(one: str, other: str) -> float:
    """Share of words that both have in the same order, in [0, 1]; 1 for two empty ones. Of two very long ones
    the share in whatever order, since the time for the other grows with the product of their lengths.
    """
    from rapidfuzz.distance import Indel

    if not is_too_long(one, other):
        return float(Indel.normalized_similarity(one, other))
    shared = (Counter(one) & Counter(other)).total()
    return 2 * shared / (len(one) + len(other))


def is_too_long(one: Sized, other: Sized) -> bool:
    """Whether the two should not be laid side by side, item by item."""
    return len(one) * len(other) > MOST_CELLS
