"""A stretch of text → its words with their places, and the words as characters. Pure.

Case, hyphens, quotation marks, bullets, emphasis and white space do not count. Han characters are words of
their own. `Alphabet` gives every word a character, so that a string library compares sequences of words.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

import regex

__all__ = ["Alphabet", "Words", "shared_content", "similarity", "words_of"]

_TOKEN = regex.compile(
    r"\p{Nd}+(?:[.,:/'’]\p{Nd}+)*|[\p{Han}\p{Hiragana}\p{Katakana}]"
    r"|(?:(?![\p{Han}\p{Hiragana}\p{Katakana}])[\p{L}\p{M}])+(?:['’]\p{L}+)*"
    r"|[^\s\p{L}\p{N}\p{M}\p{Pd}\p{Pi}\p{Pf}\p{Cf}\p{Cc}\"'„‟`´*_#•‣▪●○◦~|«»「」『』《》\uFFFD]|\p{N}"
)
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


@dataclass(frozen=True, slots=True)
class Words:
    """texts: as compared · starts, ends: where each stands in the text it came from."""

    texts: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def words_of(text: str, start: int = 0) -> Words:
    """The words of a text that begins at `start`."""
    found = [(match[0], match.start() + start, match.end() + start) for match in _TOKEN.finditer(text)]
    return Words(
        tuple(unicodedata.normalize("NFKC", word).casefold().replace("’", "'") for word, _, _ in found),
        tuple(first for _, first, _ in found),
        tuple(last for _, _, last in found),
    )


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
            if word[0].isdigit() or word in _MASKED:
                if not spelled or spelled[-1] != _MASK:
                    spelled.append(_MASK)
            else:
                spelled.append(self.known.get(word) or self._new(word))
        return "".join(spelled)

    def _new(self, word: str) -> str:
        """The next free character; words beyond the last one share theirs."""
        code = _FIRST + len(self.known)
        if code >= _SURROGATES[0]:
            code += _SURROGATES[1] - _SURROGATES[0]
        self.known[word] = character = chr(min(code, _LAST))
        return character


def shared_content(one: str, other: str) -> float:
    """Share of content words, by their stems, that two texts have in common in whatever order, in [0, 1]."""
    from localctx.index.terms import content_words, stem

    ours, theirs = ({stem(word) for word in content_words(text)} for text in (one, other))
    return 2 * len(ours & theirs) / (len(ours) + len(theirs)) if ours and theirs else 0.0


def similarity(one: str, other: str) -> float:
    """Share of words that both have in the same order, in [0, 1]; 1 for two empty ones."""
    from rapidfuzz.distance import Indel

    return float(Indel.normalized_similarity(one, other))
