"""Caches of other types on the same weights, to write llama.cpp's own state files from.

Is handed contexts. What the project's store is compared with; nothing else uses it.
"""

from __future__ import annotations

from dataclasses import replace

from localctx.engine.host_buffers import HostBuffers
from localctx.engine.llama_context import LlamaContext, Owner
from localctx.engine.llama_log import LoadLog
from localctx.engine.llama_vocab import LlamaVocab
from localctx.engine.options import EngineOptions
from localctx.engine.rope_scaling import PassedRope
from localctx.engine.thinking import ThinkingTags
from localctx.values import ModelInfo

__all__ = ["retyped_context"]


def retyped_context(context: LlamaContext, kv_type: str) -> LlamaContext:
    """A context of the same model, on the same weights, whose cells are of another ggml type. Close it before
    the model.

    Raises ModelError with llama.cpp's reason, as for a head that is no whole number of the type's blocks.
    """
    lib, model = context.origin
    return LlamaContext(lib, _Retyped(model, kv_type), replace(context.sizes, n_spare=0))


class _Retyped:
    """A context's Owner but for the types of its cache."""

    def __init__(self, model: Owner, kv_type: str) -> None:
        self._model = model
        self.info: ModelInfo = model.info
        self.vocab: LlamaVocab = model.vocab
        self.adapters = model.adapters
        self._options = replace(model.options, type_k=kv_type, type_v=kv_type)

    @property
    def options(self) -> EngineOptions:
        return self._options

    @property
    def weights(self) -> int:
        return self._model.weights

    @property
    def n_batch(self) -> int:
        return self._model.n_batch

    @property
    def n_ubatch(self) -> int:
        return self._model.n_ubatch

    @property
    def is_offloaded(self) -> bool:
        return self._model.is_offloaded

    @property
    def thinking(self) -> ThinkingTags:
        return self._model.thinking

    @property
    def can_reuse(self) -> bool:
        return self._model.can_reuse

    @property
    def buffers(self) -> HostBuffers:
        return self._model.buffers

    def rope_for(self, n_ctx: int) -> PassedRope:
        return self._model.rope_for(n_ctx)

    def show(self, log: LoadLog) -> None:
        self._model.show(log)

    def forget(self, context: LlamaContext) -> None:
        """The model never knew of it."""
