"""Tiny random models of many architectures: their own keys and tensors, one small BPE vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import gguf
import numpy as np
from engine.tiny_gguf import CHATML, bpe_vocabulary, write_vocabulary

N_EMBD, N_HEAD, N_HEAD_KV, N_FF, HEAD = 64, 4, 2, 96, 16
Shapes = dict[str, tuple[int, ...]]
"""Tensor name → shape as NumPy sees it; names ending in "norm.weight" hold ones."""
Key = int | float | str | list[int]


def _feed_forward(block: str, n_up: int = N_FF) -> Shapes:
    return {
        f"{block}ffn_norm.weight": (N_EMBD,),
        f"{block}ffn_up.weight": (n_up, N_EMBD),
        f"{block}ffn_down.weight": (N_EMBD, N_FF),
    }


def _attention(block: str) -> Shapes:
    return {
        f"{block}attn_norm.weight": (N_EMBD,),
        f"{block}attn_q.weight": (N_HEAD * HEAD, N_EMBD),
        f"{block}attn_k.weight": (N_HEAD_KV * HEAD, N_EMBD),
        f"{block}attn_v.weight": (N_HEAD_KV * HEAD, N_EMBD),
        f"{block}attn_output.weight": (N_EMBD, N_HEAD * HEAD),
    }


def _llama(block: str, _: int) -> Shapes:
    return _attention(block) | _feed_forward(block) | {f"{block}ffn_gate.weight": (N_FF, N_EMBD)}


def _qk_norms(block: str) -> Shapes:
    return {f"{block}attn_q_norm.weight": (HEAD,), f"{block}attn_k_norm.weight": (HEAD,)}


def _qwen3(block: str, layer: int) -> Shapes:
    return _llama(block, layer) | _qk_norms(block)


def _qwen2vl(block: str, layer: int) -> Shapes:
    biases = {f"{block}attn_q.bias": (N_HEAD * HEAD,)}
    biases |= {f"{block}attn_{name}.bias": (N_HEAD_KV * HEAD,) for name in "kv"}
    return _llama(block, layer) | biases


def _phi3(block: str, _: int) -> Shapes:
    return _attention(block) | _feed_forward(block, 2 * N_FF)


def _gemma3(block: str, layer: int) -> Shapes:
    norms = {f"{block}post_attention_norm.weight": (N_EMBD,), f"{block}post_ffw_norm.weight": (N_EMBD,)}
    return _qwen3(block, layer) | norms


def _mamba(block: str, _: int) -> Shapes:
    return {
        f"{block}attn_norm.weight": (N_EMBD,),
        f"{block}ssm_in.weight": (256, N_EMBD),
        f"{block}ssm_conv1d.weight": (128, 4),
        f"{block}ssm_conv1d.bias": (128,),
        f"{block}ssm_x.weight": (4 + 2 * 16, 128),
        f"{block}ssm_dt.weight": (128, 4),
        f"{block}ssm_dt.bias": (128,),
        f"{block}ssm_a": (128, 16),
        f"{block}ssm_d": (128,),
        f"{block}ssm_out.weight": (N_EMBD, 128),
    }


def _lfm2(block: str, layer: int) -> Shapes:
    if layer % 2:
        mixer = _attention(block) | _qk_norms(block)
    else:
        mixer = {
            f"{block}attn_norm.weight": (N_EMBD,),
            f"{block}shortconv.conv.weight": (N_EMBD, 3),
            f"{block}shortconv.in_proj.weight": (3 * N_EMBD, N_EMBD),
            f"{block}shortconv.out_proj.weight": (N_EMBD, N_EMBD),
        }
    return mixer | _feed_forward(block) | {f"{block}ffn_gate.weight": (N_FF, N_EMBD)}


def _deepseek2(block: str, _: int) -> Shapes:
    rank, nope, rope, value = 32, 16, 8, 16
    return {
        f"{block}attn_norm.weight": (N_EMBD,),
        f"{block}attn_q_a.weight": (rank, N_EMBD),
        f"{block}attn_q_a_norm.weight": (rank,),
        f"{block}attn_q_b.weight": (N_HEAD * (nope + rope), rank),
        f"{block}attn_kv_a_mqa.weight": (rank + rope, N_EMBD),
        f"{block}attn_kv_a_norm.weight": (rank,),
        f"{block}attn_k_b.weight": (N_HEAD, rank, nope),
        f"{block}attn_v_b.weight": (N_HEAD, value, rank),
        f"{block}attn_output.weight": (N_EMBD, N_HEAD * value),
        f"{block}ffn_gate.weight": (N_FF, N_EMBD),
    } | _feed_forward(block)


_ATTENTION_KEYS: dict[str, Key] = {
    "attention.head_count": N_HEAD,
    "attention.head_count_kv": N_HEAD_KV,
    "rope.dimension_count": HEAD,
    "rope.freq_base": 10000.0,
}
ARCHITECTURES: dict[str, tuple[int, Callable[[str, int], Shapes], dict[str, Key]]] = {
    # name: layers, the tensors of one, the keys
    "llama": (2, _llama, _ATTENTION_KEYS),
    "qwen3": (2, _qwen3, _ATTENTION_KEYS | {"attention.key_length": HEAD, "attention.value_length": HEAD}),
    "smollm3": (4, _llama, _ATTENTION_KEYS),
    "phi3": (
        2,
        _phi3,
        _ATTENTION_KEYS
        | {
            "rope.scaling.type": "longrope",
            "rope.scaling.original_context_length": 512,
            "rope.scaling.attn_factor": 1.25,
        },
    ),
    "gemma3": (
        6,
        _gemma3,
        _ATTENTION_KEYS
        | {
            "attention.sliding_window": 64,
            "attention.key_length": HEAD,
            "attention.value_length": HEAD,
        },
    ),
    "mamba": (
        2,
        _mamba,
        {"ssm.conv_kernel": 4, "ssm.inner_size": 128, "ssm.state_size": 16, "ssm.time_step_rank": 4},
    ),
    "lfm2": (2, _lfm2, _ATTENTION_KEYS | {"attention.head_count_kv": [0, N_HEAD_KV], "shortconv.l_cache": 3}),
    "deepseek2": (
        2,
        _deepseek2,
        _ATTENTION_KEYS
        | {
            "attention.head_count_kv": 1,
            "attention.key_length": 40,
            "attention.value_length": 32,
            "attention.key_length_mla": 24,
            "attention.value_length_mla": 16,
            "attention.q_lora_rank": 32,
            "attention.kv_lora_rank": 32,
            "rope.dimension_count": 8,
            "leading_dense_block_count": 2,
            "expert_count": 2,
            "expert_used_count": 1,
            "expert_shared_count": 1,
            "expert_feed_forward_length": 32,
            "expert_weights_scale": 1.0,
            "expert_gating_func": 1,
        },
    ),
    "qwen2vl": (2, _qwen2vl, _ATTENTION_KEYS | {"rope.dimension_sections": [2, 3, 3, 0]}),
}


def write_architecture(
    path: Path,
    architecture: str,
    *,
    n_ctx_train: int = 2048,
    keys: Mapping[str, Key] | None = None,
    extra: Mapping[str, np.ndarray] | None = None,
    seed: int = 11,
) -> Path:
    """Write the file and return its path. `keys` replace its own ones, `extra` tensors are added."""
    n_layer, layer_shapes, own_keys = ARCHITECTURES[architecture]
    vocabulary = bpe_vocabulary()
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")  # llama.cpp expects certain tokens of what is called phi-3
    writer.add_context_length(n_ctx_train)
    writer.add_embedding_length(N_EMBD)
    writer.add_block_count(n_layer)
    writer.add_feed_forward_length(N_FF)
    writer.add_layer_norm_rms_eps(1e-5)
    for key, value in (own_keys | dict(keys or {})).items():
        _add(writer, f"{architecture}.{key}", value)
    write_vocabulary(writer, vocabulary, CHATML)
    norm = "token_embd_norm.weight" if architecture == "lfm2" else "output_norm.weight"
    shapes: Shapes = {"token_embd.weight": (len(vocabulary.tokens), N_EMBD), norm: (N_EMBD,)}
    for layer in range(n_layer):
        shapes |= layer_shapes(f"blk.{layer}.", layer)
    for name, tensor in (_weights(shapes, seed) | dict(extra or {})).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: gguf.GGUFWriter, key: str, value: Key) -> None:
    match value:
        case str():
            writer.add_string(key, value)
        case float():
            writer.add_float32(key, value)
        case int():
            writer.add_uint32(key, value)
        case list():
            writer.add_array(key, value)


def _weights(shapes: Shapes, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    tensors = {}
    for name, shape in shapes.items():
        values = random.standard_normal(shape).astype(np.float32)
        if name.endswith("norm.weight"):
            values = np.ones(shape, np.float32)
        elif name.endswith("ssm_a"):
            values = -np.exp(values)
        elif len(shape) > 1 and name != "token_embd.weight":
            values *= 1.5 / np.sqrt(shape[-1])
        tensors[name] = values.astype(np.float32)
    return tensors
