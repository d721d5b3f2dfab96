"""A model's KV as far as it can be stored: refused or not, how its keys turn, and whether that was tried.

Knows the header and the options; a context to try it in is handed in.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from localctx._native import State, compose
from localctx.engine.composable import kv_refusal, try_moving
from localctx.engine.gguf import GGUFHeader
from localctx.engine.kv_context import LlamaKVContext
from localctx.engine.options import EngineOptions
from localctx.engine.rope import RopeTable, longest_short_context, rope_table
from localctx.engine.rope_scaling import passed_rope
from localctx.errors import NotComposable

__all__ = ["ModelKV"]

_HINT = "its KV cannot be stored in parts: --strategy exact or retrieve"


class ModelKV:
    """One model's."""

    def __init__(self, header: GGUFHeader, options: EngineOptions) -> None:
        self._header = header
        self._options = options
        self._like: State | None = None

    @cached_property
    def refusal(self) -> str | None:
        """See composable.kv_refusal()."""
        return kv_refusal(self._header, self._options)

    def least_n_ctx(self, n_ctx: int) -> int:
        """n_ctx, or as many cells as it takes for the long factors, of files that have short ones too: KV
        made with the one cannot be read with the other.
        """
        short = longest_short_context(self._header)
        return n_ctx if short is None else max(n_ctx, short + 1)

    @cached_property
    def _table(self) -> RopeTable:
        return rope_table(self._header, self._options.rope, self.least_n_ctx(1))

    def table(self, name: str) -> RopeTable:
        """How keys turn in every context for stored KV. Raises NotComposable with the model's name."""
        if self.refusal is not None:
            raise NotComposable(f"{name} {self.refusal}", _HINT)
        return self._table

    def check_size(self, n_ctx: int, name: str) -> None:
        """Raises NotComposable for a context that turns its keys by a factor of its own: other contexts could
        not read its KV.
        """
        rope = self._options.rope
        here = passed_rope(self._header, rope, n_ctx)
        if here != passed_rope(self._header, rope, self.least_n_ctx(1)):
            raise NotComposable(
                f"{name} turns the keys of a context of {n_ctx:,} tokens by a factor of its own"
                f" ({here.method}), its KV is not kept",
                "--rope-scale S gives all contexts the same one (linear, ntk, yarn)",
            )

    def check(self, context: LlamaKVContext, name: str) -> None:
        """Give a new context the state that others are composed like, from a trial the first time. Raises
        NotComposable when KV that is moved is not what it was, or keys do not turn as the file says.
        """
        try:
            if self._like is None:
                self._check_rope(context)
                self._like = self._try(context)
        except NotComposable as error:
            raise NotComposable(f"{name} {error.message}", _HINT) from error
        context.like = self._like

    def _check_rope(self, context: LlamaKVContext) -> None:
        table, rope = self._table, context.rope
        says = ("neox" if table.neox else "norm", f"{table.freq_base:.1f}", f"{table.freq_scale:g}")
        reports = (rope.type, f"{rope.freq_base:.1f}", f"{rope.freq_scale:g}")
        if says != reports:
            raise NotComposable(
                f"turns its keys by {' '.join(reports)}, not by {' '.join(says)} as its file says"
            )

    def _try(self, context: LlamaKVContext) -> State:
        state = try_moving(context, context.rope_table, context.trial_tokens(), context.n_positions)
        one = np.zeros(1, np.int32)
        return State(compose(state, [(state, 0, 1)], one, context.rope_table))  # small, and no buffer held
