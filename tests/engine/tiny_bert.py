"""A tiny BERT encoder as publishers ship one: safetensors, vocabulary, settings; and the same in NumPy."""

from __future__ import annotations

import io
import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from localctx.engine.gguf_writer import write_gguf
from localctx.registry.bert import bert_parts, write_bert

N_DIM, N_HEADS, N_FEED, N_LAYERS, N_CTX = 32, 2, 64, 2, 24
LISTED = """[PAD] [UNK] [CLS] [SEP] [MASK] the river rises near tannau and is long mine was opened in silver
where does who what a b c ##s ##ed ##ing . ? x ##x 1 2 中 文 uber"""
WORDS = LISTED.split()
CONFIG: dict[str, Any] = {
    "max_position_embeddings": N_CTX,
    "num_hidden_layers": N_LAYERS,
    "hidden_size": N_DIM,
    "intermediate_size": N_FEED,
    "num_attention_heads": N_HEADS,
    "layer_norm_eps": 1e-12,
}


def tensors(seed: int = 0) -> dict[str, np.ndarray]:
    """Random weights under the publisher's names."""
    random = np.random.default_rng(seed)

    def of(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) * 0.3).astype(np.float32)

    found = {
        "embeddings.word_embeddings.weight": of(len(WORDS), N_DIM),
        "embeddings.position_embeddings.weight": of(2 * N_CTX, N_DIM),
        "embeddings.token_type_embeddings.weight": of(2, N_DIM),
        "embeddings.LayerNorm.weight": 1 + of(N_DIM),
        "embeddings.LayerNorm.bias": of(N_DIM),
        "pooler.dense.weight": of(N_DIM, N_DIM),
    }
    for layer in range(N_LAYERS):
        for name, n_out, n_in in (
            ("attention.self.query", N_DIM, N_DIM),
            ("attention.self.key", N_DIM, N_DIM),
            ("attention.self.value", N_DIM, N_DIM),
            ("attention.output.dense", N_DIM, N_DIM),
            ("intermediate.dense", N_FEED, N_DIM),
            ("output.dense", N_DIM, N_FEED),
        ):
            found[f"encoder.layer.{layer}.{name}.weight"] = of(n_out, n_in)
            found[f"encoder.layer.{layer}.{name}.bias"] = of(n_out)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            found[f"encoder.layer.{layer}.{name}.weight"] = 1 + of(N_DIM)
            found[f"encoder.layer.{layer}.{name}.bias"] = of(N_DIM)
    return found


def safetensors(values: dict[str, np.ndarray]) -> bytes:
    """The file of them."""
    header, body = {}, b""
    for name, value in values.items():
        data = value.astype("<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(value.shape),
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + body


def write_tiny_bert(path: Path, seed: int = 0) -> Path:
    """The GGUF file of it, unrounded."""
    with path.open("wb") as out:
        write_bert(out, "tiny-bert", safetensors(tensors(seed)), "\n".join(WORDS) + "\n", CONFIG, "f32")
    return path


def written(kind: Any) -> bytes:
    """The file with matrices of another type."""
    out = io.BytesIO()
    write_bert(out, "tiny-bert", safetensors(tensors()), "\n".join(WORDS), CONFIG, kind)
    return out.getvalue()


def head() -> dict[str, np.ndarray]:
    """What makes a cross-encoder of it: a dense layer over the first token's row, tanh, one number."""
    random = np.random.default_rng(9)
    shapes = {"cls.weight": (N_DIM, N_DIM), "cls.bias": (N_DIM,), "cls.output.weight": (1, N_DIM)}
    found = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return {**found, "cls.output.bias": np.array([0.25], np.float32)}


def write_tiny_reranker(path: Path) -> Path:
    """The GGUF file of the cross-encoder."""
    metadata, values = bert_parts("tiny-reranker", safetensors(tensors()), "\n".join(WORDS), CONFIG)
    with path.open("wb") as out:
        write_gguf(out, {**metadata, "bert.pooling_type": 4}, {**values, **head()}, lambda name, _: "f32")
    return path


def token_rows(ids: list[int], seed: int = 0) -> np.ndarray:
    """The last layer's rows for token ids, [n_tokens, N_DIM], as the publication describes the model."""
    w = tensors(seed)

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(N_LAYERS):
        at = f"encoder.layer.{layer}."
        parts = (dense(x, f"{at}attention.self.{name}") for name in ("query", "key", "value"))
        q, k, v = (part.reshape(len(ids), N_HEADS, -1).transpose(1, 0, 2) for part in parts)
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(N_DIM / N_HEADS)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (shares / shares.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), -1)
        x = norm(x + dense(mixed, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
        inner = dense(x, f"{at}intermediate.dense")
        gelu = 0.5 * inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        x = norm(x + dense(gelu, f"{at}output.dense"), f"{at}output.LayerNorm")
    return x
