"""GGUF files written byte by byte, so that tests can also write wrong ones."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

U32, F32, BOOL, STRING, ARRAY, U64 = 4, 6, 7, 8, 9, 10


def text(value: bytes | str) -> bytes:
    """A length-prefixed string."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def pair(key: str, value_type: int, value: bytes) -> bytes:
    """A key, its type and its bytes."""
    return text(key) + struct.pack("<I", value_type) + value


def typed(key: str, value: object) -> bytes:
    """A key with a Python value: bool, int (u32), float (f32), str, or a list of one of these."""
    if isinstance(value, list):
        kinds = [typed("", item) for item in value]
        kind = kinds[0][8:12] if kinds else struct.pack("<I", U32)
        return pair(key, ARRAY, kind + struct.pack("<Q", len(value)) + b"".join(item[12:] for item in kinds))
    if isinstance(value, bool):
        return pair(key, BOOL, bytes([value]))
    if isinstance(value, int):
        return pair(key, U32, struct.pack("<I", value))
    if isinstance(value, float):
        return pair(key, F32, struct.pack("<f", value))
    assert isinstance(value, str)
    return pair(key, STRING, text(value))


def head(n_tensors: int, n_keys: int, version: int = 3) -> bytes:
    """Magic, version and counts."""
    return b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_keys)


def tensor(name: str, shape: Sequence[int], type_id: int, offset: int) -> bytes:
    """One row of the tensor table."""
    dimensions = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + dimensions + struct.pack("<IQ", type_id, offset)


def file(
    metadata: Mapping[str, object], tensors: Sequence[bytes] = (), data: bytes = b"", alignment: int = 32
) -> bytes:
    """A whole file; `tensors` are rows of the table."""
    header = head(len(tensors), len(metadata)) + b"".join(typed(k, v) for k, v in metadata.items())
    header += b"".join(tensors)
    return header + b"\0" * (-len(header) % alignment) + data


LLAMA: dict[str, object] = {
    "general.architecture": "llama",
    "general.name": "tiny",
    "llama.block_count": 2,
    "llama.context_length": 4096,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 128,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.rope.freq_base": 500000.0,
    "tokenizer.ggml.tokens": ["a", "b", "c"],
}


def llama(**changes: object) -> bytes:
    """A complete small model: two tensors of 4,096 f16 each. Keys with dots are given through `changes`."""
    metadata = {**LLAMA, **changes}
    tensors = [tensor("token_embd.weight", (64, 64), 1, 0), tensor("blk.1.attn_q.weight", (64, 64), 1, 8192)]
    return file(metadata, tensors, bytes(range(256)) * 64)
