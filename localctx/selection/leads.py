"""Blocks that the question's words single out, an exact phrase of it before all → scores. Pure text.

Knows no index: who holds a phrase, or how much of a question, is found elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import regex

from localctx.selection.key_sentences import sentences
from localctx.values import Scores

__all__ = ["codes_beside", "led", "singles_out"]

STEP_SHARE = 0.99
"""Of the best score, for each step that leads to a block."""
ABOVE = 1e-3
"""How far those that a phrase singles out stand above all others, about."""
SENTENCE_CHARACTERS = 100
"""An assignment, a definition or an entry is shorter; in more, names stand beside each other by chance."""
PART_OF_QUESTION = 0.25
"""Of a question of two or three words one of them is enough."""
_SIGN = r"[\p{Latin}\p{N}_]"
_CODE = regex.compile(
    rf"(?<!{_SIGN})(?:\p{{Lu}}[\p{{Lu}}\p{{N}}_]{{2,}}|(?=\p{{Latin}}*\p{{N}})(?=\p{{N}}*\p{{Latin}}){_SIGN}{{3,}})(?!{_SIGN})"
)
"""Capitals, or letters and digits mixed; Latin, so that they end where Chinese goes on."""


def codes_beside(text: str, phrase: str, language: str = "en") -> tuple[str, ...]:
    """The codes (PMRX, FOO_BAR, E1234) in the short sentences that hold the phrase, once each."""
    sought, found = phrase.casefold(), dict[str, None]()
    for sentence in sentences(text, language):
        inside = sentence.text.strip()
        if len(inside) <= SENTENCE_CHARACTERS and sought in inside.casefold():
            codes = (match[0] for match in _CODE.finditer(inside))
            found.update(dict.fromkeys(code for code in codes if code.casefold() != sought))
    return tuple(found)


def singles_out(shares: Sequence[float], n_words: int, steps: Mapping[int, int]) -> bool:
    """Whether words tell blocks apart: an exact phrase leads to some, or one holds more of the question than
    a single word of it comes to, which any text may hold by chance.

    shares: how much of the question each block holds · n_words: what it is made of.
    """
    least = min(PART_OF_QUESTION, 1 / n_words) if n_words else 0.0
    return bool(steps) or max(shares, default=0.0) > least


def led(scores: Scores, steps: Mapping[int, int]) -> Scores:
    """The same, some blocks being meant for certain: number → steps from the question to it. Those at 0 come
    before all others, those further on behind the best; among equals the scores decide.
    """
    if not steps:
        return scores
    values = np.array(scores.values)
    best = values.max(initial=0.0) or 1.0
    for number, n_steps in steps.items():
        values[number] = best * STEP_SHARE**n_steps * (1 + ABOVE + ABOVE * values[number] / best)
    return Scores(scores.selector, tuple(values.tolist()))
