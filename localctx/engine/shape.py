"""What of a model decides its speed: operations and bytes a token, from its header. Knows no machine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from localctx.engine.ggml_types import row_bytes
from localctx.engine.gguf import GGUFHeader
from localctx.engine.model_facts import kv_shape, n_layer

__all__ = ["Shape", "n_worth", "shape_of"]

_EXPERTS = "_exps."
_FLOPS_PER_WEIGHT = 2  # one multiplication, one addition
_FLOPS_PER_ATTENDED = 4  # of a query element: with the key, and with the value
_PASSED_OVER = 0.25
"""On a processor, each an operation: passing over a cell of another sequence, by what side by side saves of
the matrices; so that SmolLM2-135M has eight places of 400 cells: sixteen lose, four gain no more than they.
"""
_ROWS = 4
"""llama.cpp's matrix kernels for processors take as many rows at a time."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Work of one token.

    prefill_flops: of the matrices that every token passes · decode_flops: with the output layer ·
    attention_flops: for each token that is attended to · weight_bytes: read to decode one token ·
    kv_bytes: read for each token that is attended to, in f16. Of a mixture of experts only those that a token
    is sent to are counted.
    """

    prefill_flops: float
    decode_flops: float
    attention_flops: float
    weight_bytes: float
    kv_bytes: float


def shape_of(header: GGUFHeader) -> Shape:
    """The shape of a model file. Raises ModelError for a header that cannot be."""
    key, layers = header.arch_key, n_layer(header)
    n_used = header.integer(key("expert_used_count"))
    share = n_used / max(1, header.integer(key("expert_count"))) if n_used else 1.0
    names = {tensor.name for tensor in header.tensors}
    passed = output = weight_bytes = 0.0
    for tensor in header.tensors:
        if len(tensor.shape) < 2:
            continue
        active = share if _EXPERTS in tensor.name else 1.0
        elements = math.prod(tensor.shape) * active
        is_embedding = tensor.name.startswith("token_embd")
        if is_embedding and "output.weight" in names:
            continue  # one row is looked up
        weight_bytes += (tensor.size_bytes or 0) * active
        if is_embedding or tensor.name == "output.weight":
            output += elements
        else:
            passed += elements
    shape = kv_shape(header)
    heads = header.per_layer(key("attention.head_count"), layers)
    embedding = header.integer(key("embedding_length"))
    dim = header.integer(key("attention.key_length"), embedding // max(1, *heads, 1))
    attended = [k > 0 and not windowed for k, windowed in zip(shape.k_elements, shape.windowed, strict=True)]
    return Shape(
        prefill_flops=_FLOPS_PER_WEIGHT * passed,
        decode_flops=_FLOPS_PER_WEIGHT * (passed + output),
        attention_flops=float(
            _FLOPS_PER_ATTENDED * dim * sum(n for n, is_full in zip(heads, attended, strict=True) if is_full)
        ),
        weight_bytes=weight_bytes,
        kv_bytes=float(sum(row_bytes("f16", n) for n in (*shape.k_elements, *shape.v_elements))),
    )


def n_worth(shape: Shape, n_cells: int) -> int:
    """Sequences of n_cells each whose steps cost a processor least when they are decoded side by side.

    Of n sequences each token saves weights_saved × (1 - 1 / n), and passes over the cells of n - 1 others:
    the sum is least at the root of their quotient.
    """
    saved = shape.decode_flops / max(1.0, _PASSED_OVER * shape.attention_flops * n_cells)
    return _ROWS * max(1, round(math.sqrt(saved) / _ROWS))
