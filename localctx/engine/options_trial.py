"""Options that llama.cpp takes and may still not serve: found out on a few tokens. Is handed llama_cpp.

A rotation that changes nothing is one that the architecture ignores; a cache type that gives no numbers is
one that the backend has no kernel for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from localctx._native import AbortFlag
from localctx.engine.llama_decoder import LlamaDecoder
from localctx.engine.llama_vocab import LlamaVocab
from localctx.engine.new_context import ContextSizes, ModelHandle, freed_on_error, new_context
from localctx.engine.rope_scaling import PassedRope
from localctx.engine.schedule import Slice
from localctx.errors import ModelError, UsageError

__all__ = ["TriedModel", "try_options"]

_N_CELLS = 256
_N_TOKENS = 9
"""The last of them stands far enough from the first to see any other rotation."""
_NO_RAMP = (1e5, 1e4)
"""Rotations in a context, fast and slow, which no pair of dimensions makes: all of them are interpolated."""


class TriedModel(ModelHandle, Protocol):
    """A model with its weights loaded."""

    vocab: LlamaVocab


@dataclass(frozen=True, slots=True)
class _Turned:
    """The model, as a context of another rotation sees it."""

    model: TriedModel
    passed: PassedRope

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def rope_for(self, n_ctx: int) -> PassedRope:
        """The rotation that is tried."""
        return self.passed


def try_options(lib: Any, model: TriedModel, passed: PassedRope, tried: set[str]) -> None:
    """Try what was not `tried` yet: the cache types, and each method of rotation. Raises ModelError for types
    that give no numbers, UsageError for a rotation that is ignored.
    """
    if "types" not in tried:
        _try_cache_types(lib, model)
        tried.add("types")
    if not passed.is_nothing and passed.method not in tried:
        _try_rope(lib, model, passed)
        tried.add(passed.method)


def _try_rope(lib: Any, model: TriedModel, passed: PassedRope) -> None:
    """Raises UsageError when the model answers exactly as it does without what is passed."""
    others = [PassedRope()]
    if passed.scaling == "yarn" and passed.yarn_ext_factor != 0:  # without its ramp it is linear scaling
        others.append(replace(passed, yarn_beta_fast=_NO_RAMP[0], yarn_beta_slow=_NO_RAMP[1]))
    answer, *same = (_logits(lib, _Turned(model, rope), _N_TOKENS) for rope in (passed, *others))
    if any(np.array_equal(answer, other) for other in same):
        raise UsageError(
            f"{model.info.name} ignores --rope-scaling {passed.method}: it answers the same without"
            f" (architecture {model.info.architecture})",
            "another method, or leave the RoPE options out",
        )


def _try_cache_types(lib: Any, model: TriedModel) -> None:
    """Raises ModelError when a token behind a cache of the types that were asked for gives no numbers."""
    options = model.options
    if (options.type_k, options.type_v) == ("f16", "f16"):
        return
    if not np.isfinite(_logits(lib, model, 1)).all():
        raise ModelError(
            f"{model.info.name}: a KV cache of type {options.type_k}/{options.type_v} gives no numbers here",
            "type_k=f16,type_v=f16 always works",
        )


def _logits(lib: Any, model: Any, n_tokens: int) -> NDArray[np.float32]:
    """The logits after the last of a few tokens of no meaning."""
    stop = AbortFlag()
    handle, _ = new_context(lib, model, ContextSizes(_N_CELLS), stop)
    with freed_on_error(lib.llama_free, handle):
        decoder = LlamaDecoder(lib, handle, model.vocab, stop, model.n_batch)
    try:
        n_tokens = min(n_tokens, model.n_batch)
        numbers = np.arange(1, n_tokens + 1, dtype=np.int64) * 7919 % model.vocab.n_tokens
        decoder.evaluate([Slice(0, 0, numbers.astype(np.int32), sample=True)])
        return decoder.logits(n_tokens - 1)
    finally:
        decoder.close()
