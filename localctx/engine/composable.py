"""Which models have KV that can be cut, moved and put together, or at least saved whole: by name, by trial.

By name from the header alone; the trials decode the same tokens twice, at two positions or from a state that
was put back, and compare what comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from localctx._native import Rope, State, compose
from localctx.engine.gguf import GGUFHeader
from localctx.engine.llama_state import CellStates
from localctx.engine.model_facts import kv_shape, rope_info
from localctx.engine.options import EngineOptions
from localctx.engine.schedule import Slice
from localctx.errors import ModelError, NotComposable

__all__ = ["kv_refusal", "try_moving", "try_restoring"]

_PARTLY_TURNED = frozenset(("smollm3",))  # every fourth layer has no rotary positions
_FAR = 4093  # positions between the two places, where the model has as many
# Differences relative to the size of what differs. Measured with SmolLM2 (Q4_1): keys of the first layer
# 0.0004, of any layer 0.025, values 0.06, logits 0.15. A wrong frequency shows in the first layer's keys.
_FIRST_KEY_NOISE, _KEY_NOISE, _VALUE_NOISE, _LOGIT_NOISE = 0.005, 0.15, 0.3, 0.4
_RESTORED_NOISE = 0.002  # measured: none; the same numbers go through the same steps


def kv_refusal(header: GGUFHeader, options: EngineOptions) -> str | None:
    """Why this model's KV cannot be stored in runs, in words that follow its name; None when it may."""
    shape, rope = kv_shape(header), rope_info(header)
    lora = header.integer(header.arch_key("attention.kv_lora_rank"))
    if shape.is_recurrent:
        return "is recurrent: its state cannot be cut"
    if shape.is_hybrid:
        return "has recurrent layers: their state cannot be cut"
    if shape.has_window:
        return f"has sliding-window layers ({shape.window:,} tokens)"
    if shape.is_mla or lora:
        return "keeps compressed KV (MLA)"
    if rope.type in ("mrope", "imrope", "vision"):
        return "has positions in several dimensions (M-RoPE)"
    if rope.type == "none":
        return "has no rotary positions"
    if rope.type == "unknown":
        return f"is of an architecture whose positions are not known ({header.architecture[:80]})"
    if header.architecture in _PARTLY_TURNED:
        return "has layers without rotary positions"
    if (options.type_k, options.type_v) != ("f16", "f16"):
        return f"has a KV cache of type {options.type_k}/{options.type_v}: only f16 can be stored"
    if not options.flash_attn:
        return "runs without flash attention, where values are laid out otherwise"
    return None


class Probe(Protocol):
    """A context, empty, that the trial may use."""

    cells: CellStates

    def run_batch(self, batch: Sequence[Slice]) -> None:
        """Evaluate one batch."""

    def last_logits(self) -> NDArray[np.float32]:
        """The logits after the last batch, whose one token asked for them."""


def try_moving(probe: Probe, rope: Rope, tokens: NDArray[np.int32], n_positions: int) -> State:
    """Decode `tokens` at two places and put KV of the one at the other. Returns a state of this context.

    Raises NotComposable, in words that follow the model's name, when the un-rotated keys or the values differ
    beyond noise, or the last token's logits on moved KV do.
    """
    n = len(tokens) - 1
    far = min(_FAR, n_positions - len(tokens))
    here, wanted = _decode(probe, tokens, 0)
    there, _ = _decode(probe, tokens, far)
    _compare(here, there, rope)
    moved = compose(here, [(there, 0, n)], np.arange(n, dtype=np.int32), rope)
    probe.cells.restore(0, moved)
    got = _last(probe, tokens, 0)
    off = float((got - wanted).std() / max(float(wanted.std()), 1e-6))
    if not off <= _LOGIT_NOISE:
        raise NotComposable(f"answers differently from KV that was moved ({off:.0%} of the logits' spread)")
    return here


def try_restoring(probe: Probe, tokens: NDArray[np.int32]) -> None:
    """Decode `tokens` with and without saving and restoring the whole state before the last of them.

    Raises NotComposable, in words that follow the model's name, when llama.cpp saves or takes back no state,
    or the last token's logits differ.
    """
    probe.run_batch([Slice(0, 0, tokens[:-1], sample=False)])
    try:
        saved = probe.cells.export(0)
        wanted = _last(probe, tokens, 0)
        probe.cells.restore(0, saved)
    except ModelError as error:
        raise NotComposable(f"has a state that cannot be kept: {error.message}") from error
    got = _last(probe, tokens, 0)
    off = float(np.abs(got - wanted).max() / max(float(wanted.std()), 1e-6))
    if not off <= _RESTORED_NOISE:
        raise NotComposable(
            f"answers differently from a state that was put back ({off:.0%} of the logits' spread)"
        )


def _decode(probe: Probe, tokens: NDArray[np.int32], position: int) -> tuple[State, NDArray[np.float32]]:
    """The state of all but the last token, from `position` on, and the logits after the last."""
    probe.run_batch([Slice(0, position, tokens[:-1], sample=False)])
    try:
        state = State(probe.cells.export(0))
    except ValueError as error:
        raise NotComposable(f"keeps its KV in a form that is not understood: {error}") from error
    if state.sections != ("attention",):
        raise NotComposable(f"keeps more than plain attention KV ({', '.join(state.sections)})")
    return state, _last(probe, tokens, position)


def _last(probe: Probe, tokens: NDArray[np.int32], position: int) -> NDArray[np.float32]:
    probe.run_batch([Slice(0, position + len(tokens) - 1, tokens[-1:], sample=True)])
    logits = probe.last_logits()
    probe.cells.clear()
    return logits


def _compare(here: State, there: State, rope: Rope) -> None:
    states = (here, there)
    for layer in range(here.n_layer):
        keys = [rope.turn(state.keys(layer), state.positions, inverse=True) for state in states]
        limit = _KEY_NOISE if layer else _FIRST_KEY_NOISE
        _check(f"layer {layer}'s keys", keys, limit)
        _check(f"layer {layer}'s values", [state.values(layer) for state in states], _VALUE_NOISE)


def _check(what: str, pair: Sequence[NDArray[np.float16]], limit: float) -> None:
    one, two = (rows.astype(np.float32) for rows in pair)
    off = float(np.linalg.norm(one - two) / max(float(np.linalg.norm(one)), 1e-6))
    if not off <= limit:
        raise NotComposable(f"changes with its position by more than a rotation ({what} by {off:.1%})")
