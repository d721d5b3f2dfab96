"""What `compare` found, with the places on both sides; its JSON form is the promise `localctx.compare/1`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from localctx.alignment import Kind, Thresholds
from localctx.alignment.values import Level
from localctx.session.provenance import Citation
from localctx.values import ModelInfo

__all__ = ["Compared", "ComparedClause", "ComparedDifference", "ComparedDocument"]


@dataclass(frozen=True, slots=True)
class ComparedDocument:
    """One of the two documents: pages_without_text are 1-based, n_characters counts code points."""

    source: str
    format: str
    language: str | None
    n_characters: int
    n_clauses: int
    n_pages: int
    pages_without_text: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """The document's part of `localctx.compare/1`."""
        return {
            "source": self.source,
            "format": self.format,
            "language": self.language,
            "characters": self.n_characters,
            "clauses": self.n_clauses,
            "pages_total": self.n_pages,
            "pages_without_text": list(self.pages_without_text),
        }


@dataclass(frozen=True, slots=True)
class ComparedDifference:
    """One difference. a, b: its places, quoted verbatim, the heading path being that of its clause; None on
    the side that lacks it · changes: (words before, words after) · explanation: by a model, checked; None
    without.
    """

    kind: Kind
    level: Level
    a: Citation | None
    b: Citation | None
    changes: tuple[tuple[str, str], ...] = ()
    explanation: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The difference's part of `localctx.compare/1`."""
        return {
            "class": self.kind,
            "level": self.level,
            "a": _place(self.a),
            "b": _place(self.b),
            "changes": [{"from": before, "to": after} for before, after in self.changes],
            "explanation": self.explanation,
        }


@dataclass(frozen=True, slots=True)
class ComparedClause:
    """A clause of A and what became of it in B, by name ("2.1 Term"); None where it has no other."""

    a: str | None
    b: str | None
    similarity: float
    kinds: tuple[Kind, ...]
    is_renumbered: bool

    def to_json(self) -> dict[str, Any]:
        """The clause's part of `localctx.compare/1`."""
        return {
            "a": self.a,
            "b": self.b,
            "similarity": self.similarity,
            "classes": list(self.kinds),
            "renumbered": self.is_renumbered,
        }


@dataclass(frozen=True, slots=True)
class Compared:
    """Two documents, clause by clause. similarity: share of all words that both have in linked passages ·
    references: cross-references that only follow renumbered clauses · explanations_dropped: the model's
    that name what neither passage holds, or say nothing · model: None where none was asked.
    """

    a: ComparedDocument
    b: ComparedDocument
    thresholds: Thresholds
    similarity: float
    clauses: tuple[ComparedClause, ...]
    differences: tuple[ComparedDifference, ...]
    counts: dict[str, int]
    references: int
    warnings: tuple[str, ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
    model: ModelInfo | None = None
    explanations_dropped: int = 0

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    @property
    def n_renumbered(self) -> int:
        """Clauses that only have another number."""
        return sum(clause.is_renumbered for clause in self.clauses)

    def to_json(self) -> dict[str, Any]:
        """The object `localctx.compare/1`."""
        return {
            "schema": "localctx.compare/1",
            "command": "compare",
            "same": self.is_same,
            "similarity": self.similarity,
            "counts": {**self.counts, "renumbered": self.n_renumbered, "references": self.references},
            "a": self.a.to_json(),
            "b": self.b.to_json(),
            "thresholds": {
                "clause": self.thresholds.clause,
                "paragraph": self.thresholds.paragraph,
                "entity": self.thresholds.entity,
            },
            "differences": [difference.to_json() for difference in self.differences],
            "clauses": [clause.to_json() for clause in self.clauses],
            "model": None if self.model is None else self.model.name,
            "explanations_dropped": self.explanations_dropped,
            "timings": {name: round(value, 1) for name, value in self.timings.items()},
            "warnings": list(self.warnings),
        }


def _place(citation: Citation | None) -> dict[str, Any] | None:
    if citation is None:
        return None
    return {
        "source": citation.source,
        "page": citation.page,
        "page_label": citation.page_label,
        "start": citation.start,
        "end": citation.end,
        "clause": list(citation.heading_path),
        "quote": citation.quote,
    }
