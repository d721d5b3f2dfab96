"""What the KV tests share: documents, logits behind what is placed, keys without their rotation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from engine.tiny_gguf import TRAINING_TEXT

from localctx._native import Rope, State
from localctx.engine.kv_context import LlamaKVContext
from localctx.engine.llama import LlamaModel
from localctx.engine.prefill import plan_prefill
from localctx.kv import KVChunk, KVPart, PrefillPolicy

NOISE = 0.02  # of the values' spread: f16 rounding and another order of sums


def document(model: LlamaModel, n_tokens: int) -> list[int]:
    """Tokens of text that does not repeat itself exactly."""
    text = "".join(f"{i}. {TRAINING_TEXT}" for i in range(n_tokens // 100 + 1))
    return model.tokenize(text)[:n_tokens]


def prefill(
    context: LlamaKVContext,
    prefix: Sequence[int],
    tokens: Sequence[int],
    policy: PrefillPolicy,
    **more: object,
) -> list[KVChunk]:
    """The chunks of a stream."""
    chunks: list[KVChunk] = []
    context.stream(prefix, tokens, policy, chunks.append, **more)  # type: ignore[arg-type]  # as stream() has them
    return chunks


def parts_at(chunks: Sequence[KVChunk], position: int) -> list[KVPart]:
    """The chunks where they stand in a document that starts at `position`."""
    return [KVPart(chunk.state, 0, chunk.n_tokens, position + chunk.first) for chunk in chunks]


def just_rebased(
    context: LlamaKVContext, n_prefix: int, chunks: Sequence[KVChunk], policy: PrefillPolicy
) -> list[KVChunk]:
    """The chunks before which prefix and window were brought together: nothing stands between them."""
    n_tokens, n_chunk = chunks[-1].first + chunks[-1].n_tokens, chunks[0].n_tokens
    steps = plan_prefill(policy, n_tokens, 0, 0, n_chunk, context.n_positions - n_prefix).steps
    assert [step.start for step in steps] == [chunk.first for chunk in chunks]
    found = [chunks[n] for n in range(1, len(steps)) if steps[n].base != steps[n - 1].base]
    assert len(found) == context.n_rebased > 2
    return found


def logits_after(context: LlamaKVContext, tokens: Sequence[int]) -> np.ndarray:
    """The logits after each of `tokens`, behind what the context holds, [n, n_vocab]."""
    rows: list[np.ndarray] = []
    context.score(tokens, lambda first, values: rows.append(values))
    return np.concatenate(rows)


def differs(got: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference, in spreads of what is wanted."""
    one, two = got.astype(np.float32), wanted.astype(np.float32)
    return float(np.abs(one - two).max() / two.std())


def still_keys(state: State, rope: Rope, layer: int) -> np.ndarray:
    """A layer's keys, un-rotated."""
    return rope.turn(state.keys(layer), state.positions, inverse=True)


def stream_values(chunks: Sequence[KVChunk], layer: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """Un-rotated keys and values of one layer of the whole stream; the last layer sees the most."""
    layer %= chunks[0].state.n_layer
    keys = [still_keys(chunk.state, chunk.rope, layer) for chunk in chunks]
    return np.concatenate(keys), np.concatenate([chunk.state.values(layer) for chunk in chunks])
