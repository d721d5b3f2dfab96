"""A text → its sentences within a token budget: scored by a question or by coverage, in order, never over.

The joining place of semantic truncation: `localctx truncate`, the strategy `condense`, and map-reduce under a
token budget use it. The text is read in stretches; what is kept of it grows by some 40 bytes a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localctx.errors import UsageError
from localctx.selection.truncation import Shares, TextUnits, choose_units
from localctx.session.condense_fit import Fitted, cut_to, fit
from localctx.session.condense_scan import Scan, scan
from localctx.session.condense_scores import Embed, rankings
from localctx.values import Section, TextSource, Tokenizer

__all__ = ["Condensed", "CondensedCoverage", "check_request", "condense"]

SENTENCE_TOKENS = 128
"""A longer sentence is cut at a line or a word."""


@dataclass(frozen=True, slots=True)
class CondensedCoverage:
    """What was kept of a text. The shares are in [0, 1].

    is_estimate: tokens_total was extrapolated (texts too long to be counted) · terms: weight of the text's
    words that are kept, those that repeat weighing most · question_words: of the question's words that the
    text holds, None without a question · sections: of the sections with text of their own · duplicates and
    low_information: sentences that a copy stands for, or that say next to nothing · embedded: share of the
    text that was compared by meaning.
    """

    tokens_total: int
    tokens_kept: int
    is_estimate: bool
    sentences_total: int
    sentences_kept: int
    terms: float
    question_words: float | None
    sections_total: int
    sections_kept: int
    duplicates: int
    low_information: int
    embedded: float


@dataclass(frozen=True, slots=True)
class Condensed:
    """The text that is left (`n_tokens` counted on it), and the spans of the whole that it is made of."""

    text: str
    n_tokens: int
    spans: tuple[tuple[int, int], ...]
    coverage: CondensedCoverage


def condense(
    text: TextSource,
    tokenize: Tokenizer,
    budget_tokens: int,
    *,
    question: str | None = None,
    embed: Embed | None = None,
    shares: Shares | None = None,
    sections: Sequence[Section] = (),
    language: str | None = None,
    span: tuple[int, int] | None = None,
) -> Condensed:
    """At most `budget_tokens` of the text (of [start, end) with `span`), what is left out being what matters
    least for the question, or for the whole without one.

    A text that fits comes back as it is. Raises what check_request() does.
    """
    check_request(budget_tokens, question)
    start, end = span or (0, text.n_code_points)
    found = scan(text, tokenize, (start, end), min(SENTENCE_TOKENS, max(16, budget_tokens)), sections,
                 question, language)  # fmt: skip
    units = found.units
    if found.is_exact and units.total_tokens <= budget_tokens + len(units) // 8:
        whole = text.read(start, end)
        n_tokens = len(tokenize(whole, start == 0))
        if n_tokens <= budget_tokens:
            every = np.arange(len(units), dtype=np.int64)
            return _condensed(found, Fitted(whole, n_tokens, ((start, end),), every), sections, 0.0)
    ranked = rankings(text, found, question, embed, budget_tokens)
    chosen_shares = shares or Shares()

    def choose(room: int) -> NDArray[np.int64]:
        return choose_units(units, ranked.orders, room, chosen_shares)

    fitted = fit(text, tokenize, units, choose, budget_tokens)
    if not fitted.spans and len(units):
        best = next((int(order[0]) for order in ranked.orders if len(order)), 0)
        fitted = cut_to(text, tokenize, units, best, budget_tokens)
    return _condensed(found, fitted, sections, ranked.embedded)


def check_request(budget_tokens: int, question: str | None) -> None:
    """Raises UsageError for a budget below 1 and for a question of white space."""
    if budget_tokens < 1:
        raise UsageError(f"a budget of {budget_tokens} tokens leaves nothing", "--budget 1 or more")
    if question is not None and not question.strip():
        raise UsageError("the question is empty", "leave it out, or -q 'What does the document say about …?'")


def _condensed(found: Scan, fitted: Fitted, sections: Sequence[Section], embedded: float) -> Condensed:
    """The result with what is said of it."""
    units = found.units
    n_sections, n_kept = _sections(units, fitted.rows, sections)
    words = found.words
    n_held = 0.0 if words is None else words.share_found * words.n_words
    coverage = CondensedCoverage(
        tokens_total=units.total_tokens if len(fitted.rows) < len(units) else fitted.n_tokens,
        tokens_kept=fitted.n_tokens,
        is_estimate=not found.is_exact,
        sentences_total=len(units),
        sentences_kept=len(fitted.rows),
        terms=found.share_of_terms(fitted.text),
        question_words=None if words is None else (words.n_asked(fitted.rows) / n_held if n_held else 0.0),
        sections_total=n_sections,
        sections_kept=n_kept,
        duplicates=len(units) - len(np.unique(units.keys)),
        low_information=found.n_low,
        embedded=embedded,
    )
    return Condensed(fitted.text, fitted.n_tokens, fitted.spans, coverage)


def _sections(units: TextUnits, rows: NDArray[np.int64], sections: Sequence[Section]) -> tuple[int, int]:
    """(sections that hold sentences, those of which some are kept); each sentence is in the innermost one."""
    if not sections or not len(units):
        return 0, 0
    edges = np.array(sorted({section.start for section in sections}), np.int64)
    places = np.searchsorted(edges, units.ends - 1, side="right")
    return len(np.unique(places)), len(np.unique(places[rows]))
