"""Tiny model files for tests: a real byte-level BPE or SentencePiece-style tokenizer, small weights.

Two kinds of weights: "random" (attention matters, the text is noise) and "script" (each token has one
successor, so that the model says exactly what a test wants).
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import gguf
import gguf.quants
import numpy as np

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA2_LIKE = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
    "[INST] {{ message['content'] }} [/INST]{% elif message['role'] == 'assistant' %}"
    " {{ message['content'] }}{{ eos_token }}{% else %}<<SYS>>{{ message['content'] }}<</SYS>>{% endif %}"
    "{% endfor %}"
)
GEMMA_LIKE = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>model\n{% endif %}"
)

TRAINING_TEXT = """
The harbour of the old town lies open to the west, and the ships that come in the evening bring
salt, rope and news. A clerk writes down the name of each ship, the day it came, the goods it
carried and the price that was paid for them. In the year 1842 the council built a new wall round
the harbour; the stones came from the hill behind the church. When the water is low, children walk
over the sand to the island and look for shells, glass and small green crabs. What was the net
revenue of the company in the second quarter, and how does it compare with the year before it? The
document says that the agreement ends after three years unless one of the parties gives notice in
writing.
"""


def bytes_to_unicode() -> dict[int, str]:
    """GPT-2's reversible map from bytes to printable characters."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    mapping = {byte: chr(byte) for byte in printable}
    for i, byte in enumerate(byte for byte in range(256) if byte not in mapping):
        mapping[byte] = chr(256 + i)
    return mapping


BYTE_CHARACTERS = bytes_to_unicode()


def spell(data: bytes) -> str:
    """Bytes as a BPE vocabulary writes them."""
    return "".join(BYTE_CHARACTERS[byte] for byte in data)


@dataclass
class Vocabulary:
    """Token texts, types and scores, and how they merge."""

    model: Literal["gpt2", "llama"]
    tokens: list[str]
    types: list[int]
    scores: list[float] = field(default_factory=list)
    merges: list[str] = field(default_factory=list)
    bos: str = ""
    eos: str = ""
    add_bos: bool = False

    def id(self, token: str) -> int:
        """Id of a token by its spelling in the vocabulary."""
        return self.tokens.index(token)


def _learn_merges(text: str, n_merges: int) -> list[tuple[str, str]]:
    """Byte-pair merges by frequency, words being cut before spaces."""
    words = collections.Counter(
        tuple(spell(("" if line_start else " ").encode() + word.encode()))
        for line in text.splitlines()
        for line_start, word in ((i == 0, w) for i, w in enumerate(line.split(" ")))
        if word
    )
    merges: list[tuple[str, str]] = []
    for _ in range(n_merges):
        pairs: collections.Counter[tuple[str, str]] = collections.Counter()
        for word, n in words.items():
            for pair in itertools.pairwise(word):
                pairs[pair] += n
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        words = collections.Counter({_merge(word, best): n for word, n in words.items()})
    return merges


