"""What the C++ core does with KV, in plain NumPy: parse, rotate, compose. Slow, and short."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F16 = 1  # ggml_type
MAGIC = 0xAF143CD8


@dataclass
class Blob:
    """A plain cache's state: rows by position, [n_tokens, elements] of f16 a layer."""

    positions: NDArray[np.int32]
    keys: list[NDArray[np.float16]]
    values: list[NDArray[np.float16]]
    sequence: int = 0


def write_section(blob: Blob, *, kind: int = F16, v_transposed: int = 0, extension: bool = False) -> bytes:
    """An attention section, its cells in the order given."""
    out = struct.pack("<II", 1, len(blob.positions))
    for position in blob.positions:
        out += struct.pack("<iI", position, 1)
        out += struct.pack("<iii", 0, position, -1) if extension else b""
        out += struct.pack("<i", blob.sequence)
    out += struct.pack("<II", v_transposed, len(blob.keys))
    for rows in [*blob.keys, *blob.values]:
        out += struct.pack("<iQ", kind, rows.itemsize * rows.shape[1]) + rows.tobytes()
    return out


def write_blob(blob: Blob) -> bytes:
    """As llama.cpp writes it, the cells in the order given."""
    return struct.pack("<Ii", MAGIC, blob.sequence) + write_section(blob)


def read_blob(data: bytes) -> Blob:
    """A plain f16 cache's state, sorted by position."""
    sequence, n_stream, n_cells = struct.unpack_from("<iII", data, 4)
    assert n_stream == 1
    cells = np.frombuffer(data, "<i4", 3 * n_cells, 16).reshape(n_cells, 3)
    order = np.argsort(cells[:, 0], kind="stable")
    at = 16 + 12 * n_cells
    v_transposed, n_layer = struct.unpack_from("<II", data, at)
    assert v_transposed == 0
    at += 8
    rows: list[NDArray[np.float16]] = []
    for _ in range(2 * n_layer):
        kind, row_bytes = struct.unpack_from("<iQ", data, at)
        assert kind == F16
        table = np.frombuffer(data, "<f2", n_cells * row_bytes // 2, at + 12).reshape(n_cells, -1)
        rows.append(table[order])
        at += 12 + n_cells * row_bytes
    assert at == len(data)
    return Blob(cells[order, 0].astype(np.int32), rows[:n_layer], rows[n_layer:], sequence)


@dataclass
class Rotation:
    """Rope in NumPy; frequencies [n_rot / 2]."""

    frequencies: NDArray[np.float64]
    head_dim: int
    neox: bool
    magnitude: float = 1.0

    def turn(
        self, keys: NDArray[np.float16], steps: NDArray[np.integer], length: float = 1.0
    ) -> NDArray[np.float16]:
        """Rows [n_tokens, n_heads * head_dim] turned by `steps` positions each, lengths times `length`."""
        n_pairs = len(self.frequencies)
        angles = steps.astype(np.float64)[:, None, None] * self.frequencies
        cos, sin = (length * np.cos(angles)).astype(np.float32), (length * np.sin(angles)).astype(np.float32)
        heads = keys.astype(np.float32).reshape(len(keys), -1, self.head_dim)
        first, second = (
            (slice(0, n_pairs), slice(n_pairs, 2 * n_pairs))
            if self.neox
            else (slice(0, 2 * n_pairs, 2), slice(1, 2 * n_pairs, 2))
        )
        a, b = heads[..., first].copy(), heads[..., second].copy()
        heads[..., first], heads[..., second] = a * cos - b * sin, b * cos + a * sin
        with np.errstate(over="ignore"):
            return heads.astype(np.float16).reshape(keys.shape)


def compose(
    parts: Sequence[tuple[Blob, int, int]],
    positions: NDArray[np.int32],
    rotation: Rotation,
    sequence: int = 0,
) -> bytes:
    """The rows (blob, first, n) in order, moved to `positions`."""
    old = np.concatenate([blob.positions[first : first + n] for blob, first, n in parts])
    n_layer = len(parts[0][0].keys)
    keys, values = (
        [
            np.concatenate([getattr(blob, name)[layer][first : first + n] for blob, first, n in parts])
            for layer in range(n_layer)
        ]
        for name in ("keys", "values")
    )
    return write_blob(
        Blob(positions, [rotation.turn(rows, positions - old) for rows in keys], values, sequence)
    )
