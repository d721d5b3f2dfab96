"""`compare`: two documents clause by clause, every difference classed and cited on both sides. Asks no model.

The steps: read both whole → clauses → passages → `alignment` → places, pages and names.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from localctx.alignment import Comparison, Difference, Outline, Side, Thresholds, compare_outlines, outline_of
from localctx.alignment.words import Alphabet
from localctx.document import Document
from localctx.document.clauses import Clause, clauses_of
from localctx.errors import LimitExceeded
from localctx.session.citing import cite
from localctx.session.compared import Compared, ComparedClause, ComparedDifference, ComparedDocument
from localctx.session.provenance import Citation

__all__ = ["MAX_CHARACTERS", "compare_documents"]

MAX_CHARACTERS = 16_000_000
"""Code points of a document: its words are held in memory, about a hundred bytes a word."""
LITTLE_IN_COMMON = 0.15
NAMED_CHARACTERS = 60


def compare_documents(a: Document, b: Document, thresholds: Thresholds | None = None) -> Compared:
    """What became of A in B. Raises LimitExceeded for a document that is too long to be compared whole."""
    thresholds = thresholds or Thresholds()
    started = time.perf_counter()
    alphabet = Alphabet()
    language = a.language or b.language or "en"
    outlines = [_outline(document, alphabet, language) for document in (a, b)]
    outlined = time.perf_counter()
    comparison = compare_outlines(outlines[0], outlines[1], thresholds)
    done = time.perf_counter()
    naming = [_Names(outline.clauses) for outline in outlines]
    return Compared(
        _described(a, outlines[0]),
        _described(b, outlines[1]),
        thresholds,
        comparison.similarity,
        tuple(
            ComparedClause(
                None if pair.a is None else naming[0].name(pair.a, a),
                None if pair.b is None else naming[1].name(pair.b, b),
                pair.similarity,
                pair.kinds,
                pair.is_renumbered,
            )
            for pair in comparison.pairs
        ),
        tuple(_cited(difference, (a, b), naming) for difference in comparison.differences),
        comparison.counts,
        comparison.references,
        tuple(_warnings(a, b, comparison)),
        {"outline_ms": (outlined - started) * 1000, "compare_ms": (done - outlined) * 1000},
    )


def _outline(document: Document, alphabet: Alphabet, language: str) -> Outline:
    n = document.text.n_code_points
    if n > MAX_CHARACTERS:
        raise LimitExceeded(
            f"{document.source}: too long to be compared ({n:,} characters, at most {MAX_CHARACTERS:,})",
            "compare a part of it: --pages A-B, or split the file",
        )
    text = document.read(0, n)
    return outline_of(text, clauses_of(text, document.sections), alphabet, language)


def _described(document: Document, outline: Outline) -> ComparedDocument:
    return ComparedDocument(
        document.source,
        document.format,
        document.language,
        document.text.n_code_points,
        sum(bool(outline.passages_of(clause.index)) for clause in outline.clauses),
        len(document.pages),
        document.pages_without_text,
    )


class _Names:
    """The clauses of one document by name, and what they stand in."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        self._clauses = clauses
        self._parents: list[int | None] = []
        open_ones: list[int] = []
        for clause in clauses:
            while open_ones and clauses[open_ones[-1]].level >= clause.level:
                open_ones.pop()
            self._parents.append(open_ones[-1] if open_ones else None)
            open_ones.append(clause.index)

    def name(self, number: int, document: Document) -> str:
        """Number and title; the first words of a clause without a title."""
        clause = self._clauses[number]
        if clause.title:
            return clause.name
        end = min(clause.end, clause.title_start + 4 * NAMED_CHARACTERS)
        words = " ".join(document.read(clause.title_start, end).split())
        short = words if len(words) <= NAMED_CHARACTERS else words[:NAMED_CHARACTERS].rstrip() + "…"
        return " ".join(part for part in (clause.number, short) if part)

    def path(self, number: int, last: int) -> tuple[str, ...]:
        """The clause with those above it, outermost first. What has no name is left out."""
        path: list[str] = []
        at = self._parents[number]
        while at is not None:
            path.append(self._clauses[at].name)
            at = self._parents[at]
        here = self._clauses[number].name
        if last != number and self._clauses[last].number:
            here = f"{here} – {self._clauses[last].name}"
        return tuple(name for name in (*reversed(path), here) if name)


def _cited(
    difference: Difference, documents: tuple[Document, Document], naming: Sequence[_Names]
) -> ComparedDifference:
    sides = [
        _citation(side, document, names)
        for side, document, names in zip((difference.a, difference.b), documents, naming, strict=True)
    ]
    return ComparedDifference(difference.kind, difference.level, sides[0], sides[1], difference.changes)


def _citation(side: Side | None, document: Document, names: _Names) -> Citation | None:
    if side is None:
        return None
    citation = cite(document, side.start, side.end, 1.0)
    return replace(citation, heading_path=names.path(side.clause, side.last_clause))


def _warnings(a: Document, b: Document, comparison: Comparison) -> list[str]:
    """What the reader should know of the two files, and of them together."""
    found = [f"{document.source}: {warning}" for document in (a, b) for warning in document.warnings]
    if comparison.similarity < LITTLE_IN_COMMON:
        languages = (a.language, b.language)
        if None not in languages and languages[0] != languages[1]:
            found.append(
                f"the documents are in different languages ({languages[0]}, {languages[1]}): "
                "clauses are matched by their words, so nothing can be matched"
            )
        else:
            found.append(
                f"the documents share {comparison.similarity:.0%} of their words: "
                "they may be no two versions of one text"
            )
    return list(dict.fromkeys(found))
