"""A model that was loaded without allocating anything: its contexts are counted and freed. Is handed
llama_cpp.
"""

from __future__ import annotations

from typing import Any, Protocol

from localctx._native import AbortFlag
from localctx.engine.kv_context import n_spare
from localctx.engine.llama_log import LoadLog
from localctx.engine.lora import Adapters
from localctx.engine.new_context import ContextSizes, new_context
from localctx.engine.options import EngineOptions
from localctx.engine.rope_scaling import PassedRope
from localctx.values import ModelInfo

__all__ = ["SimulatedModel"]


class _Opened(Protocol):
    """The model whose vocabulary is loaded."""

    info: ModelInfo

    @property
    def n_batch(self) -> int:
        """Tokens of one step."""

    @property
    def n_ubatch(self) -> int:
        """Tokens that a device computes at once."""

    def rope_for(self, n_ctx: int) -> PassedRope:
        """What a context of that many tokens is told of rotation."""


class _Sizes(Protocol):
    """A context that is wanted."""

    @property
    def n_ctx(self) -> int:
        """Cells."""

    @property
    def n_seq(self) -> int:
        """Sequences side by side."""

    @property
    def is_kv(self) -> bool:
        """Whether it is one for stored KV."""


class SimulatedModel:
    """A new_context.ModelHandle."""

    def __init__(self, opened: _Opened, options: EngineOptions, weights: int) -> None:
        """`weights`: llama.cpp's model, of which nothing is allocated."""
        self.opened, self.options, self.weights = opened, options, weights
        self.info = opened.info

    @property
    def n_batch(self) -> int:
        """Tokens of one step."""
        return self.opened.n_batch

    @property
    def n_ubatch(self) -> int:
        """Tokens that a device computes at once."""
        return self.opened.n_ubatch

    @property
    def adapters(self) -> Adapters:
        """None: they are small, and not loaded."""
        return Adapters(())

    def rope_for(self, n_ctx: int) -> PassedRope:
        """As the real model's."""
        return self.opened.rope_for(n_ctx)

    def show(self, log: LoadLog) -> None:
        """Nobody is told."""

    def try_context(self, lib: Any, wanted: _Sizes) -> str:
        """What llama.cpp says of a context's buffers. Raises ModelError with its reason."""
        spare = n_spare(self.n_batch) if wanted.is_kv else 0
        sizes, stop = ContextSizes(wanted.n_ctx, wanted.n_seq, spare), AbortFlag()
        handle, log = new_context(lib, self, sizes, stop)
        lib.llama_free(handle)
        return log.text
