"""What the gate needs of a model: that its KV moves, in contexts that hand out logits."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from localctx.session.cache import KVModel
from localctx.verify.compare import ScoringContext

__all__ = ["GateModel"]


@runtime_checkable
class GateModel(KVModel, Protocol):
    """A KVModel whose contexts hand out logits."""

    def open_kv_context(
        self, n_ctx: int, n_seq: int = 1, *, n_outputs: int = 0, n_longest: int | None = None
    ) -> ScoringContext:
        """A context of n_ctx cells that can hand out n_outputs rows of logits at a time."""
