"""How much a text names: numbers, dates, identifiers, names. Counts patterns; knows no dictionary, no model.

Capitals mean little where every noun has one (German) or a sentence begins, and nothing in scripts without
them: there figures, Latin words, katakana runs and titles in brackets count.
"""

from __future__ import annotations

import regex

__all__ = ["count_entities"]

_NUMBER = r"\p{Sc}?\p{Nd}+(?:[.,:/\-–]\p{Nd}+)*\p{Sc}?%?"
_IDENTIFIER = (
    r"(?:[\p{L}_][\p{L}\p{N}]*(?:[_:]{1,2}|\.(?=\p{L}))[\p{L}\p{N}_.]*[\p{L}\p{N}]|\p{Ll}+\p{Lu}[\p{L}\p{N}]*"
    r"|(?:\p{L}+\p{Nd}|\p{Nd}+\p{L})[\p{L}\p{N}]*|\p{Lu}{2,}[\p{Lu}\p{N}]*)"
)
_CAPITALISED = r"\p{Lu}\p{Ll}+(?:[’'\-]\p{L}+)*"
_LINK = r"(?:[ \u00A0]|[ ]\p{Lu}\.[ ]|[ ]?&[ ]|[ ](?:of|the|de|du|la|von|van|der|di|da|del|y|et|und)[ ])"
_MANY = rf"{_CAPITALISED}(?:{_LINK}{_CAPITALISED})+"
_INSIDE = r"(?<=[\p{Ll},;:)]\s)"
_ONE_INSIDE = _INSIDE + _CAPITALISED
_TITLE = r"《[^》\n]{1,80}》|『[^』\n]{1,80}』|[\p{Katakana}ー]{3,}"
_EDGE = r"(?<![\p{L}\p{N}_])"
_ANY = regex.compile(f"{_EDGE}(?:{_NUMBER}|{_IDENTIFIER}|{_MANY})|{_ONE_INSIDE}|{_TITLE}")
_NOUNS_CAPITALISED = regex.compile(f"{_EDGE}(?:{_NUMBER}|{_IDENTIFIER})|{_INSIDE}{_MANY}|{_TITLE}")
_LATIN_TOO = regex.compile(rf"{_NUMBER}|{_TITLE}|[\p{{Latin}}][\p{{Latin}}\p{{N}}._\-]+")
CAPITALISED_NOUNS = frozenset({"de", "lb", "nds", "gsw"})
WITHOUT_CAPITALS = frozenset({"zh", "ja", "ko", "th", "ar", "he", "fa", "hi", "ta", "lo", "km", "my"})


def count_entities(text: str, language: str | None = "en") -> int:
    """Names, numbers, dates and identifiers in `text`; a run of capitalised words counts once."""
    language = (language or "en").split("-")[0].lower()
    pattern = _ANY
    if language in CAPITALISED_NOUNS:
        pattern = _NOUNS_CAPITALISED
    elif language in WITHOUT_CAPITALS:
        pattern = _LATIN_TOO
    return sum(1 for _ in pattern.finditer(text))
