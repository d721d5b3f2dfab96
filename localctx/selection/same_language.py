"""Are two texts in one language? By script, then by stop words; None where that cannot be told. Pure text."""

from __future__ import annotations

import unicodedata
from collections import Counter

from localctx.index.stop_words import stop_word_counts
from localctx.index.terms import words

__all__ = ["same_language"]

COMPARED_CHARACTERS = 4000
LEAST_STOP_WORDS = 2


def same_language(text: str, source: str) -> bool | None:
    """Whether two texts are in one script and language; None when that cannot be told."""
    scripts = [_script(text), _script(source)]
    if "" in scripts:
        return None
    if scripts != ["LATIN", "LATIN"]:
        return scripts[0] == scripts[1]
    counts, others = (stop_word_counts(words(t[:COMPARED_CHARACTERS])) for t in (text, source))
    language = max(others, key=lambda one: (others[one], one == "en"))
    if others[language] < LEAST_STOP_WORDS or not any(counts.values()):
        return None
    return counts[language] == max(counts.values())


def _script(text: str) -> str:
    """The script of most letters; "" when there are none."""
    scripts: Counter[str] = Counter()
    for character, n in Counter(text[:COMPARED_CHARACTERS]).items():
        if character.isalpha():
            scripts[unicodedata.name(character, "?").partition(" ")[0]] += n
    return max(scripts, key=lambda name: scripts[name], default="")
