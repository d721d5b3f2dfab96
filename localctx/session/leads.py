"""Which blocks the question's exact phrases single out, and those that the codes beside them lead to.

A number, an identifier, a quote or a name that one or two blocks hold tells more than any likeness; and what
is asked may be said of the code that stands beside it elsewhere ("X is set to 4711", "Y is set to X").
"""

from __future__ import annotations

from collections import deque

from localctx.index import LexicalIndex, exact_phrases
from localctx.selection.leads import codes_beside
from localctx.session.run import Run

__all__ = ["leads_of"]

MOST_HOLDERS = 2
"""A phrase that more blocks hold singles out none."""
MOST_STEPS = 4
MOST_PHRASES = 24
"""Looked up at most, those of the question first."""


def leads_of(run: Run, index: LexicalIndex, question: str) -> dict[int, int]:
    """Running numbers of the blocks → steps from the question to them, 0 for those it names itself."""
    steps = dict[int, int]()
    waiting = deque((phrase, 0) for phrase in exact_phrases(question))
    looked_up = set[str]()
    while waiting and len(looked_up) < MOST_PHRASES:
        phrase, n_steps = waiting.popleft()
        if phrase.casefold() in looked_up:
            continue
        looked_up.add(phrase.casefold())
        for number in index.holding(phrase, MOST_HOLDERS):
            steps.setdefault(number, n_steps)
            if n_steps < MOST_STEPS:
                codes = codes_beside(run.passage(number).text, phrase, run.language)
                waiting.extend((code, n_steps + 1) for code in codes)
    return steps
