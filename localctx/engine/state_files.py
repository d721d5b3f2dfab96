"""llama.cpp's own files of a sequence's state, and caches of other types to write them from.

Is handed contexts. What the project's store is compared with; nothing else uses it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from localctx.engine.host_buffers import HostBuffers
from localctx.engine.llama_context import LlamaContext, Owner
from localctx.engine.llama_log import LoadLog
from localctx.engine.llama_vocab import LlamaVocab
from localctx.engine.options import EngineOptions
from localctx.engine.thinking import ThinkingTags
from localctx.errors import ModelError
from localctx.values import ModelInfo

__all__ = ["load_state_file", "retyped_context", "save_state_file"]


def save_state_file(context: LlamaContext, path: Path, tokens: Sequence[int]) -> int:
    """Write sequence 0 of the context, which holds `tokens`, with llama_state_seq_save_file(); its bytes.

    The file is not forced to the disk. Raises ModelError when llama.cpp cannot write it.
    """
    array = (ctypes.c_int32 * len(tokens))(*tokens)
    n_bytes = int(
        context._lib.llama_state_seq_save_file(context._handle, os.fsencode(path), 0, array, len(tokens))
    )
    if not n_bytes:
        raise ModelError(f"llama.cpp cannot write its state to {path.name}", "look at the free space")
    return n_bytes


def load_state_file(context: LlamaContext, path: Path, tokens: Sequence[int]) -> None:
    """Make the context hold what save_state_file() wrote for `tokens`, and nothing else.

    Only for files that this process wrote: a cut one makes llama.cpp abort. Raises ModelError for a file that
    llama.cpp does not take or that holds other tokens, UsageError when they do not fit.
    """
    array, n_tokens = (ctypes.c_int32 * len(tokens))(), ctypes.c_size_t()
    with context._refilled(tokens):
        n_bytes = context._lib.llama_state_seq_load_file(
            context._handle, os.fsencode(path), 0, array, len(tokens), ctypes.byref(n_tokens)
        )
        if not n_bytes or list(array[: n_tokens.value]) != list(tokens):
            raise ModelError(f"llama.cpp does not take back its state from {path.name}")


def retyped_context(context: LlamaContext, kv_type: str) -> LlamaContext:
    """A context of the same model, on the same weights, whose cells are of another ggml type. Close it before
    the model.

    Raises ModelError with llama.cpp's reason, as for a head that is no whole number of the type's blocks.
    """
    sizes = replace(context.sizes, n_spare=0)
    return LlamaContext(context._lib, _Retyped(context._model, kv_type), sizes)


class _Retyped:
    """A context's Owner but for the types of its cache."""

    def __init__(self, model: Owner, kv_type: str) -> None:
        self._model = model
        self.info: ModelInfo = model.info
        self.vocab: LlamaVocab = model.vocab
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
    def thinking(self) -> ThinkingTags:
        return self._model.thinking

    @property
    def can_reuse(self) -> bool:
        return self._model.can_reuse

    @property
    def buffers(self) -> HostBuffers:
        return self._model.buffers

    def show(self, log: LoadLog) -> None:
        self._model.show(log)

    def forget(self, context: LlamaContext) -> None:
        """The model never knew of it."""
