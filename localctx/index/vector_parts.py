"""Vectors of some blocks, and of their tokens in INT8, each as one file. Knows no texts and no models.

blocks: magic 8 · blocks u32 · dim u32 · tokens u32 · zeros 44
        numbers i32 [blocks] · zeros up to a multiple of 64 · rows f16 [blocks, dim]
tokens: magic 8 · blocks u32 · dim u32 · tokens u32 · zeros 44
        numbers i32 [blocks] · ends u32 [blocks] · scales f16 [tokens] · zeros up to a multiple of 64 ·
        codes i8 [tokens, dim]
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from localctx import _native

__all__ = ["BlocksPart", "TokensPart"]

HEADER = struct.Struct("<8sIII44x")
BLOCKS_MAGIC, TOKENS_MAGIC = b"LCTXVEC2", b"LCTXTOK1"
ALIGNMENT = 64
MOST_CODE = 127
WINDOW_TOKENS = 20
"""About a sentence: a question is compared with so many tokens at a time. Measured (docs/eval.md): what one
sentence says in other words is first among a thousand passages of made prose for .71 of questions, where the
question's words may be met all over a passage for .52; of real prose it is first as often as before.
"""


@dataclass(frozen=True, slots=True)
class BlocksPart:
    """numbers: i32 [n], of the blocks · rows: f16 [n, dim], of length 1 · n_tokens: kept beside them."""

    numbers: NDArray[np.int32]
    rows: NDArray[np.float16]
    n_tokens: int = 0

    def packed(self) -> bytes:
        """As in the file."""
        head = HEADER.pack(BLOCKS_MAGIC, *self.rows.shape, self.n_tokens) + self.numbers.tobytes()
        return _padded(head) + self.rows.tobytes()

    @classmethod
    def unpacked(cls, data: mmap.mmap, n_blocks: int, n_dim: int) -> Self | None:
        """What packed() made, mapped; None for anything else, or for other blocks."""
        found = _counts(data, BLOCKS_MAGIC, n_dim)
        if found is None:
            return None
        n, n_tokens = found
        start = _aligned(HEADER.size + 4 * n)
        if len(data) < start + 2 * n * n_dim:
            return None
        numbers = np.frombuffer(data, np.int32, n, HEADER.size)
        if n and not (numbers.min() >= 0 and numbers.max() < n_blocks):
            return None
        rows = np.frombuffer(data, np.float16, n * n_dim, start).reshape(n, n_dim)
        return cls(numbers, rows, n_tokens)

    def joined(self, other: BlocksPart) -> BlocksPart:
        """Both in one."""
        return BlocksPart(
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.rows, other.rows]),
            self.n_tokens + other.n_tokens,
        )


@dataclass(frozen=True, slots=True)
class TokensPart:
    """The tokens of blocks in INT8: numbers i32 [n] · ends u32 [n], behind each block's last token · scales
    f16 [n_tokens] · codes i8 [n_tokens, dim].
    """

    numbers: NDArray[np.int32]
    ends: NDArray[np.uint32]
    scales: NDArray[np.float16]
    codes: NDArray[np.int8]

    @classmethod
    def of(cls, tokens: Mapping[int, NDArray[np.float32]]) -> Self:
        """Of at least one block, each with the vectors of its tokens [m, dim]."""
        rows = np.concatenate(list(tokens.values()))
        scales = (np.abs(rows).max(axis=1, initial=0.0) / MOST_CODE).astype(np.float16)
        steps = np.maximum(scales.astype(np.float32), np.finfo(np.float16).tiny)[:, None]
        codes = np.clip(np.rint(rows / steps), -MOST_CODE, MOST_CODE).astype(np.int8)
        ends = np.cumsum([len(one) for one in tokens.values()]).astype(np.uint32)
        return cls(np.array(list(tokens), np.int32), ends, scales, codes)

    def tokens(self, number: int) -> NDArray[np.float32] | None:
        """The vectors of a block's tokens, [m, dim]; None where it is not among these blocks."""
        places = np.flatnonzero(self.numbers == number)
        if not len(places):
            return None
        place = int(places[-1])
        span = slice(int(self.ends[place - 1]) if place else 0, int(self.ends[place]))
        return self.codes[span].astype(np.float32) * self.scales[span].astype(np.float32)[:, None]

    def max_sims(self, queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """How like the queries [n, dim] the likeliest window of each block is, [n]: the mean, over queries,
        of the best product with one of its tokens. Windows overlap by half; 0 for a block without tokens.
        """
        found = np.zeros(len(self.ends), np.float32)
        if not len(queries) or not len(self.scales):
            return found
        starts, blocks = self._half_windows()
        scales = self.scales.astype(np.float32)[:, None]
        best = _native.scan(self.codes[:, None, :], scales, queries[:, None, :], starts)[:, 0]
        goes_on = blocks[1:] == blocks[:-1]
        best[:, :-1] = np.where(goes_on, np.maximum(best[:, :-1], best[:, 1:]), best[:, :-1])
        first = np.flatnonzero(np.concatenate([[True], ~goes_on]))
        found[blocks[first]] = np.maximum.reduceat(best.mean(axis=0), first)
        return found

    def _half_windows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the half windows of all blocks begin, the last one ends, [m + 1]; each one's block, [m]."""
        half, ends = WINDOW_TOKENS // 2, self.ends.astype(np.int64)
        begins = np.concatenate([[0], ends[:-1]])
        counts = -(-(ends - begins) // half)
        blocks = np.repeat(np.arange(len(ends)), counts)
        places = np.arange(len(blocks)) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.append(begins[blocks] + half * places, ends[-1]), blocks

    def packed(self) -> bytes:
        """As in the file."""
        n_tokens, n_dim = self.codes.shape
        head = HEADER.pack(TOKENS_MAGIC, len(self.numbers), n_dim, n_tokens)
        head += self.numbers.tobytes() + self.ends.tobytes() + self.scales.tobytes()
        return _padded(head) + self.codes.tobytes()

    @classmethod
    def unpacked(cls, data: mmap.mmap, n_dim: int) -> Self | None:
        """What packed() made, mapped; None for anything else."""
        found = _counts(data, TOKENS_MAGIC, n_dim)
        if found is None:
            return None
        n, n_tokens = found
        start = _aligned(HEADER.size + 8 * n + 2 * n_tokens)
        if len(data) < start + n_tokens * n_dim:
            return None
        ends = np.frombuffer(data, np.uint32, n, HEADER.size + 4 * n)
        if n and int(ends.max()) > n_tokens:
            return None
        return cls(
            np.frombuffer(data, np.int32, n, HEADER.size),
            ends,
            np.frombuffer(data, np.float16, n_tokens, HEADER.size + 8 * n),
            np.frombuffer(data, np.int8, n_tokens * n_dim, start).reshape(n_tokens, n_dim),
        )

    def first(self, n: int) -> TokensPart:
        """Those of the first n blocks."""
        n_tokens = int(self.ends[:n].max(initial=0))
        return TokensPart(self.numbers[:n], self.ends[:n], self.scales[:n_tokens], self.codes[:n_tokens])

    def joined(self, other: TokensPart) -> TokensPart:
        """Both in one."""
        return TokensPart(
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.ends, other.ends + np.uint32(len(self.scales))]),
            np.concatenate([self.scales, other.scales]),
            np.concatenate([self.codes, other.codes]),
        )


def _counts(data: mmap.mmap, magic: bytes, n_dim: int) -> tuple[int, int] | None:
    """(blocks, tokens) of a file's header; None unless it is of that kind and dimension."""
    if len(data) < HEADER.size:
        return None
    found, n, dim, n_tokens = HEADER.unpack_from(data)
    return (n, n_tokens) if (found, dim) == (magic, n_dim) else None


def _aligned(at: int) -> int:
    return at + -at % ALIGNMENT


def _padded(head: bytes) -> bytes:
    return head + bytes(_aligned(len(head)) - len(head))
