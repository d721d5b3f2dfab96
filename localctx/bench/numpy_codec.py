"""The codec's arithmetic in NumPy, whole arrays at a time: what the C++ core is measured against.

Keys [n_tokens, n_heads * head_dim] share scale and zero per channel over 128 tokens, values per token and
head; FP8 has a scale alone. Does not know the store's byte layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Coded", "decode", "encode", "turned"]

F16: TypeAlias = NDArray[np.float16]
F32: TypeAlias = NDArray[np.float32]
U8: TypeAlias = NDArray[np.uint8]
BITS = {"f16": 16, "fp8_e4m3": 8, "fp8_e5m2": 8, "int8": 8, "int4": 4, "int3": 3, "int2": 2}


@dataclass(frozen=True, slots=True)
class Coded:
    """One layer's keys or values: packed codes [groups, group size] with a scale (and a zero) a group, which
    are [groups, 1]; f16 rows as they are.
    """

    codec: str
    packed: NDArray[Any]
    scales: F32 | None = None
    zeros: F32 | None = None


def turned(rows: F16 | F32, angles: NDArray[np.float64], head_dim: int) -> F32:
    """Keys with adjacent pairs of each head rotated by angles [n_tokens, head_dim / 2]."""
    heads = rows.astype(np.float32).reshape(len(rows), -1, head_dim // 2, 2)
    cos, sin = (part.astype(np.float32)[:, None, :] for part in (np.cos(angles), np.sin(angles)))
    out = np.empty_like(heads)
    out[..., 0] = heads[..., 0] * cos - heads[..., 1] * sin
    out[..., 1] = heads[..., 1] * cos + heads[..., 0] * sin
    return out.reshape(rows.shape)


def encode(rows: F32, codec: str, head_dim: int, *, is_key: bool) -> Coded:
    """Rows of one layer, at most 128 of keys."""
    if codec == "f16":
        return Coded(codec, rows.astype(np.float16))
    groups = rows.T if is_key else rows.reshape(-1, head_dim)
    if codec.startswith("fp8"):
        scales = np.abs(groups).max(axis=1, keepdims=True) / _fp8_values(codec)[-1]
        scales = np.where(scales > 0, scales, np.float32(1)).astype(np.float32)
        return Coded(codec, _to_fp8(groups / scales, codec), scales)
    top = (1 << BITS[codec]) - 1
    zeros = groups.min(axis=1, keepdims=True).astype(np.float16).astype(np.float32)
    scales = (groups.max(axis=1, keepdims=True) - zeros) / np.float32(top)
    scales = np.where(scales > 0, scales, np.float32(1)).astype(np.float16).astype(np.float32)
    codes = np.rint(np.clip((groups - zeros) / scales, 0, top)).astype(np.uint8)
    return Coded(codec, _pack(codes, BITS[codec]), scales, zeros)


def decode(coded: Coded, n_tokens: int, head_dim: int, *, is_key: bool) -> F32:
    """The rows again, in f32."""
    if coded.scales is None:
        return coded.packed.astype(np.float32)
    if coded.zeros is None:
        magnitude = _fp8_values(coded.codec)[coded.packed & 0x7F]
        groups = np.where(coded.packed & 0x80, -magnitude, magnitude) * coded.scales
    else:
        n = n_tokens if is_key else head_dim
        groups = _unpack(coded.packed, BITS[coded.codec], n).astype(np.float32) * coded.scales + coded.zeros
    return np.ascontiguousarray(groups.T) if is_key else groups.reshape(n_tokens, -1)


def _pack(codes: U8, bits: int) -> U8:
    """Rows of codes, eight of them to `bits` bytes."""
    if bits == 8:
        return codes
    if bits == 4 and codes.shape[1] % 2 == 0:
        return codes[:, 0::2] | (codes[:, 1::2] << np.uint8(4))
    flags = np.unpackbits(codes[:, :, None], axis=2, bitorder="little")[:, :, :bits]
    return np.packbits(flags.reshape(len(codes), -1), axis=1, bitorder="little")


def _unpack(packed: U8, bits: int, n: int) -> U8:
    """Rows of n codes."""
    if bits == 8:
        return packed
    if bits == 4 and n % 2 == 0:
        return np.stack([packed & 15, packed >> 4], axis=2).reshape(len(packed), n)
    flags = np.unpackbits(packed, axis=1, bitorder="little", count=n * bits).reshape(len(packed), n, bits)
    return np.packbits(flags, axis=2, bitorder="little")[:, :, 0]


@cache
def _fp8_values(codec: str) -> F32:
    """What the codes without their sign stand for, ascending, up to the largest finite one."""
    fraction_bits, bias, n_finite = (3, 7, 0x7F) if codec == "fp8_e4m3" else (2, 15, 0x7C)
    codes = np.arange(n_finite)
    exponent, fraction = codes >> fraction_bits, codes & ((1 << fraction_bits) - 1)
    significand = fraction / (1 << fraction_bits) + (exponent > 0)
    values: F32 = (significand * 2.0 ** (np.maximum(exponent, 1) - bias)).astype(np.float32)
    return values


@cache
def _fp8_edges(codec: str) -> F32:
    """Half-way between neighbouring values."""
    values = _fp8_values(codec)
    return ((values[1:] + values[:-1]) / 2).astype(np.float32)


def _to_fp8(values: F32, codec: str) -> U8:
    magnitude = np.searchsorted(_fp8_edges(codec), np.abs(values)).astype(np.uint8)
    return magnitude | (np.signbit(values).astype(np.uint8) << np.uint8(7))
