"""An answer and all that is said about it; its JSON form is the promise `localctx.answer/1`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from localctx.selection import Statement
from localctx.session.provenance import Citation, Coverage
from localctx.values import FinishReason, ModelInfo, Strategy

__all__ = ["Answer", "DocumentCoverage", "RecordCounts", "Support", "Timings", "TokenCounts"]

Support = Literal["supported", "partial", "none"]


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens the engine computed now, tokens restored from a store, and tokens generated."""

    evaluated: int = 0
    restored: int = 0
    generated: int = 0


@dataclass(slots=True)
class Timings:
    """Milliseconds a part of the work took; the one mutable value, filled as the work goes.

    Of stored KV: read_ms while composing waits until it is in memory and checked, compose_ms and upload_ms
    are parts of assemble_ms that overlap, question_ms is the part of prefill_ms from the question's first
    token to the answer's.
    """

    load_ms: float = 0
    document_ms: float = 0
    prefill_ms: float = 0
    select_ms: float = 0
    read_ms: float = 0
    assemble_ms: float = 0
    compose_ms: float = 0
    upload_ms: float = 0
    question_ms: float = 0
    ttft_ms: float = 0
    decode_ms: float = 0
    decode_tokens_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class DocumentCoverage:
    """Coverage of one of several documents."""

    source: str
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """Records that were read, and those of them that the question is about."""

    read: int
    matched: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered, from what, and how. `text` is the answer alone, without notices; `requested`: the
    context's length and rotation as asked for, by the names of settings, without what was not given.

    statements: the sentences of `text` as spans of it, each with its own support; none for a summary.
    selection: how its passages were chosen; None where the documents were attended whole.
    records: of an answer that was counted, which no model was asked for.
    asked_at: when it was answered, in seconds since 1970, where it comes from the log of past questions.
    """

    command: Literal["ask", "summarize"]
    text: str
    strategy: Strategy
    support: Support
    finish_reason: FinishReason
    model: ModelInfo
    n_ctx: int
    coverage: Coverage
    question: str | None = None
    requested: dict[str, object] = field(default_factory=dict)
    citations: tuple[Citation, ...] = ()
    statements: tuple[Statement, ...] = ()
    documents: tuple[DocumentCoverage, ...] = ()
    tokens: TokenCounts = field(default_factory=TokenCounts)
    timings: Timings = field(default_factory=Timings)
    warnings: tuple[str, ...] = ()
    selection: Mapping[str, object] | None = None
    records: RecordCounts | None = None
    asked_at: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.answer/1` (docs/cli.md)."""
        model = self.model
        value: dict[str, Any] = {
            "schema": "localctx.answer/1",
            "command": self.command,
            "question": self.question,
            "answer": self.text,
            "support": self.support,
            "finish_reason": self.finish_reason,
            "strategy": self.strategy,
            "model": {
                "name": model.name,
                "fingerprint": model.fingerprint,
                "n_ctx": self.n_ctx,
                "n_ctx_train": model.n_ctx_train,
                "rope": asdict(model.rope),
                "requested": self.requested,
                "devices": [asdict(share) for share in model.devices],
            },
            "citations": [_citation(citation) for citation in self.citations],
            "statements": [
                {"start": one.start, "end": one.end, "support": one.verdict} for one in self.statements
            ],
            "coverage": asdict(self.coverage),
            "tokens": asdict(self.tokens),
            "timings": {name: round(value, 1) for name, value in asdict(self.timings).items()},
            "warnings": list(self.warnings),
        }
        if len(self.documents) > 1:
            value["documents"] = [
                {"source": d.source, "coverage": asdict(d.coverage)} for d in self.documents
            ]
        if self.records is not None:
            value["records"] = asdict(self.records)
        if self.selection is not None:
            value["selection"] = dict(self.selection)
        if self.asked_at is not None:
            value["history"] = {
                "asked_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.asked_at)),
                "age_seconds": max(0, round(time.time() - self.asked_at)),
            }
        return value


def _citation(citation: Citation) -> dict[str, Any]:
    """A citation as JSON; the score is rounded, since its last digits mean nothing."""
    value = asdict(citation)
    value["heading_path"] = list(citation.heading_path)
    value["score"] = round(citation.score, 3)
    return value
