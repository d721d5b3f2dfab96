"""The KV codec in plain NumPy, written from the format alone: encodes to the same bytes, decodes any run."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field

import numpy as np
from native.twin import Blob, Rotation
from numpy.typing import NDArray

CODECS = ("f16", "fp8_e4m3", "fp8_e5m2", "int8", "int4", "int3", "int2")
BITS = dict(zip(CODECS, (16, 8, 8, 8, 4, 3, 2), strict=True))
BLOCK = 128
MAX_HALF = np.float32(65504)

F32 = NDArray[np.float32]


def fp8_values(codec: str) -> F32:
    """What codes 0 to 0x7F stand for; beyond the largest: NaN."""
    fraction_bits, bias, n_finite = (3, 7, 0x7F) if codec == "fp8_e4m3" else (2, 15, 0x7C)
    values = np.full(128, np.nan, np.float32)
    for code in range(n_finite):
        exponent, fraction = code >> fraction_bits, code & ((1 << fraction_bits) - 1)
        significand = fraction / (1 << fraction_bits) + (1 if exponent else 0)
        values[code] = significand * 2.0 ** (max(exponent, 1) - bias)
    return values


def to_fp8(values: F32, codec: str) -> NDArray[np.uint8]:
    """The code of the nearest value, of two equally near the even one; the largest beyond it, and for NaN."""
    table = fp8_values(codec)
    table = table[~np.isnan(table)].astype(np.float64)
    magnitude = np.where(
        np.isnan(values), table[-1], np.minimum(np.abs(values.astype(np.float64)), table[-1])
    )
    above = np.clip(np.searchsorted(table, magnitude), 1, len(table) - 1)
    middle = (table[above - 1] + table[above]) / 2
    code = np.where((magnitude > middle) | ((magnitude == middle) & (above % 2 == 0)), above, above - 1)
    return (code | (np.signbit(values) << 7)).astype(np.uint8)


def from_fp8(codes: NDArray[np.uint8], codec: str) -> F32:
    values = fp8_values(codec)[codes & 0x7F]
    return np.where(codes & 0x80, -values, values)


def unrotated(keys: NDArray[np.float16], positions: NDArray[np.int32], rotation: Rotation) -> F32:
    """Keys turned back, in f32; angles by the C library, as the core has them."""
    n_pairs = len(rotation.frequencies)
    angles = [-int(position) * float(f) for position in positions for f in rotation.frequencies]
    shape, length = (len(keys), 1, n_pairs), 1.0 / rotation.magnitude
    cos = np.array([length * math.cos(angle) for angle in angles], np.float32).reshape(shape)
    sin = np.array([length * math.sin(angle) for angle in angles], np.float32).reshape(shape)
    heads = keys.astype(np.float32).reshape(len(keys), -1, rotation.head_dim)
    rest = slice(2 * n_pairs, None)
    first, second = (
        (slice(0, n_pairs), slice(n_pairs, 2 * n_pairs))
        if rotation.neox
        else (slice(0, 2 * n_pairs, 2), slice(1, 2 * n_pairs, 2))
    )
    out = np.empty_like(heads)
    with np.errstate(invalid="ignore", over="ignore"):
        out[..., first] = heads[..., first] * cos - heads[..., second] * sin
        out[..., second] = heads[..., second] * cos + heads[..., first] * sin
    out[..., rest] = heads[..., rest]
    return out.reshape(keys.shape)


@dataclass
class Section:
    """Keys or values of one layer: [n_tokens, n_elements], heads of `width`."""

    codec: str
    is_key: bool
    n_tokens: int
    n_elements: int
    width: int
    head_group: int
    outliers: dict[int, np.float16] = field(default_factory=dict)

    @property
    def scale_of(self) -> NDArray[np.intp]:
        """The scale of each element."""
        element = np.arange(self.n_elements)
        group = element // self.width // self.head_group
        return group * self.width + element % self.width if self.is_key else group

    @property
    def n_scales(self) -> int:
        return int(self.scale_of[-1]) + 1 if self.n_elements else 0

    @property
    def block_tokens(self) -> int:
        return BLOCK if self.is_key else 1

    @property
    def n_blocks(self) -> int:
        return -(-self.n_tokens // self.block_tokens)

    @property
    def block_of(self) -> NDArray[np.intp]:
        """The block of each row."""
        return np.arange(self.n_tokens) // self.block_tokens

    @property
    def row_size(self) -> int:
        return -(-self.n_elements // 8) * BITS[self.codec]

    @property
    def codes_offset(self) -> int:
        return 0 if self.codec == "f16" else -(-self.n_blocks * self.n_scales * 4 // 64) * 64


def half_below(values: F32) -> NDArray[np.float16]:
    half = values.astype(np.float16)
    with np.errstate(over="ignore"):  # of the ends of f16, which are not used
        below = np.nextafter(half, np.float16(-np.inf))
    return np.where(half.astype(np.float32) <= values, half, below)


def parameters(section: Section, values: F32) -> tuple[F32, F32]:
    """Scales and zeros [n_blocks, n_scales], NaN left out."""
    shape = (section.n_blocks, section.n_scales)
    low, high = np.full(shape, np.inf, np.float32), np.full(shape, -np.inf, np.float32)
    place = (section.block_of[:, None], section.scale_of[None, :])
    np.fmin.at(low, place, values)
    np.fmax.at(high, place, values)
    none = low > high
    low[none] = high[none] = 0
    if is_fp8(section.codec):
        largest = np.maximum(-low, high)
        return np.where(largest > 2.0**-60, largest / fp8_largest(section.codec), np.float32(0)), low
    zeros = half_below(low).astype(np.float32)
    steps = (high - zeros) / np.float32((1 << BITS[section.codec]) - 1)
    return -half_below(-steps).astype(np.float32), zeros


def is_fp8(codec: str) -> bool:
    return codec.startswith("fp8")


def fp8_largest(codec: str) -> np.float32:
    return np.float32(np.nanmax(fp8_values(codec)))


def pack(codes: NDArray[np.uint8], bits: int) -> bytes:
    """Rows of codes: eight elements to `bits` bytes, the first in the lowest bits."""
    n_tokens, n = codes.shape
    padded = np.zeros((n_tokens, -(-n // 8) * 8, 1), np.uint8)
    padded[:, :n, 0] = codes
    flags = np.unpackbits(padded, axis=2, bitorder="little")[:, :, :bits]
    return np.packbits(flags.reshape(-1), bitorder="little").tobytes()


def unpack(packed: NDArray[np.uint8], bits: int, n: int) -> NDArray[np.uint8]:
    """Rows of `n` codes from rows of bytes."""
    flags = np.unpackbits(packed, axis=1, bitorder="little")
    flags = flags.reshape(len(packed), -1, bits)[:, :n]
    return np.packbits(flags, axis=2, bitorder="little")[:, :, 0]


def halves(values: F32) -> NDArray[np.float16]:
    with np.errstate(over="ignore"):
        return np.where(np.isfinite(values), np.clip(values, -MAX_HALF, MAX_HALF), values).astype(np.float16)


def dequantised(section: Section, codes: NDArray[np.uint8], scale: F32, zero: F32) -> F32:
    if is_fp8(section.codec):
        return from_fp8(codes, section.codec) * scale
    return codes.astype(np.float32) * scale + zero


def encode_section(section: Section, values: F32, error_bound: float) -> tuple[bytes, float]:
    """The section's bytes and the largest error; fills section.outliers."""
    if section.codec == "f16":
        kept = halves(values)
        rows = np.zeros((section.n_tokens, section.row_size // 2), np.float16)
        rows[:, : section.n_elements] = kept
        return aligned(rows.tobytes()), largest(values, kept)
    strange = ~(np.abs(values) <= MAX_HALF)
    quiet = np.where(strange, np.float32(np.nan), values)
    scales, zeros = parameters(section, quiet)
    scale, zero = (table[section.block_of][:, section.scale_of] for table in (scales, zeros))
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale > 0)
    if is_fp8(section.codec):
        blocks = scales.tobytes()
        codes = to_fp8(quiet * inverse, section.codec)
    else:
        blocks = np.stack([scales, zeros], axis=1).astype(np.float16).tobytes()
        level = np.nan_to_num((quiet - zero) * inverse, nan=0.0)
        codes = np.rint(np.clip(level, 0, (1 << BITS[section.codec]) - 1)).astype(np.uint8)
    decoded = dequantised(section, codes, scale, zero)
    packed = pack(codes, BITS[section.codec])
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(quiet - decoded.astype(np.float16).astype(np.float32))
    bound = min(np.float32(error_bound), np.finfo(np.float32).max)
    kept_apart = strange | (error > bound)
    section.outliers = {int(i): halves(values.ravel()[i : i + 1])[0] for i in np.flatnonzero(kept_apart)}
    worst = largest(values[kept_apart], halves(values[kept_apart]))
    worst = max(worst, float(error[~kept_apart].max(initial=0)))
    index = np.array(list(section.outliers), np.uint32).tobytes()
    values_kept = np.array(list(section.outliers.values()), np.float16).tobytes()
    return aligned(aligned(blocks) + packed + index + values_kept), worst


def aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % 64)


