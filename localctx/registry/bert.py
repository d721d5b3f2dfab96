"""A BERT encoder as its publisher ships it (safetensors, vocabulary) → a GGUF file for llama.cpp.

Knows the names of both sides and reads no file: it is handed the bytes. Weights are stored as float32 in the
source.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from localctx.engine.gguf_writer import MetadataValue, TensorType, write_gguf
from localctx.errors import ModelError

__all__ = ["bert_parts", "write_bert"]

TENSORS = {
    "embeddings.word_embeddings.weight": "token_embd.weight",
    "embeddings.position_embeddings.weight": "position_embd.weight",
    "embeddings.token_type_embeddings.weight": "token_types.weight",
    "embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
LEFT_OUT = ("pooler.", "embeddings.position_ids")
WORD_START = "\u2581"
CONTINUED = "##"
MEAN_POOLING = 1
NORMAL, UNKNOWN, CONTROL = 1, 2, 3
SPECIAL = {
    "[PAD]": "padding_token_id",
    "[UNK]": "unknown_token_id",
    "[CLS]": "bos_token_id",
    "[SEP]": "seperator_token_id",  # the format's own spelling
    "[MASK]": "mask_token_id",
}
FILE_TYPES: Mapping[TensorType, int] = {"f32": 0, "f16": 1, "q8_0": 7}
MAX_HEADER_BYTES = 16 << 20


def write_bert(
    out: BinaryIO, name: str, weights: bytes, vocabulary: str, config: Mapping[str, Any], kind: TensorType
) -> None:
    """Write the model; its matrices are stored as `kind`, all else as f32.

    weights: a safetensors file · vocabulary: a word piece a line · config: `config.json` of the publisher,
    whose `max_position_embeddings` may be lowered to the length that the model was trained on. Raises
    ModelError for weights of another making.
    """
    metadata, tensors = bert_parts(name, weights, vocabulary, config)

    def type_of(name: str, values: NDArray[np.float32]) -> TensorType:
        is_matrix = values.ndim == 2 and name not in ("position_embd.weight", "token_types.weight")
        return kind if is_matrix else "f32"

    write_gguf(out, {**metadata, "general.file_type": FILE_TYPES[kind]}, tensors, type_of)


def bert_parts(
    name: str, weights: bytes, vocabulary: str, config: Mapping[str, Any]
) -> tuple[dict[str, MetadataValue], dict[str, NDArray[np.float32]]]:
    """The file's metadata and tensors, under llama.cpp's names. Raises ModelError."""
    n_ctx = int(config["max_position_embeddings"])
    tensors = {}
    for theirs, values in _read_safetensors(weights).items():
        if not theirs.startswith(LEFT_OUT):
            tensors[_tensor_name(theirs)] = values
    tensors["position_embd.weight"] = tensors["position_embd.weight"][:n_ctx]
    metadata: dict[str, MetadataValue] = {
        "general.architecture": "bert",
        "general.name": name,
        "general.type": "model",
        "bert.block_count": int(config["num_hidden_layers"]),
        "bert.context_length": n_ctx,
        "bert.embedding_length": int(config["hidden_size"]),
        "bert.feed_forward_length": int(config["intermediate_size"]),
        "bert.attention.head_count": int(config["num_attention_heads"]),
        "bert.attention.layer_norm_epsilon": float(config["layer_norm_eps"]),
        "bert.attention.causal": False,
        "bert.pooling_type": MEAN_POOLING,
        **_tokenizer(vocabulary.split("\n")),
    }
    return metadata, tensors


def _tokenizer(pieces: Sequence[str]) -> dict[str, MetadataValue]:
    """The vocabulary as llama.cpp's word-piece tokenizer wants it: marked where words begin."""
    pieces = [piece for piece in pieces if piece]
    types = [CONTROL if piece in SPECIAL else NORMAL for piece in pieces]
    ids = {key: pieces.index(piece) for piece, key in SPECIAL.items()}
    types[ids["unknown_token_id"]] = UNKNOWN
    found: dict[str, MetadataValue] = {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.tokens": [_spelled(piece) for piece in pieces],
        "tokenizer.ggml.token_type": types,
    }
    found.update({f"tokenizer.ggml.{key}": value for key, value in ids.items()})
    return found


def _spelled(piece: str) -> str:
    if piece.startswith("[") and piece.endswith("]") and len(piece) > 2:
        return piece
    return piece.removeprefix(CONTINUED) if piece.startswith(CONTINUED) else WORD_START + piece


def _tensor_name(theirs: str) -> str:
    """`encoder.layer.3.output.dense.bias` → `blk.3.ffn_down.bias`. Raises ModelError."""
    if theirs in TENSORS:
        return TENSORS[theirs]
    prefix, rest = "", theirs
    if theirs.startswith("encoder.layer."):
        number, _, rest = theirs.removeprefix("encoder.layer.").partition(".")
        prefix = f"blk.{number}."
    module, _, part = rest.rpartition(".")
    if module not in TENSORS:
        raise ModelError(f"the weights hold an unknown tensor, {theirs[:80]!r}")
    return f"{prefix}{TENSORS[module]}.{part}"


def _read_safetensors(data: bytes) -> dict[str, NDArray[np.float32]]:
    """The float32 tensors by name, as views. Raises ModelError for a file of another making."""
    try:
        (n_header,) = struct.unpack_from("<Q", data)
        if n_header > min(MAX_HEADER_BYTES, len(data)):
            raise ValueError("its header is too long")
        header = json.loads(data[8 : 8 + n_header])
        body = memoryview(data)[8 + n_header :]
        found = {}
        for name, entry in header.items():
            if name == "__metadata__" or entry["dtype"] != "F32":
                continue
            start, end = entry["data_offsets"]
            found[name] = np.frombuffer(body[start:end], "<f4").reshape(entry["shape"])
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"the weights are no safetensors file: {error}") from error
    return found
