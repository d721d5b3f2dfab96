"""Blocks' vectors and those of their tokens, in small mapped derived files. Knows no texts, no models.

A document's vectors lie in parts, numbered without a gap in the order they were made in; blocks may be
missing: a document that was never indexed gets them question by question. A part has two files, so that a
question checks and maps those of tokens only where it looks at them:

    blocks: magic 8 · blocks u32 · dim u32 · tokens u32 · zeros 44
            numbers i32 [blocks] · zeros up to a multiple of 64 · rows f16 [blocks, dim]
    tokens: magic 8 · blocks u32 · dim u32 · tokens u32 · zeros 44
            numbers i32 [blocks] · ends u32 [blocks] · scales f16 [tokens] · zeros up to a multiple of 64 ·
            codes i8 [tokens, dim]
    behind: the checksum of store/derived.py
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from localctx.private_files import open_regular
from localctx.store import StoreUnusable
from localctx.store.derived import DerivedFiles

__all__ = ["PART_BLOCKS", "BlockVectors", "BlocksPart", "Place", "TokensPart"]

HEADER = struct.Struct("<8sIII44x")
BLOCKS_MAGIC, TOKENS_MAGIC = b"LCTXVEC2", b"LCTXTOK1"
ALIGNMENT = 64
PART_BLOCKS = 64
"""Blocks of a part at most: 3 MB with their tokens, of which a question looks into a few."""
MOST_CODE = 127
TOKENS_SHARE = 0.25
"""Of what derived files may take, this much at most for the tokens of one document."""


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


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document's vectors are kept: the derived files, the hash of its text, and a key of all that
    they depend on beside it.
    """

    files: DerivedFiles
    text_hash: str
    key: str

    def mapped(self, kind: str, part: int) -> mmap.mmap | None:
        """A file's content; None where there is none, or it was damaged."""
        path = self.files.find(self.text_hash, self._name(kind, part))
        if path is None:
            return None
        with suppress(OSError, ValueError), open_regular(path) as file:  # removed meanwhile
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return None

    def write(self, kind: str, part: int, data: bytes) -> None:
        """Keep a file; one of that name is replaced. Raises StoreUnusable, TooLarge."""

        def fill(path: Path) -> None:
            path.write_bytes(data)

        self.files.write(self.text_hash, self._name(kind, part), fill, least_bytes=len(data))

    def _name(self, kind: str, part: int) -> str:
        return blake2b(f"{self.key}/{kind}/{part}".encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class BlockVectors:
    """Those of a document of n_blocks blocks; `place`: None keeps them in memory alone."""

    n_blocks: int
    n_dim: int
    place: Place | None = None
    _parts: list[BlocksPart] = field(default_factory=list)
    _tokens: dict[int, TokensPart | None] = field(default_factory=dict)

    @classmethod
    def load(cls, n_blocks: int, n_dim: int, place: Place | None) -> Self:
        """With what was kept there, mapped."""
        found = cls(n_blocks, n_dim, place)
        found._read_from(0)
        return found

    @property
    def is_there(self) -> NDArray[np.bool_]:
        """Which blocks have a vector, bool [n_blocks]."""
        found = np.zeros(self.n_blocks, np.bool_)
        for part in self._parts:
            found[part.numbers] = True
        return found

    def similarities(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """The cosine of each block with the query, a vector of length 1: [n_blocks], NaN where missing."""
        found = np.full(self.n_blocks, np.nan, np.float32)
        for part in self._parts:
            found[part.numbers] = part.rows.astype(np.float32) @ query
        return found

    def row(self, number: int) -> NDArray[np.float32] | None:
        """A block's vector, [dim]; None where missing."""
        for part in reversed(self._parts):
            places = np.flatnonzero(part.numbers == number)
            if len(places):
                row: NDArray[np.float32] = part.rows[places[-1]].astype(np.float32)
                return row
        return None

    def tokens(self, number: int) -> NDArray[np.float32] | None:
        """The vectors of a block's tokens, [m, dim], as near as INT8 is; None where they are not at hand."""
        for place in reversed(range(len(self._parts))):
            if number in self._parts[place].numbers:
                part = self._tokens_of(place)
                return None if part is None else part.tokens(number)
        return None

    def add(self, rows: Mapping[int, NDArray[np.float32]], tokens: Mapping[int, NDArray[np.float32]]) -> None:
        """Take in more blocks, and keep them as far as that can be; `tokens` of the same blocks.

        Blocks that another process kept meanwhile are taken from there.
        """
        self._read_from(max(0, len(self._parts) - 1))
        is_there = self.is_there
        numbers = [number for number in rows if not is_there[number]]
        for start in range(0, len(numbers), PART_BLOCKS):
            some = numbers[start : start + PART_BLOCKS]
            made = TokensPart.of({number: tokens[number] for number in some})
            part = BlocksPart(
                made.numbers, np.stack([rows[number] for number in some]).astype(np.float16), len(made.scales)
            )
            self._append(part, made if self._has_room(made) else None)

    # --- inside ---------------------------------------------------------------------------------------

    def _append(self, part: BlocksPart, tokens: TokensPart | None) -> None:
        """Behind the last part, or joined to it where both are small."""
        last = len(self._parts) - 1
        number = last + 1
        if last >= 0 and len(self._parts[last].numbers) + len(part.numbers) <= PART_BLOCKS:
            before = self._tokens_of(last)
            if (before is None) == (tokens is None):
                part = self._parts.pop().joined(part)
                tokens = None if before is None or tokens is None else before.joined(tokens)
                number = last
        if tokens is None:
            part = BlocksPart(part.numbers, part.rows, 0)
        self._parts.append(part)
        self._tokens[number] = tokens
        if self.place is None:
            return
        with suppress(StoreUnusable):  # later questions make it again; the shelf and the store say why
            if tokens is not None:
                self.place.write("tokens", number, tokens.packed())
            self.place.write("blocks", number, part.packed())
            self._read_from(number)  # mapped now, and out of memory

    def _read_from(self, number: int) -> None:
        """Map the parts from this one on as they are kept now."""
        if self.place is None:
            return
        while (data := self.place.mapped("blocks", number)) is not None:
            part = BlocksPart.unpacked(data, self.n_blocks, self.n_dim)
            if part is None:
                return
            self._parts[number:] = [part]
            self._tokens.pop(number, None)
            number += 1

    def _tokens_of(self, number: int) -> TokensPart | None:
        """A part's tokens, mapped when they are first looked at; None where they are not kept."""
        if number not in self._tokens:
            data = None
            if self.place is not None and self._parts[number].n_tokens:
                data = self.place.mapped("tokens", number)
            found = None if data is None else TokensPart.unpacked(data, self.n_dim)
            numbers = self._parts[number].numbers
            found = None if found is None else found.first(len(numbers))  # others were joined meanwhile
            is_of_them = found is not None and np.array_equal(found.numbers, numbers)
            self._tokens[number] = found if is_of_them else None
        return self._tokens[number]

    def _has_room(self, more: TokensPart) -> bool:
        """Whether the tokens of a document may take so much."""
        if self.place is None:
            return True
        n_tokens = sum(part.n_tokens for part in self._parts) + len(more.scales)
        return n_tokens * (self.n_dim + 2) <= TOKENS_SHARE * self.place.files.limit_bytes


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