def largest(values: F32, kept: NDArray[np.float16]) -> float:
    with np.errstate(invalid="ignore"):
        error = np.abs(values - kept.astype(np.float32))
    return float(np.nanmax(np.append(error, np.float32(0))))


def encode(
    blob: Blob, rotation: Rotation, codec: str, head_group: int = 1, error_bound: float = math.inf
) -> bytes:
    """All rows of `blob` as a run."""
    n_tokens, n_layer = len(blob.positions), len(blob.keys)
    table, sections, n_outliers = b"", b"", 0
    worst = [0.0, 0.0]
    start = 64 + -(-40 * n_layer // 64) * 64
    for keys, values in zip(blob.keys, blob.values, strict=True):
        n_heads = keys.shape[1] // rotation.head_dim
        table += struct.pack("<II", keys.shape[1], values.shape[1])
        rows = (unrotated(keys, blob.positions, rotation), values.astype(np.float32))
        for is_key, x in zip((True, False), rows, strict=True):
            n = x.shape[1]
            section = Section(codec, is_key, n_tokens, n, n // n_heads, head_group)
            data, error = encode_section(section, x, error_bound)
            in_f16 = Section("f16", is_key, n_tokens, n, n // n_heads, head_group)
            if section.outliers and len(data) >= -(-n_tokens * in_f16.row_size // 64) * 64:
                section = in_f16
                data, error = encode_section(section, x, error_bound)
                n_outliers += x.size
            n_outliers += len(section.outliers)
            table += struct.pack(
                "<QII", start + len(sections), len(section.outliers), CODECS.index(section.codec)
            )
            sections += data
            worst[not is_key] = max(worst[not is_key], error)
    size = start + len(sections)
    header = struct.pack(
        "<4sHBxIIII", b"LCKV", 1, CODECS.index(codec), n_tokens, n_layer, rotation.head_dim, head_group
    )
    header += struct.pack("<ffQQ16x", *worst, n_outliers, size)
    return header + aligned(table) + sections


def decode(data: bytes) -> tuple[list[F32], list[F32]]:
    """Un-rotated keys and values of each layer, in f32 before they are rounded to f16."""
    _, _, _, n_tokens, n_layer, head_dim, head_group = struct.unpack_from("<4sHBxIIII", data)
    out: tuple[list[F32], list[F32]] = ([], [])
    for layer in range(n_layer):
        sizes = struct.unpack_from("<II", data, 64 + 40 * layer)
        for is_key, n in zip((True, False), sizes, strict=True):
            offset, n_outliers, number = struct.unpack_from(
                "<QII", data, 64 + 40 * layer + (8 if is_key else 24)
            )
            width = n // (sizes[0] // head_dim)
            section = Section(CODECS[number], is_key, n_tokens, n, width, head_group)
            out[not is_key].append(decode_section(section, data[offset:], n_outliers))
    return out


def decode_section(section: Section, data: bytes, n_outliers: int) -> F32:
    n, bits, at = section.n_elements, BITS[section.codec], section.codes_offset
    if section.codec == "f16":
        rows = np.frombuffer(data, np.float16, section.n_tokens * section.row_size // 2)
        return rows.reshape(section.n_tokens, -1)[:, :n].astype(np.float32)
    if is_fp8(section.codec):
        scales = zeros = np.frombuffer(data, np.float32, section.n_blocks * section.n_scales)
    else:
        halves_read = np.frombuffer(data, np.float16, 2 * section.n_blocks * section.n_scales)
        scales, zeros = halves_read.astype(np.float32).reshape(section.n_blocks, 2, -1).swapaxes(0, 1)
    scale, zero = (
        table.reshape(section.n_blocks, -1)[section.block_of][:, section.scale_of]
        for table in (scales, zeros)
    )
    packed = np.frombuffer(data, np.uint8, section.n_tokens * section.row_size, at)
    codes = unpack(packed.reshape(section.n_tokens, -1), bits, n)
    values = dequantised(section, codes, scale, zero)
    at += packed.size
    index = np.frombuffer(data, np.uint32, n_outliers, at)
    values.reshape(-1)[index] = np.frombuffer(data, np.float16, n_outliers, at + 4 * n_outliers)
    return values
