"""How much a sentence says by itself, before anything is asked of it. Pure text; knows no model.

Page numbers, dot leaders, rules, addresses of sites, notices and bits of tables say next to nothing; a
sentence with names, figures and many different words says much.
"""

from __future__ import annotations

from collections.abc import Collection

import regex

from localctx.blocks import count_entities
from localctx.selection.key_sentences import NOTICES

__all__ = ["LOW_INFORMATION", "information"]

LOW_INFORMATION = 0.25
"""Sentences below are left out unless all others fit, or the question's words stand in them."""
ENOUGH_WORDS = 6
ENTITY_WEIGHT = 1.5
POOR = 0.4
"""Factor of notices and of single words or numbers."""
_BOILERPLATE = regex.compile(rf"{NOTICES}|(?:https?://|www\.)\S+\s*$", regex.IGNORECASE)
_SAYING = regex.compile(r"[\p{L}\p{M}\p{N}]")
_VISIBLE = regex.compile(r"\S")


def information(text: str, terms: Collection[str], language: str | None = "en") -> float:
    """In [0, 1]: 0 without a letter or digit, 1 for a full sentence. `terms`: the text's content words."""
    stripped = text.strip()
    n_visible = len(_VISIBLE.findall(stripped))
    if not n_visible:
        return 0.0
    n_said = float(len(set(terms)))
    if n_said < ENOUGH_WORDS:
        n_said += ENTITY_WEIGHT * count_entities(stripped, language)
    value = min(1.0, n_said / ENOUGH_WORDS) * min(1.0, 2 * len(_SAYING.findall(stripped)) / n_visible)
    is_poor = len(set(terms)) < 2 or _BOILERPLATE.search(stripped) is not None
    return value * (POOR if is_poor else 1.0)
