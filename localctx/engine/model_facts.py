"""What a header says of the model's size, memory and positions, as tables and formulas; no llama.cpp."""

from __future__ import annotations

from dataclasses import dataclass

from localctx.engine.architectures import (
    FULL_EVERY,
    HYBRID,
    RECURRENT,
    ROPE_TYPES,
    WINDOW_DEFAULT,
    WINDOW_DISABLED,
)
from localctx.engine.ggml_types import row_bytes
from localctx.engine.gguf import GGUFHeader, display, fingerprint
from localctx.errors import ModelError
from localctx.values import ModelInfo, RopeInfo

__all__ = ["KVShape", "kv_shape", "model_facts", "rope_info"]

_MAX_LAYERS = 512  # LLAMA_MAX_LAYERS: more would be written out of bounds
_SHARED_KV = {"gemma3n": 20}  # layers from here on reuse the cache of earlier ones
_MIN_LONG_LLAMA = 16384


@dataclass(frozen=True, slots=True)
class KVShape:
    """Elements of K and of V per token in each layer (0: the layer keeps none).

    `windowed[i]`: layer i keeps only about `window` tokens. Recurrent layers keep a state of fixed size,
    `state_bytes` per sequence for all of them.
    """

    k_elements: tuple[int, ...]
    v_elements: tuple[int, ...]
    windowed: tuple[bool, ...]
    window: int = 0
    state_bytes: int = 0
    is_recurrent: bool = False
    is_hybrid: bool = False
    is_mla: bool = False

    @property
    def has_window(self) -> bool:
        """Whether some layers forget what lies before their window."""
        return any(self.windowed)

    @property
    def is_plain(self) -> bool:
        """Whether every layer keeps K and V of every token, so that the cache can be cut anywhere."""
        return not (self.has_window or self.is_recurrent or self.is_hybrid)


def n_layer(header: GGUFHeader) -> int:
    """Number of layers. Raises ModelError when it cannot be."""
    n = header.integer(header.arch_key("block_count"))
    if not 0 <= n <= _MAX_LAYERS:
        raise ModelError(f"{display(header.path)}: damaged: {n:,} layers", "download it again")
    return n


def kv_shape(header: GGUFHeader) -> KVShape:
    """The cache's shape; where an architecture is not known well, an upper bound."""
    layers, key = n_layer(header), header.arch_key
    heads = header.per_layer(key("attention.head_count"), layers)
    kv_heads = header.per_layer(key("attention.head_count_kv"), layers, -1)
    kv_heads = tuple(n if n >= 0 else heads[i] for i, n in enumerate(kv_heads))
    head_dim = header.integer(key("embedding_length")) // max(1, *heads, 1)
    k_dim = header.integer(key("attention.key_length"), head_dim)
    v_dim = header.integer(key("attention.value_length"), head_dim)
    is_mla = (
        key("attention.key_length_mla") in header.metadata
        and key("attention.value_length_mla") in header.metadata
    )
    windowed, window = _windows(header, layers)
    k_swa = header.integer(key("attention.key_length_swa"), k_dim)
    v_swa = header.integer(key("attention.value_length_swa"), v_dim)
    keeps = _keeps_kv(header, layers)
    return KVShape(
        tuple(kv_heads[i] * (k_swa if windowed[i] else k_dim) * keeps[i] for i in range(layers)),
        tuple(
            kv_heads[i] * (v_swa if windowed[i] else v_dim) * keeps[i] * (not is_mla) for i in range(layers)
        ),
        windowed,
        window,
        _state_bytes(header, sum(not kept for kept in keeps)),
        is_recurrent=header.architecture in RECURRENT,
        is_hybrid=header.architecture in HYBRID,
        is_mla=is_mla,
    )


def _windows(header: GGUFHeader, layers: int) -> tuple[tuple[bool, ...], int]:
    """Which layers see a window only, and its tokens."""
    architecture = header.architecture
    window = header.integer(header.arch_key("attention.sliding_window"), WINDOW_DEFAULT.get(architecture, 0))
    none = (False,) * layers
    if window <= 0 or architecture in WINDOW_DISABLED:
        return none, 0
    pattern = header.metadata.get(header.arch_key("attention.sliding_window_pattern"))
    if isinstance(pattern, tuple) and len(pattern) >= layers:
        return tuple(bool(value) for value in pattern[:layers]), window
    every, first = FULL_EVERY.get(architecture, (1, False))
    if isinstance(pattern, int):
        every = pattern
    if every == 0:
        return (True,) * layers, window
    full = 0 if first else every - 1
    return tuple(i % every != full for i in range(layers)), window


