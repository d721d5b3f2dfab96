"""What the gate needs of a model: values.Model, and contexts whose KV moves and that hand out logits."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from localctx.values import Model
from localctx.verify.compare import ScoringContext

__all__ = ["GateModel"]


@runtime_checkable
class GateModel(Model, Protocol):
    """A model of which KV can be taken out and put back, or that says why not."""

    def kv_refusal(self) -> str | None:
        """Why its KV cannot be cut and moved; None when it can."""

    def open_kv_context(self, n_ctx: int, n_seq: int = 1, *, n_outputs: int = 0) -> ScoringContext:
        """A context of n_ctx cells that can hand out n_outputs rows of logits at a time."""
