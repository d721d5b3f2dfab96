"""All keys of a long text in INT8, in two files as long as they are needed, and what queries find in them.

Read in pieces, by several threads: memory does not grow with the text. Keys are un-rotated: no positions.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from localctx import _native
from localctx.byte_sizes import format_bytes
from localctx.engine.limits import usable_cpus
from localctx.errors import UsageError
from localctx.eval.kv_mass import Asked, Floats, Mass
from localctx.index.landmarks import HeadSet
from localctx.kv import RUN_TOKENS, KVChunk

__all__ = ["KeyColumn"]

PIECE_BYTES = 16 << 20
"""Of the products of one piece of keys with all queries."""
MAX_THREADS = 16
Members = NDArray[np.bool_]
"""[n_sets, n_runs]: which runs are of which set."""


@dataclass(slots=True)
class KeyColumn:
    """The keys of tokens 0, 1 … of all KV heads; they grow by append(). `folder`: where the files lie."""

    heads: HeadSet
    head_dim: int
    folder: Path
    n_tokens: int = 0

    @property
    def bytes_per_token(self) -> int:
        """What a token takes in the files."""
        return self.heads.bytes_per_token(self.head_dim)

    def check_room(self, n_tokens: int) -> None:
        """Raises UsageError where the keys of n_tokens do not fit the folder's disk."""
        free, needed = shutil.disk_usage(self.folder).free, n_tokens * self.bytes_per_token
        if needed > free:
            raise UsageError(
                f"the keys of {n_tokens:,} tokens take {format_bytes(needed)}, "
                f"{self.folder} has {format_bytes(free)} free",
                "--store DIR names a folder on another disk",
            )

    def append(self, chunk: KVChunk) -> None:
        """The chunk's keys behind those that are there. Raises UsageError where there is no room."""
        codes, scales = _native.scan_encode(chunk.state, 0, chunk.n_tokens, chunk.rope, self.heads.pairs)
        try:
            for name, values in (("codes", codes), ("scales", scales)):
                with (self.folder / name).open("ab") as file:
                    values.tofile(file)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(
                f"no room in {self.folder} for the keys of {self.n_tokens:,} tokens: {reason}",
                "--store DIR names a folder on another disk",
            ) from None
        self.n_tokens += chunk.n_tokens

    def keys(self, first: int, end: int) -> Iterator[NDArray[np.float16]]:
        """The keys of tokens [first, end), layer by layer, [n_tokens, KV heads * head_dim]."""
        codes, scales = self._read(first, end)
        layers = np.array([layer for layer, _ in self.heads.pairs])
        for layer in dict.fromkeys(layers.tolist()):
            here = layers == layer
            keys = codes[:, here].astype(np.float32) * scales[:, here, None]
            yield keys.reshape(end - first, -1).astype(np.float16)

    def add_to(self, mass: Mass, asked: Asked, queries: Floats, end: int, members: Members) -> None:
        """Queries [n_queries, n_heads, head_dim], turned as far as they see, over tokens [0, end)."""
        placed = self.heads.by_pair(queries)
        n_piece = PIECE_BYTES // 4 // (queries.shape[0] * queries.shape[1]) // RUN_TOKENS * RUN_TOKENS
        n_piece = max(RUN_TOKENS, n_piece)
        every = slice(0, queries.shape[1])

        def piece(first: int) -> Mass:
            last = min(first + n_piece, end)
            codes, scales = self._read(first, last)
            starts = np.arange(last - first + 1, dtype=np.int64)
            scores = self.heads.per_head(_native.scan(codes, scales, placed, starts, n_threads=1))
            scores *= np.float32(asked.scale)
            part = mass.empty()
            runs = np.arange(first, last) // RUN_TOKENS
            part.add(scores, every, members[:, runs])
            return part

        with ThreadPoolExecutor(min(MAX_THREADS, usable_cpus())) as threads:
            for part in _in_order(threads, piece, range(0, end, n_piece)):
                mass.merge(part)

    def _read(self, first: int, end: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        n_pairs, n = len(self.heads.pairs), end - first
        n_codes = n_pairs * self.head_dim
        codes = np.fromfile(self.folder / "codes", np.int8, n * n_codes, offset=first * n_codes)
        scales = np.fromfile(self.folder / "scales", np.float32, n * n_pairs, offset=4 * first * n_pairs)
        return codes.reshape(n, n_pairs, self.head_dim), scales.reshape(n, n_pairs)


def _in_order(threads: ThreadPoolExecutor, piece: Callable[[int], Mass], starts: range) -> Iterator[Mass]:
    """What the pieces give, in order, as many at a time as there are threads."""
    for first in range(0, len(starts), MAX_THREADS):
        yield from threads.map(piece, starts[first : first + MAX_THREADS])
