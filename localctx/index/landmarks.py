"""Stored runs → columns of INT8 keys of a few heads, kept beside them → the best match of queries in each
block.

A column is a derived file: built from stored keys when first asked for, mapped when it is there, built
again when it is damaged. Does not know where queries come from, nor how matches are used.

    header: magic 8 · tokens u32 · heads u32 · head_dim u32 · zeros 44
    data:   scales f32 [tokens, heads] · zeros up to a multiple of 64 · codes i8 [tokens, heads, head_dim]
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from localctx import _native
from localctx.store import KVStore, StoreUnusable

__all__ = ["ARTIFACT_KIND", "HeadSet", "LandmarkStream", "best_of_blocks"]

ARTIFACT_KIND = "landmarks"
MAX_HEADS = 64
GROUP_RUNS = 128
"""Runs of one column: 16,384 tokens."""
FILE_BYTES = 64 << 20
"""Columns are written together until they take this much."""
HEADER = struct.Struct("<8sIII44x")
MAGIC = b"LCTXLMK1"

Column: TypeAlias = tuple[NDArray[np.int8], NDArray[np.float32]]
Runs: TypeAlias = "Sequence[tuple[bytes, int]]"
"""(run id, tokens) of consecutive runs."""


@dataclass(frozen=True, slots=True)
class HeadSet:
    """A model's retrieval heads: (layer, query head), and the KV head that each of them reads."""

    heads: tuple[tuple[int, int], ...]
    kv_heads: tuple[int, ...]

    @classmethod
    def of(cls, heads: Sequence[Sequence[int]], of_layers: Sequence[tuple[int, int]]) -> Self | None:
        """`heads` of a model whose layers have (query heads, KV heads); None for what is no set of such."""
        pairs = [tuple(head) for head in heads]
        if not 0 < len(pairs) <= MAX_HEADS or len(set(pairs)) < len(pairs):
            return None
        kv_heads = []
        for pair in pairs:
            if len(pair) != 2 or not all(type(part) is int and part >= 0 for part in pair):
                return None
            layer, head = pair
            n_query, n_kv = of_layers[layer] if layer < len(of_layers) else (0, 0)
            if head >= n_query or n_kv <= 0 or n_query % n_kv:
                return None
            kv_heads.append(head // (n_query // n_kv))
        return cls(tuple((layer, head) for layer, head in pairs), tuple(kv_heads))

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The (layer, KV head) pairs of the column, in its order."""
        layers = (layer for layer, _ in self.heads)
        return tuple(dict.fromkeys(zip(layers, self.kv_heads, strict=True)))

    def within(self, layers: int | tuple[tuple[int, int], ...]) -> HeadSet | None:
        """Those in the first so many layers that the heads, best first, stand in, or in inclusive ranges of
        layers; None when there are none.
        """
        if isinstance(layers, int):
            allowed = set(list(dict.fromkeys(layer for layer, _ in self.heads))[:layers])
        else:
            allowed = {layer for first, last in layers for layer in range(first, last + 1)}
        kept = [n for n, (layer, _) in enumerate(self.heads) if layer in allowed]
        if not kept:
            return None
        return HeadSet(tuple(self.heads[n] for n in kept), tuple(self.kv_heads[n] for n in kept))

    @property
    def name(self) -> str:
        """What tells columns of other pairs apart: 16 hexadecimal digits."""
        return blake2b(repr(self.pairs).encode(), digest_size=8).hexdigest()

    def bytes_per_token(self, head_dim: int) -> int:
        """What the column takes."""
        return len(self.pairs) * (head_dim + 4)

    def by_pair(self, queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """Queries [n_queries, n_heads, head_dim] in the order of pairs, [n_layers * n_queries, n_pairs,
        head_dim]: query heads that share a pair lie in layers of their own, zeros where none is.
        """
        places = self._places()
        n_layers = 1 + max(layer for layer, _ in places)
        placed = np.zeros((n_layers, len(queries), len(self.pairs), queries.shape[2]), np.float32)
        for head, (layer, pair) in enumerate(places):
            placed[layer, :, pair] = queries[:, head]
        return placed.reshape(-1, *placed.shape[2:])

    def per_head(self, best: NDArray[np.float32]) -> NDArray[np.float32]:
        """What a scan found for by_pair(), [n_layers * n_queries, n_pairs, n_blocks], as [n_queries, n_heads,
        n_blocks].
        """
        places = self._places()
        by_layer = best.reshape(1 + max(layer for layer, _ in places), -1, *best.shape[1:])
        return np.stack([by_layer[layer, :, pair] for layer, pair in places], axis=1)

    def _places(self) -> list[tuple[int, int]]:
        """(layer, pair) of each head."""
        pairs, n_seen = {pair: number for number, pair in enumerate(self.pairs)}, dict.fromkeys(self.pairs, 0)
        places = []
        for (layer, _), kv_head in zip(self.heads, self.kv_heads, strict=True):
            pair = (layer, kv_head)
            places.append((n_seen[pair], pairs[pair]))
            n_seen[pair] += 1
        return places


@dataclass(frozen=True, slots=True)
class LandmarkStream:
    """A document's runs in order, the codec in which they are read (None: any), and its key in the store."""

    runs: Runs
    codec: str | None = None
    document: str | None = None


def best_of_blocks(
    store: KVStore,
    stream: LandmarkStream,
    heads: HeadSet,
    queries: NDArray[np.float32],
    block_starts: NDArray[np.int64],
) -> NDArray[np.float32] | None:
    """The largest query · key over each block's tokens [block_starts[b], block_starts[b + 1]) of the
    stream, for queries [n_queries, n_heads, head_dim]: [n_queries, n_heads, n_blocks], minus infinity for
    empty blocks.

    Columns that are missing are built and kept, as far as the store takes them. None when a run is missing or
    damaged. Raises ValueError for heads that the runs do not have, StoreUnusable when the store fails.
    """
    placed = heads.by_pair(queries)
    best = np.full((*placed.shape[:2], len(block_starts) - 1), -np.inf, np.float32)
    groups = list(_groups(stream.runs))
    keys = [_key(heads, runs, stream.codec) for _, runs in groups]
    keeper = _Keeper(store, stream.document)
    with store.reading_artifacts(ARTIFACT_KIND, keys) as found:
        for key, (first, runs) in zip(keys, groups, strict=True):
            shape = (sum(n for _, n in runs), len(heads.pairs), queries.shape[2])
            column = _unpacked(found[key], shape) if key in found else None
            if column is None:
                column = _built(store, runs, stream.codec, heads, shape)
                if column is None:
                    return None
                keeper.add(key, column)
            _take(best, column, placed, block_starts - first)
            del column  # it may look into the map
        keeper.finish()
    return heads.per_head(best)


def _take(
    best: NDArray[np.float32],
    column: Column,
    queries: NDArray[np.float32],
    starts: NDArray[np.int64],
) -> None:
    """Raise `best` by what the column holds; `starts` count from the column's first token."""
    codes, scales = column
    here = np.flatnonzero((starts[1:] > 0) & (starts[:-1] < len(codes)))
    if not len(here):
        return
    first, end = int(here[0]), int(here[-1]) + 1
    inside = np.clip(starts[first : end + 1], 0, len(codes))
    np.maximum(best[:, :, first:end], _native.scan(codes, scales, queries, inside), out=best[:, :, first:end])


def _groups(runs: Runs) -> Iterator[tuple[int, Runs]]:
    """(first token, runs) of each column."""
    first = 0
    for start in range(0, len(runs), GROUP_RUNS):
        group = runs[start : start + GROUP_RUNS]
        yield first, group
        first += sum(n for _, n in group)


def _key(heads: HeadSet, runs: Runs, codec: str | None) -> str:
    """Runs have the ids of what they hold, so the column of all of them is named by those, and by the codec
    where they were read in one.
    """
    name = blake2b(b"".join(run_id for run_id, _ in runs), digest_size=16).hexdigest()
    return f"{name}/{heads.name}" + (f"/{codec}" if codec is not None else "")


def _built(
    store: KVStore, runs: Runs, codec: str | None, heads: HeadSet, shape: tuple[int, int, int]
) -> Column | None:
    """The column from the runs' keys; None when one is missing."""
    codes, scales = np.empty(shape, np.int8), np.empty(shape[:2], np.float32)
    unturned = _native.Rope(np.empty(0, np.float64), shape[2], neox=False)  # runs are un-rotated already
    at = 0
    with store.reading([run_id for run_id, _ in runs], codec) as views:
        for run_id, n_tokens in runs:
            if run_id not in views:
                return None
            run = _native.Run(views[run_id])
            if run.n_tokens != n_tokens:
                return None
            part = _native.scan_encode(run, 0, n_tokens, unturned, heads.pairs)
            codes[at : at + n_tokens], scales[at : at + n_tokens] = part
            at += n_tokens
            del run
    return codes, scales


def _packed(column: Column) -> bytes:
    codes, scales = column
    data = HEADER.pack(MAGIC, *codes.shape) + scales.tobytes()
    return data + bytes(-len(data) % 64) + codes.tobytes()


def _unpacked(data: memoryview, shape: tuple[int, int, int]) -> Column | None:
    """Views of the column's parts; None unless it is one of that shape."""
    n_scales = shape[0] * shape[1]
    start = HEADER.size + 4 * n_scales
    start += -start % 64
    if len(data) != start + n_scales * shape[2] or HEADER.unpack_from(data) != (MAGIC, *shape):
        return None
    scales = np.frombuffer(data, np.float32, n_scales, HEADER.size).reshape(shape[:2])
    codes = np.frombuffer(data, np.int8, offset=start).reshape(shape)
    return codes, scales


class _Keeper:
    """Writes columns, some at a time; after a failure none: they can be built again."""

    def __init__(self, store: KVStore, document: str | None) -> None:
        self._store = store
        self._document = document
        self._waiting: dict[str, bytes] = {}
        self._has_failed = store.is_read_only

    def add(self, key: str, column: Column) -> None:
        """Keep a column, sooner or later."""
        if not self._has_failed:
            self._waiting[key] = _packed(column)
            if sum(map(len, self._waiting.values())) >= FILE_BYTES:
                self.finish()

    def finish(self) -> None:
        """Write what waits."""
        try:
            if not self._has_failed:
                self._store.put_artifacts(ARTIFACT_KIND, self._waiting, self._document)
        except StoreUnusable as error:
            self._has_failed = True
            self._store.warn(f"{error.message}; the landmark column is not kept")
        self._waiting = {}