def _merge(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    out: list[str] = []
    for part in word:
        if out and (out[-1], part) == pair:
            out[-1] += part
        else:
            out.append(part)
    return tuple(out)


def bpe_vocabulary(extra: Sequence[bytes] = (), *, bos: str = "", n_merges: int = 250) -> Vocabulary:
    """256 byte tokens, learnt merges, `extra` pieces no merge leads to, ChatML's tokens, "<think>"."""
    merges = _learn_merges(TRAINING_TEXT, n_merges)
    tokens = list(BYTE_CHARACTERS.values()) + [a + b for a, b in merges]
    tokens = list(dict.fromkeys([*tokens, *map(spell, extra)]))
    types = [NORMAL] * len(tokens)
    control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>"]
    tokens += [*control, "<think>", "</think>"]
    types += [CONTROL] * len(control) + [USER_DEFINED] * 2
    return Vocabulary(
        "gpt2",
        tokens,
        types,
        merges=[f"{a} {b}" for a, b in merges],
        bos=bos or "<|endoftext|>",
        eos="<|im_end|>",
        add_bos=bool(bos),
    )


def spm_vocabulary() -> Vocabulary:
    """<unk>, <s>, </s>, 256 byte tokens, then pieces with scores, U+2581 for the space."""
    tokens, types, scores = ["<unk>", "<s>", "</s>"], [UNKNOWN, CONTROL, CONTROL], [0.0, 0.0, 0.0]
    tokens += [f"<0x{byte:02X}>" for byte in range(256)]
    types += [BYTE] * 256
    scores += [0.0] * 256
    letters = [*sorted(set(TRAINING_TEXT) - {"\n", " "}), "▁"]
    merges = _learn_merges(TRAINING_TEXT, 150)
    pieces = [(a + b).replace(BYTE_CHARACTERS[32], "▁") for a, b in merges]
    for rank, piece in enumerate(dict.fromkeys([*pieces, *letters])):
        tokens.append(piece)
        types.append(NORMAL)
        scores.append(-float(rank))
    tokens += ["[INST]", "<think>"]
    types += [USER_DEFINED] * 2
    scores += [0.0, 0.0]
    return Vocabulary("llama", tokens, types, scores, bos="<s>", eos="</s>", add_bos=True)


@dataclass(frozen=True)
class Shape:
    """Sizes of the transformer."""

    n_embd: int = 64
    n_head: int = 4
    n_head_kv: int = 2
    n_ff: int = 96
    n_layer: int = 2
    n_expert: int = 0


def write_tiny_gguf(
    path: Path,
    vocabulary: Vocabulary,
    *,
    architecture: Literal["llama", "qwen2", "qwen3"] = "llama",
    template: str | None = CHATML,
    n_ctx_train: int = 2048,
    rope_freq_base: float = 50_000.0,
    script: Mapping[int, int] | None = None,
    seed: int = 7,
    weight_type: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
    n_layer: int = 2,
    n_expert: int = 0,
) -> Path:
    """Write the file and return its path; `script` maps each token id to the one that follows it, the layers'
    matrices are of `weight_type`. n_expert: experts of each layer, two of which are used; 0 for none.
    """
    shape = (
        Shape(n_layer=n_layer, n_expert=n_expert)
        if script is None
        else Shape(n_embd=-(-len(vocabulary.tokens) // 64) * 64, n_ff=64, n_layer=1)
    )
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(f"tiny-{architecture}")
    writer.add_context_length(n_ctx_train)
    writer.add_embedding_length(shape.n_embd)
    writer.add_block_count(shape.n_layer)
    writer.add_feed_forward_length(shape.n_ff)
    writer.add_head_count(shape.n_head)
    writer.add_head_count_kv(shape.n_head_kv)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.n_embd // shape.n_head)
    writer.add_rope_freq_base(rope_freq_base)
    if shape.n_expert:
        writer.add_expert_count(shape.n_expert)
        writer.add_expert_used_count(2)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    write_vocabulary(writer, vocabulary, template)
    for name, tensor in _weights(shape, len(vocabulary.tokens), architecture, script, seed).items():
        kind = weight_type if name.startswith("blk.") and tensor.ndim > 1 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_vocabulary(writer: gguf.GGUFWriter, vocabulary: Vocabulary, template: str | None) -> None:
    """Add the tokenizer and the template to a file that is being written."""
    writer.add_tokenizer_model(vocabulary.model)
    writer.add_tokenizer_pre("smollm" if vocabulary.model == "gpt2" else "default")
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_types(vocabulary.types)
    if vocabulary.scores:
        writer.add_token_scores(vocabulary.scores)
    if vocabulary.merges:
        writer.add_token_merges(vocabulary.merges)
    writer.add_bos_token_id(vocabulary.id(vocabulary.bos))
    writer.add_eos_token_id(vocabulary.id(vocabulary.eos))
    writer.add_add_bos_token(vocabulary.add_bos)
    if template is not None:
        writer.add_chat_template(template)


def _weights(
    shape: Shape, n_vocab: int, architecture: str, script: Mapping[int, int] | None, seed: int
) -> dict[str, np.ndarray]:
    """All tensors as float32, [rows, columns] as NumPy sees them."""
    random = np.random.default_rng(seed)
    n_embd, n_kv = shape.n_embd, shape.n_embd // shape.n_head * shape.n_head_kv

    def matrix(rows: int, columns: int) -> np.ndarray:
        scale = 0.0 if script is not None else 1.5 / np.sqrt(columns)
        return (random.standard_normal((rows, columns)) * scale).astype(np.float32)

    tensors: dict[str, np.ndarray] = {"output_norm.weight": np.ones(n_embd, np.float32)}
    if script is None:
        tensors["token_embd.weight"] = random.standard_normal((n_vocab, n_embd)).astype(np.float32)
        tensors["output.weight"] = matrix(n_vocab, n_embd)
    else:
        tensors["token_embd.weight"] = np.eye(n_vocab, n_embd, dtype=np.float32)
        tensors["output.weight"] = np.zeros((n_vocab, n_embd), np.float32)
        for token, successor in script.items():
            tensors["output.weight"][successor, token] = 1.0
    for layer in range(shape.n_layer):
        block = f"blk.{layer}."
        tensors |= {
            f"{block}attn_norm.weight": np.ones(n_embd, np.float32),
            f"{block}ffn_norm.weight": np.ones(n_embd, np.float32),
            f"{block}attn_q.weight": matrix(n_embd, n_embd),
            f"{block}attn_k.weight": matrix(n_kv, n_embd),
            f"{block}attn_v.weight": matrix(n_kv, n_embd),
            f"{block}attn_output.weight": matrix(n_embd, n_embd),
            f"{block}ffn_gate.weight": matrix(shape.n_ff, n_embd),
            f"{block}ffn_up.weight": matrix(shape.n_ff, n_embd),
            f"{block}ffn_down.weight": matrix(n_embd, shape.n_ff),
        }
        if shape.n_expert:
            names = [f"{block}ffn_{name}.weight" for name in ("gate", "up", "down")]
            experts = {name: np.stack([tensors[name]] * shape.n_expert) for name in names}
            for name in names:
                noise = random.standard_normal(experts[name].shape).astype(np.float32) / 8
                tensors[name.replace(".weight", "_exps.weight")] = experts[name] + noise
                del tensors[name]
            tensors[f"{block}ffn_gate_inp.weight"] = matrix(shape.n_expert, n_embd)
        if architecture == "qwen2":
            for name, size in (("q", n_embd), ("k", n_kv), ("v", n_kv)):
                tensors[f"{block}attn_{name}.bias"] = np.zeros(size, np.float32)
        if architecture == "qwen3":
            for name in ("q", "k"):
                tensors[f"{block}attn_{name}_norm.weight"] = np.ones(n_embd // shape.n_head, np.float32)
    return tensors
