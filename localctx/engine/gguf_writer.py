"""Metadata and tensors → one GGUF file of version 3. Knows the format only; gguf_reader.py is its other half.

Tensors are given as float32 and stored as f32, f16 or q8_0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from localctx.engine.ggml_types import TYPE_SIZES, type_id

__all__ = ["MetadataValue", "TensorType", "write_gguf"]

MetadataValue: TypeAlias = "str | bool | int | float | Sequence[str] | Sequence[int] | Sequence[float]"
TensorType: TypeAlias = Literal["f32", "f16", "q8_0"]
MAGIC, VERSION, ALIGNMENT = b"GGUF", 3, 32
_U32, _F32, _BOOL, _STRING, _ARRAY = 4, 6, 7, 8, 9
_I32 = 5
Q8_LARGEST = 127.0


def write_gguf(
    out: BinaryIO,
    metadata: Mapping[str, MetadataValue],
    tensors: Mapping[str, NDArray[np.float32]],
    type_of: Callable[[str, NDArray[np.float32]], TensorType],
) -> None:
    """Write the file. Numbers are u32, f32 or i32 in arrays. Raises ValueError for a tensor whose rows do not
    divide into the blocks of its type, or an empty list, whose type is not known.
    """
    types = {name: type_of(name, values) for name, values in tensors.items()}
    head = [MAGIC, struct.pack("<IQQ", VERSION, len(tensors), len(metadata))]
    for key, value in metadata.items():
        head.append(_string(key) + _value(value))
    offset = 0
    for name, values in tensors.items():
        shape = values.shape[::-1]
        head.append(_string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape))
        head.append(struct.pack("<IQ", type_id(types[name]), offset))
        offset += _padded(_size_bytes(values, types[name]))
    start = b"".join(head)
    out.write(start + bytes(_padded(len(start)) - len(start)))
    for name, values in tensors.items():
        data = _encoded(values, types[name])
        out.write(data + bytes(_padded(len(data)) - len(data)))


def _string(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def _value(value: MetadataValue) -> bytes:
    """A value with its type in front."""
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _string(value)
    if isinstance(value, bool):
        return struct.pack("<IB", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _U32, value)
    if isinstance(value, float):
        return struct.pack("<If", _F32, value)
    if not value:
        raise ValueError("an empty list has no type")
    kind = _STRING if isinstance(value[0], str) else _F32 if isinstance(value[0], float) else _I32
    head = struct.pack("<IIQ", _ARRAY, kind, len(value))
    if kind == _STRING:
        return head + b"".join(_string(str(item)) for item in value)
    return head + np.array(value, "<f4" if kind == _F32 else "<i4").tobytes()


def _padded(n_bytes: int) -> int:
    return -(-n_bytes // ALIGNMENT) * ALIGNMENT


def _size_bytes(values: NDArray[np.float32], kind: TensorType) -> int:
    _, per_block, block_bytes = TYPE_SIZES[type_id(kind)]
    if values.shape[-1] % per_block:
        raise ValueError(f"rows of {values.shape[-1]} do not divide into {kind}'s blocks of {per_block}")
    return values.size // per_block * block_bytes


def _encoded(values: NDArray[np.float32], kind: TensorType) -> bytes:
    if kind == "f32":
        return values.astype("<f4").tobytes()
    if kind == "f16":
        return values.astype("<f2").tobytes()
    blocks = values.reshape(-1, 32)
    scales = np.abs(blocks).max(axis=1, keepdims=True) / Q8_LARGEST
    codes = np.round(np.divide(blocks, scales, out=np.zeros_like(blocks), where=scales > 0))
    packed = np.empty(len(blocks), np.dtype([("scale", "<f2"), ("codes", "i1", 32)]))
    packed["scale"], packed["codes"] = scales[:, 0], codes
    return packed.tobytes()
