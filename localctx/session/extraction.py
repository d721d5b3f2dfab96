"""What an extraction finds, one by one and in all; its JSON is `localctx.records/1` (docs/extract.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from localctx.session.answer import Timings, TokenCounts
from localctx.session.provenance import Citation, Coverage
from localctx.values import FinishReason, ModelInfo

__all__ = ["Extraction", "FoundRecord", "How", "Passed"]

How = Literal["parser", "model"]


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record that fulfils the schema, and where it stands; how: who read it."""

    value: Mapping[str, Any]
    citations: tuple[Citation, ...]
    how: How

    def to_json(self) -> dict[str, Any]:
        """The object of one record."""
        places = [
            {
                "source": one.source,
                "page": one.page,
                "page_label": one.page_label,
                "start": one.start,
                "end": one.end,
                "quote": one.quote,
            }
            for one in self.citations
        ]
        return {"record": dict(self.value), "how": self.how, "citations": places}


@dataclass(slots=True)
class Passed:
    """What was looked at. n_units: sentences, or records of a structured file · n_read: those whose values
    could make up a record, which were read · n_repeated: records that were found again elsewhere · n_unfit:
    records that do not fulfil the schema · n_unheld: records left out since a value does not stand in their
    passage · n_broken: answers that were cut, and rows that are no records.
    """

    n_units: int = 0
    n_read: int = 0
    n_repeated: int = 0
    n_unfit: int = 0
    n_unheld: int = 0
    n_broken: int = 0


@dataclass(frozen=True, slots=True)
class Extraction:
    """The outcome; always the last of what `extract` tells."""

    n_records: int
    passed: Passed
    coverage: Coverage
    finish_reason: FinishReason
    model: ModelInfo
    n_ctx: int
    tokens: TokenCounts
    timings: Timings
    warnings: tuple[str, ...] = ()
    how: frozenset[How] = field(default_factory=frozenset)

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.records/1` without its records."""
        return {
            "schema": "localctx.records/1",
            "command": "extract",
            "n_records": self.n_records,
            "how": sorted(self.how),
            "finish_reason": self.finish_reason,
            "passed": {name.removeprefix("n_"): n for name, n in asdict(self.passed).items()},
            "model": {"name": self.model.name, "fingerprint": self.model.fingerprint, "n_ctx": self.n_ctx},
            "coverage": asdict(self.coverage),
            "tokens": asdict(self.tokens),
            "timings": {name: round(value, 1) for name, value in asdict(self.timings).items()},
            "warnings": list(self.warnings),
        }
