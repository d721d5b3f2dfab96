"""Text → search terms: folding, runs without spaces, stop words, light stemming. Knows no blocks, no files.

Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese and Tibetan runs become overlapping pairs of characters
("bigrams"), since they are written without spaces or with long inflected words.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata

import regex

from localctx.index.stop_words import ASKING_PAIRS, stop_words

__all__ = [
    "UNSPACED",
    "clean",
    "content_words",
    "fold",
    "pair_runs",
    "stem",
    "words",
]

UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
    r"\u30FC\u3005\u3007"
)
"""Inside the brackets of a pattern: the characters of scripts that are written without spaces."""
_RUN = regex.compile(rf"[{UNSPACED}]+(?:[\p{{M}}{UNSPACED}])*")
_CHARACTER = regex.compile(r"\X")
_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_SURROGATE = regex.compile(r"[\ud800-\udfff\x00]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
FOLDED_WHOLE = 1000
"""Characters up to which a text is folded in one go."""
_COMBINING = regex.compile(r"[\u0300-\u036F]+")


def fold(text: str) -> str:
    """Compatibility forms unified, case folded, Latin, Greek and Cyrillic diacritics removed."""
    if text.isascii():
        return text.lower()
    if len(text) <= FOLDED_WHOLE:
        return _folded(text)
    # An ASCII character changes only with what follows it: most of a long text need not be looked up.
    parts, at = [], 0
    for match in _NOT_ASCII.finditer(text):
        start = max(at, match.start() - 1)
        parts += [text[at:start].lower(), _folded(text[start : match.end()])]
        at = match.end()
    return "".join([*parts, text[at:].lower()])


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFC", _COMBINING.sub("", unicodedata.normalize("NFD", folded)))


def clean(text: str) -> str:
    """`text` without what SQLite cannot bind or would cut at: lone surrogates and NUL become spaces."""
    return _SURROGATE.sub(" ", text)


def _pairs(run: str) -> list[str]:
    """Overlapping pairs of a run's grapheme clusters, then its last one alone."""
    characters = _CHARACTER.findall(run)
    pairs = [first + second for first, second in itertools.pairwise(characters)]
    return [*pairs, characters[-1]]


def pair_runs(text: str) -> str:
    """`text` with compatibility forms unified and each run without spaces replaced by its pairs.

    The run's last character follows alone, so that a search for one character, by prefix, finds all.
    """
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    return _RUN.sub(lambda match: f" {' '.join(_pairs(match[0]))} ", text)


def words(text: str) -> list[str]:
    """The folded words of `text` in order, runs without spaces as pairs (a lone character as itself).

    Apostrophes part words, as they do in the index: "l'homme" is "l", "homme".
    """
    folded = fold(text)
    if folded.isascii():
        return _ASCII_WORD.findall(folded)
    found: list[str] = []
    for match in _WORD.finditer(folded):
        word = match[0]
        if word.isascii() or not _RUN.search(word):
            found.append(word)
            continue
        at = 0
        for run in _RUN.finditer(word):
            if run.start() > at:
                found.append(word[at : run.start()])
            pairs = _pairs(run[0])
            found.extend(pairs[:-1] or pairs)
            at = run.end()
        if at < len(word):
            found.append(word[at:])
    return found


def content_words(text: str, stops: frozenset[str] | None = None) -> list[str]:
    """words() without stop words (`stops`, else those of the text's language) and single Latin letters."""
    found = words(text)
    stops = stop_words(found) if stops is None else stops
    return [
        word
        for word in found
        if word not in stops
        and word not in ASKING_PAIRS
        and (len(word) > 1 or not word.isascii() or word.isdecimal())
    ]


_ENDINGS = (
    ("ational", "ate"), ("ization", "ize"), ("fulness", "ful"), ("ousness", "ous"), ("iveness", "ive"),
    ("ingly", ""), ("edly", ""), ("ments", "ment"), ("ities", "ity"), ("ies", "y"), ("sses", "ss"),
    ("ing", ""), ("ied", "y"), ("ed", ""), ("ly", ""), ("es", ""), ("s", ""),
)  # fmt: skip
_MIN_STEM = 4


@functools.lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """A light English stem: plural, -ing, -ed and -ly endings and the e or doubled letter they hide.

    Other scripts and words with digits are returned unchanged. Both sides of a comparison are stemmed, so an
    odd stem does no harm.
    """
    if not word.isascii() or not word.isalpha():
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) + len(instead) >= _MIN_STEM - (ending == "s"):
            if ending == "s" and word[-2:] in ("ss", "us", "is"):
                break
            word = word[: len(word) - len(ending)] + instead
            break
    if len(word) > _MIN_STEM - 1 and word[-1] == word[-2] and word[-1] not in "aeioulsz":
        word = word[:-1]
    return word[:-1] if len(word) > _MIN_STEM and word.endswith("e") else word
