"""A document's vectors and those of its blocks' tokens in small mapped files. Knows no texts, no models.

They lie in parts, numbered without a gap in the order they were made in; blocks may be missing: a document
that was never indexed gets them question by question. A part has two files (vector_parts.py), so that a
question that does not look at tokens checks and maps the small one alone. Behind each stands the checksum of
store/derived.py.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from localctx.index.vector_parts import BlocksPart, TokensPart
from localctx.private_files import open_regular
from localctx.store import StoreUnusable
from localctx.store.derived import DerivedFiles

__all__ = ["PART_BLOCKS", "BlockVectors", "Place"]

PART_BLOCKS = 64
"""Blocks of a part at most: 3 MB with their tokens, of which a question looks into a few."""
TOKENS_SHARE = 0.25
"""Of what derived files may take, this much at most for the tokens of one document."""


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

    def max_sims(self, queries: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """MaxSim of the queries [n, dim], of length 1, with the likeliest window of each block's tokens
        (TokensPart.max_sims): [n_blocks], NaN where a block has no vector; None where the tokens of some that
        have one are not kept.
        """
        found = np.full(self.n_blocks, np.nan, np.float32)
        if not all(part.n_tokens or place in self._tokens for place, part in enumerate(self._parts)):
            return None  # before any is looked at
        for place, part in enumerate(self._parts):
            tokens = self._tokens_of(place)
            if tokens is None:
                return None
            found[part.numbers] = tokens.max_sims(queries)
        return found

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
