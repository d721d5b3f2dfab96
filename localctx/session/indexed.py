"""What `index` did, as values: a row for each document, and the object that a program reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from localctx.values import ModelInfo

__all__ = ["Indexed", "IndexedDocument"]


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """What was done for one document, or several that are kept as one.

    size_bytes: of its runs that are stored now under this policy, each in the encoding with the least error;
    or of the whole state.
    """

    source: str
    tokens_total: int
    tokens_stored_before: int
    tokens_evaluated: int
    tokens_stored: int
    size_bytes: int
    seconds: float
    policy: str
    codec: str

    @property
    def tokens_per_s(self) -> float:
        """Evaluated tokens a second; 0 where there was nothing to do."""
        return self.tokens_evaluated / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Indexed:
    """The end of `index`. Always the last event. vectors: what was embedded; None without an embedder."""

    model: ModelInfo
    documents: tuple[IndexedDocument, ...]
    warnings: tuple[str, ...] = ()
    was_cancelled: bool = False
    vectors: Mapping[str, object] | None = None

    def to_json(self, more_warnings: Sequence[str] = ()) -> dict[str, Any]:
        """The object of schema `localctx.index/1` (docs/cli.md)."""
        rows = [
            {**asdict(row), "seconds": round(row.seconds, 2), "tokens_per_s": round(row.tokens_per_s, 1)}
            for row in self.documents
        ]
        value: dict[str, Any] = {
            "schema": "localctx.index/1",
            "model": {
                "name": self.model.name,
                "fingerprint": self.model.fingerprint,
                "devices": [asdict(share) for share in self.model.devices],
            },
            "tokens_total": sum(row.tokens_total for row in self.documents),
            "tokens_stored": sum(row.tokens_stored for row in self.documents),
            "tokens_evaluated": sum(row.tokens_evaluated for row in self.documents),
            "documents": rows,
            "warnings": list(dict.fromkeys([*more_warnings, *self.warnings])),
        }
        if self.vectors is not None:
            value["vectors"] = dict(self.vectors)
        return value
