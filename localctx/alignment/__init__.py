"""Two texts in clauses → which clauses belong together, what differs in them. Knows no models, no files.

words.py      passages as words, and words as characters, so that a fast string library compares them
contents.py   which lines are a table of contents: their page numbers are no text
outline.py    a document's clauses cut into passages (a heading, a sentence, a list item)
pairing.py    similar passages found through shared pairs of words, then paired one to one
clauses.py    clauses paired across renumbering and moves
links.py      passages paired inside those pairs, then everywhere; what left its order has moved
entities.py   dates, numbers, parties, references of a passage
changes.py    the words that differ in a pair of passages, classed by what they name
compare.py    all of it: two outlines → `Comparison`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from localctx.lazy import lazy_names

if TYPE_CHECKING:
    from localctx.alignment.compare import compare_outlines
    from localctx.alignment.outline import Outline, outline_of
    from localctx.alignment.values import ClausePair, Comparison, Difference, Kind, Side, Thresholds

__all__ = [
    "ClausePair",
    "Comparison",
    "Difference",
    "Kind",
    "Outline",
    "Side",
    "Thresholds",
    "compare_outlines",
    "outline_of",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ClausePair": "values",
        "Comparison": "values",
        "Difference": "values",
        "Kind": "values",
        "Outline": "outline",
        "Side": "values",
        "Thresholds": "values",
        "compare_outlines": "compare",
        "outline_of": "outline",
    },
)
