"""The provenance of an answer: where its words stand, what was read. Knows nothing of how they were found.

Offsets and pages as in values.py.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Citation", "Coverage", "Pulled"]


@dataclass(frozen=True, slots=True)
class Citation:
    """A passage that supports an answer: where it stands and what it says."""

    source: str
    start: int
    end: int
    quote: str
    score: float
    page: int | None = None
    page_label: str | None = None
    heading_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pulled:
    """A passage that was read because of a reference to it ("Annex B"), and where it stands."""

    reference: str
    source: str
    start: int
    end: int
    page: int | None
    tokens: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was read. tokens_total = tokens_read + tokens_dropped; attended <= read. pages_by_ocr: those that
    OCR read, with the mean of its confidence, from 0 to 1.
    """

    tokens_total: int = 0
    tokens_read: int = 0
    tokens_attended: int = 0
    tokens_dropped: int = 0
    pages_total: int = 0
    pages_without_text: tuple[int, ...] = ()
    replaced_characters: int = 0
    pages_by_ocr: tuple[int, ...] = ()
    ocr_confidence: float | None = None
    pulled_in_by_reference: tuple[Pulled, ...] = ()
