"""Blocks' vectors, one f16 row each, kept in a derived file and memory-mapped. Knows no texts, no embedder.

Rows may be missing: a document that was never indexed gets them question by question.

    header: magic 8 · blocks u32 · dim u32 · zeros 48
    data:   is there u8 [blocks] · zeros up to a multiple of 64 · rows f16 [blocks, dim]
    behind: the checksum of store/derived.py
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from localctx.private_files import open_regular
from localctx.store.derived import DerivedFiles

__all__ = ["BlockVectors"]

HEADER = struct.Struct("<8sII48x")
MAGIC = b"LCTXVEC1"
ALIGNMENT = 64
SCAN_ROWS = 8192
"""Rows that are widened to f32 at a time: 12 MB of 384 numbers."""


@dataclass(frozen=True, slots=True)
class BlockVectors:
    """is_there: bool [n_blocks] · rows: f16 [n_blocks, dim], of length 1 where there, else anything."""

    is_there: NDArray[np.bool_]
    rows: NDArray[np.float16]

    @classmethod
    def none(cls, n_blocks: int, n_dim: int) -> Self:
        """Of no block yet."""
        return cls(np.zeros(n_blocks, np.bool_), np.zeros((n_blocks, n_dim), np.float16))

    @classmethod
    def load(cls, files: DerivedFiles, text_hash: str, key: str, shape: tuple[int, int]) -> Self | None:
        """What save() kept, mapped; None where there is none of that shape, or it was damaged."""
        path = files.find(text_hash, key)
        return None if path is None else cls._mapped(path, shape)

    @classmethod
    def _mapped(cls, path: Path, shape: tuple[int, int]) -> Self | None:
        try:
            with open_regular(path) as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # removed meanwhile
            return None
        start = _start(shape[0])
        if len(data) < start + 2 * shape[0] * shape[1] or HEADER.unpack_from(data) != (MAGIC, *shape):
            return None
        is_there = np.frombuffer(data, np.uint8, shape[0], HEADER.size) == 1
        return cls(is_there, np.frombuffer(data, np.float16, shape[0] * shape[1], start).reshape(shape))

    def save(self, files: DerivedFiles, text_hash: str, key: str) -> None:
        """Keep them; one of that key is replaced. Raises StoreUnusable, TooLarge."""
        n_blocks, n_dim = self.rows.shape
        head = HEADER.pack(MAGIC, n_blocks, n_dim) + self.is_there.astype(np.uint8).tobytes()
        head += bytes(_start(n_blocks) - len(head))

        def fill(path: Path) -> None:
            with path.open("wb") as file:
                file.write(head)
                file.write(np.ascontiguousarray(self.rows).data)

        files.write(text_hash, key, fill, least_bytes=len(head) + self.rows.nbytes)

    def with_rows(self, rows: Mapping[int, NDArray[np.float32]]) -> Self:
        """The same with more rows, in memory."""
        is_there, all_rows = self.is_there.copy(), self.rows.copy()
        for number, row in rows.items():
            is_there[number], all_rows[number] = True, row
        return type(self)(is_there, all_rows)

    def similarities(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """The cosine of each block with the query, a vector of length 1: [n_blocks], NaN where missing."""
        found = np.full(len(self.rows), np.nan, np.float32)
        for start, end in self._parts():
            found[start:end] = self.rows[start:end].astype(np.float32) @ query
        found[~self.is_there] = np.nan
        return found

    def _parts(self) -> Iterator[tuple[int, int]]:
        for start in range(0, len(self.rows), SCAN_ROWS):
            yield start, min(start + SCAN_ROWS, len(self.rows))


def _start(n_blocks: int) -> int:
    """Where the rows begin."""
    end = HEADER.size + n_blocks
    return end + -end % ALIGNMENT
