"""The vectors of a run's blocks: found from earlier, made where they are missing, kept as far as they can be.

`index` makes them all. A question on a document that was not indexed has those of the blocks that its words
point at made, a few dozen; they are kept, so that later questions find more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from localctx.engine.embedder import Embedded, Embedder, EmbedderFile
from localctx.index.vectors import BlockVectors
from localctx.session.events import Progress
from localctx.session.reading import Passage, Reading
from localctx.session.run import Run
from localctx.session.shelf import Shelf
from localctx.store import StoreUnusable

__all__ = ["RunVectors", "embedded_text"]

VECTORS_VERSION = 1
"""Part of every key: raise it whenever what is embedded of a block changes."""
SLAB_BLOCKS = 256
"""Blocks whose texts are in memory at a time."""
HEADINGS = 2
"""Innermost headings that are embedded with a block's text."""


def embedded_text(passage: Passage, prefix: str = "") -> str:
    """What of a passage becomes its vector: the headings that it stands under, and its text."""
    headings = " › ".join(passage.heading_path[-HEADINGS:])
    return f"{prefix}{headings}\n{passage.text.strip()}" if headings else f"{prefix}{passage.text.strip()}"


@dataclass(slots=True)
class RunVectors:
    """Those of all documents of a run, under running block numbers. `n_new`: made now."""

    run: Run
    file: EmbedderFile
    embedder: Embedder
    shelf: Shelf
    n_new: int = 0
    _of: list[BlockVectors] = field(default_factory=list)
    _changed: set[int] = field(default_factory=set)
    _questions: dict[str, Embedded] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run, file: EmbedderFile) -> RunVectors:
        """As they were kept. Raises ModelError for an embedder that cannot be loaded."""
        found = cls(run, file, file.open(), Shelf.of(run))
        for reading in run.readings:
            found._of.append(
                found._kept(reading) or BlockVectors.none(reading.n_blocks, found.embedder.n_dim)
            )
        return found

    @property
    def is_there(self) -> NDArray[np.bool_]:
        """Which blocks have a vector, bool [n_blocks]."""
        return np.concatenate([vectors.is_there for vectors in self._of])

    def rows(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        """The vectors of blocks, [n, dim]; zeros where missing."""
        out = np.zeros((len(numbers), self.embedder.n_dim), np.float32)
        for place, number in enumerate(numbers):
            document, index = self._place(number)
            vectors = self._of[document]
            if vectors.is_there[index]:
                out[place] = vectors.rows[index]
        return out

    def question(self, text: str) -> Embedded:
        """The question, however long, as the embedder sees it: once for all selectors."""
        if text not in self._questions:
            self._questions[text] = next(self.embedder.embed([self.file.query_prefix + text]))[1]
        return self._questions[text]

    def similarities(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """The cosine of each block with the query, [n_blocks]; NaN where it has no vector."""
        return np.concatenate([vectors.similarities(query) for vectors in self._of])

    def passages(self, numbers: Sequence[int]) -> dict[int, Embedded]:
        """Blocks embedded anew, with the vectors of their tokens."""
        texts = [embedded_text(self.run.passage(number), self.file.passage_prefix) for number in numbers]
        return {numbers[place]: embedded for place, embedded in self.embedder.embed(texts)}

    def make(self, numbers: Sequence[int]) -> None:
        """Make the vectors of blocks that have none, in this order, and keep them; what was made before an
        error or Ctrl-C is kept too.
        """
        is_there = self.is_there
        missing = [number for number in numbers if not is_there[number]]
        try:
            for start in range(0, len(missing), SLAB_BLOCKS):
                slab = missing[start : start + SLAB_BLOCKS]
                self._make_slab(slab, start, len(missing))
        finally:
            self._keep()

    def _make_slab(self, slab: Sequence[int], n_before: int, n_all: int) -> None:
        texts = [embedded_text(self.run.passage(number), self.file.passage_prefix) for number in slab]
        rows: dict[int, dict[int, NDArray[np.float32]]] = {}

        def tell(done: int, _: int) -> None:
            self.run.listen(Progress("embedding", n_before + done, n_all, "passages"))

        try:
            for place, embedded in self.embedder.embed(texts, tell):
                document, index = self._place(slab[place])
                rows.setdefault(document, {})[index] = embedded.vector
        finally:
            for document, new in rows.items():
                self._of[document] = self._of[document].with_rows(new)
                self._changed.add(document)
                self.n_new += len(new)

    def _place(self, number: int) -> tuple[int, int]:
        """(document, block of it) of a running number."""
        for document, reading in enumerate(self.run.readings):
            if number < reading.n_blocks:
                return document, number
            number -= reading.n_blocks
        raise IndexError(number)

    # --- kept -------------------------------------------------------------------------------------------

    def _key(self, reading: Reading) -> str:
        facts = (
            VECTORS_VERSION,
            self.shelf.key(reading),
            self.embedder.fingerprint,
            self.file.passage_prefix,
        )
        return blake2b(repr(facts).encode(), digest_size=16).hexdigest()

    def _kept(self, reading: Reading) -> BlockVectors | None:
        files, shape = self.shelf.files, (reading.n_blocks, self.embedder.n_dim)
        if files is None or not self.shelf.stays(reading):
            return None
        return BlockVectors.load(files, reading.document.content_hash, self._key(reading), shape)

    def _take_in(self, document: int, others: BlockVectors | None) -> None:
        """Rows that another process kept meanwhile, so that they are not lost."""
        if others is not None:
            own = self._of[document]
            new = np.flatnonzero(others.is_there & ~own.is_there)
            self._of[document] = own.with_rows({int(n): others.rows[n].astype(np.float32) for n in new})

    def _keep(self) -> None:
        """Bring what is new to disk; where that cannot be, later questions make it again."""
        files = self.shelf.files
        for document in sorted(self._changed):
            reading = self.run.readings[document]
            if files is not None and self.shelf.stays(reading):
                self._take_in(document, self._kept(reading))
                with suppress(StoreUnusable):  # the shelf and the store say why nothing is kept
                    self._of[document].save(files, reading.document.content_hash, self._key(reading))
        self._changed.clear()


def missing_first(pointed: Iterator[int], n_blocks: int, most: int) -> list[int]:
    """The blocks that words point at, then the others in order, at most so many."""
    order = dict.fromkeys(pointed)
    for number in range(n_blocks):
        if len(order) >= most:
            break
        order.setdefault(number)
    return list(order)[:most]
