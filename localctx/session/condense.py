"""A text → its sentences within a token budget: scored by a question or by coverage, in order, never over.

The joining place of semantic truncation: `localctx truncate`, the strategy `condense`, and map-reduce under a
token budget use it. The text is read in stretches; what is kept of it grows by some 40 bytes a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localctx.blocks import Embed
from localctx.errors import UsageError
from localctx.selection.truncation import Shares, TextUnits, choose_units
from localctx.session.condense_fit import Fitted, cut_to, fit
from localctx.session.condense_scan import Scan, scan
from localctx.session.condense_scores import Ranked, rankings
from localctx.values import Section, TextSource, Tokenizer

__all__ = ["Condensed", "CondensedCoverage", "Prepared", "check_request", "condense", "prepare"]

SENTENCE_TOKENS = 128
"""A longer sentence is cut at a line or a word."""
LEAST_SENTENCE = 16
SEAMS_PER_TOKEN = 8
"""Sentences whose tokens may add up to one more than those of the whole."""


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
    prepared = prepare(
        text, tokenize, budget_tokens, question=question, embed=embed, shares=shares, sections=sections,
        language=language, span=span,
    )  # fmt: skip
    return prepared.within(budget_tokens)


def prepare(
    text: TextSource,
    tokenize: Tokenizer,
    most_tokens: int,
    *,
    question: str | None = None,
    embed: Embed | None = None,
    shares: Shares | None = None,
    sections: Sequence[Section] = (),
    language: str | None = None,
    span: tuple[int, int] | None = None,
) -> Prepared:
    """The same in two steps: what is read and ranked here serves several budgets up to `most_tokens`."""
    check_request(most_tokens, question)
    start, end = span or (0, text.n_code_points)
    limit = min(SENTENCE_TOKENS, max(LEAST_SENTENCE, most_tokens))
    found = scan(text, tokenize, (start, end), limit, sections, question, language)
    ranked = Ranked((), 0.0)
    units = found.units
    if not found.is_exact or units.total_tokens + len(units) // SEAMS_PER_TOKEN > most_tokens:
        ranked = rankings(text, found, question, embed, most_tokens)
    return Prepared(text, tokenize, (start, end), found, ranked, shares or Shares(), sections)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A text whose sentences are known and ranked."""

    text: TextSource
    tokenize: Tokenizer
    span: tuple[int, int]
    found: Scan
    ranked: Ranked
    shares: Shares
    sections: Sequence[Section]

    def within(self, budget_tokens: int) -> Condensed:
        """At most so many tokens, and no more than it was prepared for."""
        units, orders = self.found.units, self.ranked.orders
        whole = self._whole(budget_tokens)
        if whole is not None:
            return _condensed(self.found, whole, self.sections, 0.0)

        def choose(room: int) -> NDArray[np.int64]:
            return choose_units(units, orders, room, self.shares)

        fitted = fit(self.text, self.tokenize, units, choose, budget_tokens)
        if not fitted.spans and len(units):
            best = next((int(order[0]) for order in orders if len(order)), 0)
            fitted = cut_to(self.text, self.tokenize, units, best, budget_tokens)
        return _condensed(self.found, fitted, self.sections, self.ranked.embedded)

    def _whole(self, budget_tokens: int) -> Fitted | None:
        """All of the text, if it fits."""
        units, (start, end) = self.found.units, self.span
        if not self.found.is_exact or units.total_tokens > budget_tokens + len(units) // SEAMS_PER_TOKEN:
            return None
        whole = self.text.read(start, end)
        n_tokens = len(self.tokenize(whole, start == 0))
        if n_tokens > budget_tokens:
            return None
        return Fitted(
            whole, n_tokens, (self.span,) if end > start else (), np.arange(len(units), dtype=np.int64)
        )


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
