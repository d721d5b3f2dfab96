"""Questions made from a document's own words, so that a search finds passages for them. Knows no model."""

from __future__ import annotations

from collections.abc import Sequence

from localctx.errors import UsageError
from localctx.index.terms import content_words
from localctx.session.run import Run

__all__ = ["questions_of"]

N_WORDS = 4
LEAST_LETTERS = 4


def questions_of(run: Run, n: int) -> list[str]:
    """n questions about passages spread evenly over the text. Raises UsageError for a text of no words."""
    questions = []
    for number in range(n):
        words = _words(run.passage(run.n_blocks * (2 * number + 1) // (2 * n)).text)
        if words:
            questions.append(f"What does the text say about {', '.join(words)}?")
    if not questions:
        raise UsageError("no question can be made from the text", "-q TEXT asks one")
    return questions


def _words(text: str) -> Sequence[str]:
    """The longest words of the passage, in order: the most telling ones, by and large."""
    words = [
        word for word in dict.fromkeys(content_words(text)) if len(word) >= LEAST_LETTERS and word.isalpha()
    ]
    longest = sorted(words, key=len, reverse=True)[:N_WORDS]
    return [word for word in words if word in longest]
