"""The language of a text too short for statistics over letters: by its script, else by its stop words."""

from __future__ import annotations

import regex

from localctx.index.stop_words import stop_word_counts
from localctx.index.terms import clean, words

__all__ = ["question_language"]

_SCRIPTS = (
    ("ja", r"[\p{Hiragana}\p{Katakana}]"),
    ("ko", r"\p{Hangul}"),
    ("zh", r"\p{Han}"),
    ("ru", r"\p{Cyrillic}"),
    ("el", r"\p{Greek}"),
    ("ar", r"\p{Arabic}"),
    ("he", r"\p{Hebrew}"),
    ("hi", r"\p{Devanagari}"),
    ("th", r"\p{Thai}"),
)
SHARE = 0.3
"""Of the letters, this many are of the script."""
LEAST_STOP_WORDS = 2


def question_language(text: str) -> str | None:
    """ISO 639-1 code; None where neither says enough: then nothing speaks against any language."""
    n_letters = len(regex.findall(r"\p{L}", text))
    for language, script in _SCRIPTS:
        if n_letters and len(regex.findall(script, text)) >= SHARE * n_letters:
            return language
    counts = sorted(stop_word_counts(words(clean(text))).items(), key=lambda item: -item[1])
    if not counts or counts[0][1] < LEAST_STOP_WORDS:
        return None
    tied = [language for language, n in counts if n == counts[0][1]]
    return "en" if "en" in tied else counts[0][0] if len(tied) == 1 else None
