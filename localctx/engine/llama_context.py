"""One context of llama.cpp: made from an open model, freed whatever fails. Is handed llama_cpp and the model.

A context holds its model, which closes it first.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from localctx._native import AbortFlag
from localctx.engine.batch_context import BatchContext
from localctx.engine.ggml_types import type_id
from localctx.engine.limits import usable_cpus
from localctx.engine.llama_decoder import LlamaDecoder
from localctx.engine.llama_log import LoadLog, logged
from localctx.engine.llama_vocab import LlamaVocab
from localctx.engine.options import EngineOptions
from localctx.engine.schedule import Scheduler
from localctx.engine.thinking import ThinkingSplitter, ThinkingTags
from localctx.errors import ModelError
from localctx.values import ModelInfo, RopeInfo

__all__ = ["ROPE_SCALINGS", "LlamaContext", "freed_on_error"]

ROPE_SCALINGS = {"none": 0, "linear": 1, "yarn": 2}  # enum llama_rope_scaling_type
_ROPE_TYPES = {-1: "none", 0: "norm", 2: "neox", 8: "mrope", 40: "imrope", 24: "vision"}  # llama_rope_type


@contextmanager
def freed_on_error(free: Callable[[int], object], handle: int) -> Iterator[None]:
    """What C made is freed when the body fails."""
    try:
        yield
    except BaseException:
        free(handle)
        raise


class Owner(Protocol):
    """The model as a context sees it."""

    info: ModelInfo
    vocab: LlamaVocab

    @property
    def weights(self) -> int:
        """llama.cpp's model."""

    @property
    def options(self) -> EngineOptions:
        """The settings it was opened with."""

    @property
    def n_batch(self) -> int:
        """Tokens of one step."""

    @property
    def thinking(self) -> ThinkingTags:
        """What marks thinking in its output."""

    @property
    def can_reuse(self) -> bool:
        """Whether cached tokens can be cut at any position and shared."""

    def show(self, log: LoadLog) -> None:
        """Hand llama.cpp's lines on."""

    def forget(self, context: LlamaContext) -> None:
        """The context was closed."""


class LlamaContext(BatchContext):
    """A values.Context on llama.cpp. `n_ctx_effective`: cells as llama.cpp rounded them; `rope`: in force."""

    def __init__(self, lib: Any, model: Owner, n_ctx: int, n_seq: int, notices: tuple[str, ...] = ()) -> None:
        """Raises ModelError with llama.cpp's reason."""
        stop, tags = AbortFlag(), model.thinking
        handle, log = _new_context(lib, model, n_ctx, n_seq, stop)
        with freed_on_error(lib.llama_free, handle):
            self._model = model
            self.n_ctx_effective = int(lib.llama_n_ctx(handle))
            self.rope = _rope_in_force(lib, model, log.text)
            self.decoder = LlamaDecoder(lib, handle, model.vocab, stop, model.n_batch)
            super().__init__(
                self.decoder,
                Scheduler(min(n_ctx, self.n_ctx_effective), n_seq, reuse=model.can_reuse),
                stop,
                lambda is_open: ThinkingSplitter(tags.open, tags.close, is_open, tags.dropped),
                notices,
            )

    def close(self) -> None:
        """Free the cache; again is harmless."""
        if not self._closed:
            super().close()
            self._model.forget(self)


def _parameters(lib: Any, model: Owner, n_ctx: int, n_seq: int, stop: AbortFlag) -> Any:
    """llama_context_params."""
    options, rope = model.options, model.options.rope
    parameters = lib.llama_context_default_params()
    parameters.n_ctx = n_ctx
    parameters.n_batch = parameters.n_ubatch = model.n_batch
    parameters.n_seq_max = n_seq
    parameters.n_outputs_max = n_seq  # one row of logits a sequence, not one a token of the batch
    parameters.n_threads = parameters.n_threads_batch = options.n_threads or usable_cpus()
    parameters.kv_unified = True
    parameters.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_ENABLED
    parameters.type_k, parameters.type_v = type_id(options.type_k), type_id(options.type_v)
    parameters.abort_callback = lib.ggml_abort_callback(stop.callback_address)
    parameters.abort_callback_data = stop.data_address
    if rope.scaling is not None:
        parameters.rope_scaling_type = ROPE_SCALINGS[rope.scaling]
    if rope.freq_base is not None:
        parameters.rope_freq_base = rope.freq_base
    if rope.freq_scale is not None:
        parameters.rope_freq_scale = rope.freq_scale
    if rope.yarn_orig_ctx is not None:
        parameters.yarn_orig_ctx = rope.yarn_orig_ctx
    return parameters


def _new_context(lib: Any, model: Owner, n_ctx: int, n_seq: int, stop: AbortFlag) -> tuple[int, LoadLog]:
    parameters = _parameters(lib, model, n_ctx, n_seq, stop)
    handle, log = logged(lib, lambda _: lib.llama_init_from_model(model.weights, parameters), lib.llama_free)
    model.show(log)
    if not handle:
        raise ModelError(
            f"{model.info.name}: llama.cpp cannot make a context of {n_ctx:,} tokens: {log.error()}",
            "a smaller --ctx, or localctx doctor",
        )
    return handle, log


def _rope_in_force(lib: Any, model: Owner, log: str) -> RopeInfo:
    """The file's settings with what llama.cpp reports for the context."""
    values = {
        name: float(value) for name, value in re.findall(r"(freq_base|freq_scale) += +([\d.e+-]+)", log)
    }
    rope = model.info.rope
    return dataclasses.replace(
        rope,
        type=_ROPE_TYPES.get(lib.llama_model_rope_type(model.weights), rope.type),
        scaling=model.options.rope.scaling or rope.scaling,
        freq_base=values.get("freq_base", rope.freq_base),
        freq_scale=values.get("freq_scale", rope.freq_scale),
    )
