"""question → scores → chosen blocks: pure functions, no files.

How to add a selector
    1. Give it a `name` and a method `scores(question) -> Scores`: one value a block, higher is better, 0
       means no evidence (`Selector` below; `localctx.index.LexicalIndex` is the first one).
    2. Let it read what it needs from files of its own in `localctx/index`, built once from the block stream.
    3. Put it together with the others in `session/ranking.py`: by `hybrid` (words and vectors) or `fuse`.
    4. Hand the fused scores to `choose`, which alone knows budgets, duplicates, neighbours and order.
    5. Show on real questions that it pays: mean reciprocal rank of the right block, alone and fused.
    6. Wire it in `localctx/session`, the only place that joins stages, and name it in the answer's notices.
"""

from __future__ import annotations

from typing import Protocol

from localctx.selection.choose import Chosen, Selection, choose, text_key
from localctx.selection.citations import Passage, Support, supporting_sentences
from localctx.selection.claims import Claim, claims
from localctx.selection.evidence import unsupported, without_evidence
from localctx.selection.fuse import fuse
from localctx.selection.header import header_line
from localctx.selection.key_sentences import Sentence, figures, key_sentences, sentences
from localctx.selection.question import QuestionTraits, question_traits
from localctx.selection.references import Reference, references, targets
from localctx.selection.refusals import says_not_found
from localctx.selection.routing import LexicalRouter, recalled_runs
from localctx.selection.support import Judgement, Statement, judgement, support
from localctx.values import Scores

__all__ = [
    "Chosen",
    "Claim",
    "Judgement",
    "LexicalRouter",
    "Passage",
    "QuestionTraits",
    "Reference",
    "Selection",
    "Selector",
    "Sentence",
    "Statement",
    "Support",
    "choose",
    "claims",
    "figures",
    "fuse",
    "header_line",
    "judgement",
    "key_sentences",
    "question_traits",
    "recalled_runs",
    "references",
    "says_not_found",
    "sentences",
    "support",
    "supporting_sentences",
    "targets",
    "text_key",
    "unsupported",
    "without_evidence",
]


class Selector(Protocol):
    """Says how well each block may answer a question."""

    name: str

    def scores(self, question: str) -> Scores:
        """One value a block, higher is better, 0 means no evidence."""
