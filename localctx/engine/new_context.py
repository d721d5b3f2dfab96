"""llama.cpp's own context: its parameters, made and freed, the rotation in force. Is handed llama_cpp."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from localctx._native import AbortFlag, QueryCapture
from localctx.engine.ggml_types import type_id
from localctx.engine.limits import usable_cpus
from localctx.engine.llama_log import LoadLog, logged
from localctx.engine.lora import Adapters
from localctx.engine.options import EngineOptions
from localctx.engine.rope_scaling import PassedRope
from localctx.errors import ModelError
from localctx.values import ModelInfo, RopeInfo

__all__ = ["ROPE_SCALINGS", "ContextSizes", "ModelHandle", "freed_on_error", "new_context", "rope_in_force"]

ROPE_SCALINGS = {"none": 0, "linear": 1, "yarn": 2}  # enum llama_rope_scaling_type
_ROPE_PARAMETERS = {
    "freq_base": "rope_freq_base",
    "freq_scale": "rope_freq_scale",
    **{f"yarn_{name}": f"yarn_{name}" for name in ("orig_ctx", "ext_factor", "attn_factor")},
    **{f"yarn_{name}": f"yarn_{name}" for name in ("beta_fast", "beta_slow")},
}
_ROPE_TYPES = {-1: "none", 0: "norm", 2: "neox", 8: "mrope", 40: "imrope", 24: "vision"}  # llama_rope_type


@contextmanager
def freed_on_error(free: Callable[[int], object], handle: int) -> Iterator[None]:
    """What C made is freed when the body fails."""
    try:
        yield
    except BaseException:
        free(handle)
        raise


class ModelHandle(Protocol):
    """The model as the making of a context sees it."""

    info: ModelInfo

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
    def n_ubatch(self) -> int:
        """Tokens of a step that a device computes at once."""

    @property
    def adapters(self) -> Adapters:
        """LoRA adapters that are loaded with it."""

    def rope_for(self, n_ctx: int) -> PassedRope:
        """What a context of that many tokens is told of rotation."""

    def show(self, log: LoadLog) -> None:
        """Hand llama.cpp's lines on."""


@dataclass(frozen=True, slots=True)
class ContextSizes:
    """Cells; sequences that decode side by side; sequence ids beside them; rows of logits of one step, at
    least one a sequence; tokens of the longest sequence, where that is less than all cells.
    """

    n_ctx: int
    n_seq: int = 1
    n_spare: int = 0
    n_outputs: int = 0
    n_longest: int | None = None

    @property
    def n_reach(self) -> int:
        """Positions that a sequence may have."""
        return self.n_longest or self.n_ctx

    @property
    def n_ids(self) -> int:
        """Sequence ids in all."""
        return self.n_seq + self.n_spare

    @property
    def n_rows(self) -> int:
        """Rows of logits that llama.cpp makes room for."""
        return max(self.n_outputs, self.n_ids)


def _parameters(
    lib: Any, model: ModelHandle, sizes: ContextSizes, stop: AbortFlag, capture: QueryCapture | None
) -> Any:
    """llama_context_params."""
    options, rope = model.options, model.rope_for(sizes.n_reach)
    parameters = lib.llama_context_default_params()
    parameters.n_ctx = sizes.n_ctx
    parameters.n_batch, parameters.n_ubatch = model.n_batch, model.n_ubatch
    parameters.n_seq_max = sizes.n_ids
    parameters.n_outputs_max = sizes.n_rows  # not one a token of the batch
    parameters.n_threads = parameters.n_threads_batch = options.n_threads or usable_cpus()
    parameters.kv_unified = True
    flash = "ENABLED" if options.flash_attn else "DISABLED"
    parameters.flash_attn_type = getattr(lib, f"LLAMA_FLASH_ATTN_TYPE_{flash}")
    parameters.type_k, parameters.type_v = type_id(options.type_k), type_id(options.type_v)
    parameters.abort_callback = lib.ggml_abort_callback(stop.callback_address)
    parameters.abort_callback_data = stop.data_address
    if capture is not None:
        parameters.cb_eval = lib.ggml_backend_sched_eval_callback(capture.callback_address)
        parameters.cb_eval_user_data = capture.data_address
    if rope.scaling is not None:
        parameters.rope_scaling_type = ROPE_SCALINGS[rope.scaling]
    for name, parameter in _ROPE_PARAMETERS.items():
        value = getattr(rope, name)
        if value is not None:
            setattr(parameters, parameter, value)
    return parameters


def new_context(
    lib: Any, model: ModelHandle, sizes: ContextSizes, stop: AbortFlag, capture: QueryCapture | None = None
) -> tuple[int, LoadLog]:
    """The context, which obeys `stop` and shows its queries to `capture`, and what llama.cpp said; both must
    outlive it. Raises ModelError with its reason.
    """
    parameters = _parameters(lib, model, sizes, stop, capture)
    handle, log = logged(lib, lambda _: lib.llama_init_from_model(model.weights, parameters), lib.llama_free)
    model.show(log)
    if not handle:
        raise ModelError(
            f"{model.info.name}: llama.cpp cannot make a context of {sizes.n_ctx:,} tokens: {log.error()}",
            "a smaller --ctx, or localctx doctor",
        )
    with freed_on_error(lib.llama_free, handle):
        model.adapters.apply(lib, handle)
    return handle, log


def rope_in_force(lib: Any, model: ModelHandle, n_ctx: int, log: str) -> RopeInfo:
    """The file's settings with what llama.cpp reports for the context."""
    values = {
        name: float(value) for name, value in re.findall(r"(freq_base|freq_scale) += +([\d.e+-]+)", log)
    }
    rope = model.info.rope
    return dataclasses.replace(
        rope,
        type=_ROPE_TYPES.get(lib.llama_model_rope_type(model.weights), rope.type),
        scaling=model.rope_for(n_ctx).method,
        freq_base=values.get("freq_base", rope.freq_base),
        freq_scale=values.get("freq_scale", rope.freq_scale),
    )
