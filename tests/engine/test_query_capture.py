"""Captured queries are what the layer's matrix makes of its input, whatever the rotation and the batches."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import gguf
import numpy as np
import pytest
from engine.kv_tools import document, prefill
from engine.tiny_architectures import write_architecture
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf

from localctx._native import scan, scan_encode
from localctx.engine.echo import EchoModel
from localctx.engine.llama import LlamaModel, open_model
from localctx.engine.options import EngineOptions
from localctx.engine.query_capture import QueryModel
from localctx.errors import NotComposable
from localctx.kv import PrefillPolicy

N_HEAD, N_HEAD_KV, HEAD_DIM = 4, 2, 16


def tensors(path: Path) -> dict[str, np.ndarray]:
    """A file's tensors, by name."""
    return {
        t.name: np.array(t.data, np.float32).reshape(t.shape[::-1]) for t in gguf.GGUFReader(path).tensors
    }


def normed(rows: np.ndarray) -> np.ndarray:
    """RMS norm without weights."""
    return rows / np.sqrt((rows**2).mean(axis=-1, keepdims=True) + 1e-5)


def first_layer(path: Path, tokens: list[int], which: Literal["q", "k"], *, norm: bool) -> np.ndarray:
    """The first layer's queries or keys before any rotation, [n_tokens, n_heads, head_dim]."""
    weights = tensors(path)
    rows = normed(weights["token_embd.weight"][tokens]) @ weights[f"blk.0.attn_{which}.weight"].T
    heads = rows.reshape(len(tokens), -1, HEAD_DIM)
    return normed(heads) if norm else heads


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])  # adjacent pairs, halves, normed halves
@pytest.mark.parametrize("n_batch", [512, 7])
def test_queries_are_those_of_the_first_layer(
    architecture: Literal["llama", "qwen2", "qwen3"], n_batch: int, tmp_path: Path
) -> None:
    path = write_tiny_gguf(tmp_path / "m.gguf", bpe_vocabulary(), architecture=architecture)
    with open_model(path, EngineOptions(n_batch=n_batch)) as model:
        assert isinstance(model, QueryModel)
        assert model.queries.heads == ((N_HEAD, N_HEAD_KV),) * 2
        tokens = document(model, 40)
        heads = [(0, 3), (1, 0), (0, 0), (0, 1)]
        got = model.queries.capture(tokens, heads)
    wanted = first_layer(path, tokens, "q", norm=architecture == "qwen3")
    assert got.shape == (40, 4, HEAD_DIM)
    assert got.dtype == np.float32
    for place in (0, 2, 3):
        np.testing.assert_allclose(got[:, place], wanted[:, heads[place][1]], atol=2e-3)
    assert np.abs(got[:, 1]).max() > 0.1


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_products_with_exported_keys_are_those_of_the_layer(
    architecture: Literal["llama", "qwen2"], tmp_path: Path
) -> None:
    path = write_tiny_gguf(tmp_path / "m.gguf", bpe_vocabulary(), architecture=architecture)
    with open_model(path) as model:
        tokens, question = document(model, 256), document(model, 300)[280:]
        chunks = prefill(model.open_kv_context(512), (), tokens, PrefillPolicy("exact"))
        pairs, heads = [(0, 1), (0, 0)], [(0, 2), (0, 1)]  # query heads 2 and 3 read KV head 1
        columns = [scan_encode(c.state, 0, c.n_tokens, c.rope, pairs) for c in chunks]
        queries = model.queries.capture(question, heads)
    codes, scales = (np.concatenate([column[part] for column in columns]) for part in (0, 1))
    starts = np.arange(len(tokens) + 1, dtype=np.int64)  # every token is a block
    got = scan(codes, scales, queries, starts)
    keys = first_layer(path, tokens, "k", norm=False)
    asked = first_layer(path, question, "q", norm=False)
    for place, (_, head) in enumerate(heads):
        wanted = asked[:, head] @ keys[:, pairs[place][1]].T
        np.testing.assert_allclose(got[:, place], wanted, atol=0.03 * wanted.std())
        chosen = wanted[np.arange(len(asked)), got[:, place].argmax(1)]  # tokens that recur have equal keys
        np.testing.assert_allclose(chosen, wanted.max(1), atol=0.03 * wanted.std())


def test_long_and_short_factors_are_those_of_stored_kv(tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", "phi3")
    with open_model(path) as model:
        tokens = document(model, 30)
        alone, (n_head, _) = model.queries.capture(tokens, [(0, 0)]), model.queries.heads[0]
        shifted = model.queries.capture([*tokens[:9], *tokens], [(0, 0), (0, n_head - 1)])
    np.testing.assert_allclose(alone[:, 0], shifted[9:, 0], atol=0.02 * float(alone.std()))


def test_heads_that_are_not_there_and_models_without_queries(tiny: LlamaModel, tmp_path: Path) -> None:
    for head in ((0, 4), (2, 0)):
        with pytest.raises(NotComposable, match="queries cannot be read"):
            tiny.queries.capture([1, 2, 3], [head])
    with open_model(write_architecture(tmp_path / "m.gguf", "mamba")) as model, pytest.raises(NotComposable):
        model.queries.capture([1, 2, 3], [(0, 0)])
    assert not isinstance(EchoModel(), QueryModel)