def _keeps_kv(header: GGUFHeader, layers: int) -> tuple[bool, ...]:
    """Which layers keep K and V: not the recurrent ones, not those that reuse an earlier layer's."""
    architecture, key = header.architecture, header.arch_key
    if architecture in RECURRENT:
        return (False,) * layers
    from_layer = _SHARED_KV.get(architecture, layers - header.integer(key("attention.shared_kv_layers")))
    interval = header.integer(key("full_attention_interval"))
    if architecture in HYBRID and interval > 1:
        return tuple(i % interval == interval - 1 for i in range(layers))
    return tuple(i < from_layer for i in range(layers))


def _state_bytes(header: GGUFHeader, n_recurrent: int) -> int:
    """Bytes of recurrent state per sequence in f32: convolution and SSM (Mamba and kin) or WKV (RWKV)."""
    key = header.arch_key
    inner, state = header.integer(key("ssm.inner_size")), header.integer(key("ssm.state_size"))
    conv, groups = header.integer(key("ssm.conv_kernel")), header.integer(key("ssm.group_count"))
    per_layer = max(0, conv - 1) * (inner + 2 * groups * state) + inner * state
    wkv = header.integer(key("wkv.head_size"))
    if wkv:
        embedding = header.integer(key("embedding_length"))
        per_layer = embedding * wkv + header.integer(key("token_shift_count"), 2) * embedding
    if not per_layer:
        return 0
    layers = n_recurrent if n_recurrent else header.integer(key("block_count"))
    return per_layer * 4 * layers


def rope_info(header: GGUFHeader) -> RopeInfo:
    """The rotary settings that the file asks for; type "unknown" for an architecture not in the table."""
    key = header.arch_key
    factor = header.number(key("rope.scaling.factor")) or header.number(key("rope.scale_linear"))
    scaling = header.text(key("rope.scaling.type"), "linear" if factor not in (0.0, 1.0) else "none")
    return RopeInfo(
        ROPE_TYPES.get(header.architecture, "unknown"),
        scaling,
        header.number(key("rope.freq_base"), 10000.0),
        1.0 / factor if factor > 0 else 1.0,
    )


def model_facts(header: GGUFHeader) -> ModelInfo:
    """ModelInfo of a header from open_model(); reads the file once more for its fingerprint."""
    shape, key = kv_shape(header), header.arch_key
    stem = display(header.path).rsplit("/", 1)[-1].removesuffix(".gguf")
    n_vocab = header.array_length("tokenizer.ggml.tokens") or header.integer(key("vocab_size"))
    per_token = sum(row_bytes("f16", n) for n in (*shape.k_elements, *shape.v_elements))
    return ModelInfo(
        name=header.text("general.name") or stem,
        path=display(header.path),
        fingerprint=fingerprint(header),
        architecture=header.architecture,
        n_ctx_train=header.integer(key("context_length")),
        n_layer=n_layer(header),
        n_vocab=n_vocab,
        size_bytes=header.size_bytes,
        kv_bytes_per_token=per_token,
        rope=rope_info(header),
        description=_description(header),
        notices=_notices(header, shape),
    )


def _description(header: GGUFHeader) -> str:
    label = header.text("general.size_label")
    types: dict[str, int] = {}
    for tensor in header.tensors:
        types[tensor.type_name] = types.get(tensor.type_name, 0) + (tensor.size_bytes or 0)
    main = max(types, key=lambda name: types[name], default="")
    return " ".join(part for part in (header.architecture, label, main) if part)


def _notices(header: GGUFHeader, shape: KVShape) -> tuple[str, ...]:
    notices = []
    if not header.is_known_architecture:
        notices.append(
            f"architecture {header.architecture[:80]!r} is not known here: memory estimates are guesses"
        )
    why = (
        "recurrent layers keep a state"
        if shape.is_recurrent or shape.is_hybrid
        else f"{sum(shape.windowed)} of {len(shape.windowed)} layers see only {shape.window:,} tokens back"
    )
    if not shape.is_plain:
        notices.append(
            f"this model's cache cannot be cut: only questions on the same whole documents go on in it, {why}"
        )
    key, names = header.arch_key, {tensor.name for tensor in header.tensors}
    is_llama3 = header.architecture == "llama" and header.number(key("rope.freq_base")) == 500000.0
    is_long = header.integer(key("context_length")) >= _MIN_LONG_LLAMA
    if is_llama3 and is_long and "rope_freqs.weight" not in names:
        notices.append(
            "the file has no rope_freqs: an old conversion of Llama 3.1 degrades beyond 8,192 tokens"
        )
    return tuple(notices)
