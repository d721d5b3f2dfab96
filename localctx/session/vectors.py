"""The vectors of a run's blocks and of their tokens: found from earlier, made where they are missing, kept as
far as they can be.

`index` makes them all. A question on a document that was not indexed has those of the blocks that its words
point at made, a few dozen; they are kept, so that later questions find more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from localctx.engine.embedder import Embedded, Embedder, EmbedderFile
from localctx.index.vectors import PART_BLOCKS, BlockVectors, Place
from localctx.selection.dense import max_sim
from localctx.session.events import Progress
from localctx.session.reading import Passage, Reading
from localctx.session.run import Run
from localctx.session.shelf import Shelf
from localctx.values import Progress as Counter

__all__ = ["RunVectors", "embedded_text"]

VECTORS_VERSION = 2
"""Part of every key: raise it whenever what is embedded of a block changes."""
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
    _of: list[BlockVectors]
    n_new: int = 0
    _questions: dict[str, Embedded] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run, file: EmbedderFile) -> RunVectors:
        """As they were kept. Raises ModelError for an embedder that cannot be loaded."""
        embedder = file.open()
        key = (embedder.fingerprint, file.passage_prefix)
        if key not in run.vectors:
            shelf = Shelf.of(run)
            run.vectors[key] = [
                BlockVectors.load(reading.n_blocks, embedder.n_dim, _place_of(reading, shelf, key))
                for reading in run.readings
            ]
        return cls(run, file, embedder, run.vectors[key])

    @property
    def is_there(self) -> NDArray[np.bool_]:
        """Which blocks have a vector, bool [n_blocks]."""
        return np.concatenate([vectors.is_there for vectors in self._of])

    def rows(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        """The vectors of blocks, [n, dim]; zeros where missing."""
        out = np.zeros((len(numbers), self.embedder.n_dim), np.float32)
        for place, number in enumerate(numbers):
            document, index = self._place(number)
            row = self._of[document].row(index)
            if row is not None:
                out[place] = row
        return out

    def question(self, text: str) -> Embedded:
        """The question, however long, as the embedder sees it: once for all selectors."""
        if text not in self._questions:
            self._questions[text] = next(self.embedder.embed([self.file.query_prefix + text]))[1]
        return self._questions[text]

    def similarities(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """The cosine of each block with the query, [n_blocks]; NaN where it has no vector."""
        return np.concatenate([vectors.similarities(query) for vectors in self._of])

    def max_sims(self, question: str) -> NDArray[np.float32] | None:
        """MaxSim of the question with every block, [n_blocks], NaN for those without a vector; None where the
        tokens of some that have one are not kept.
        """
        asked, found = self.question(question).tokens, []
        for vectors in self._of:
            sims = vectors.max_sims(asked)
            if sims is None:
                return None
            found.append(sims)
        return np.concatenate(found)

    def tokens(self, numbers: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """The vectors of the blocks' tokens, each [n_tokens, dim]: as they were kept, else made now."""
        self.make(numbers)
        found, missing = dict[int, NDArray[np.float32]](), []
        for number in numbers:
            document, index = self._place(number)
            kept = self._of[document].tokens(index)
            if kept is None:
                missing.append(number)
            else:
                found[number] = kept
        return {**found, **{number: embedded.tokens for number, embedded in self._embedded(missing)}}

    def likeness(self, question: str, passage: Passage, spans: Sequence[tuple[int, int]]) -> list[float]:
        """MaxSim of the question with each span, code points [start, end) of the passage's text that cover it
        in order.
        """
        number = sum(reading.n_blocks for reading in self.run.readings[: passage.document])
        number += self.run.readings[passage.document].block_at(passage.start)
        asked, tokens = self.question(question).tokens, self.tokens([number])[number]
        n_before = self.embedder.n_tokens(embedded_text(replace(passage, text=""), self.file.passage_prefix))
        counts = [self.embedder.n_tokens(passage.text[start:end]) for start, end in spans]
        edges = [n_before, *(n_before + n for n in accumulate(counts))]
        return [max_sim(asked, tokens[first:end]) for first, end in pairwise(edges)]

    def make(self, numbers: Sequence[int]) -> None:
        """Make the vectors of blocks that have none, in this order, and keep them; what was made before an
        error or Ctrl-C is kept too.
        """
        is_there = self.is_there
        missing = [number for number in numbers if not is_there[number]]
        for start in range(0, len(missing), PART_BLOCKS):
            self._make_part(missing[start : start + PART_BLOCKS], start, len(missing))

    def _make_part(self, part: Sequence[int], n_before: int, n_all: int) -> None:
        made: dict[int, dict[int, Embedded]] = {}

        def tell(done: int, _: int) -> None:
            self.run.listen(Progress("embedding", n_before + done, n_all, "passages"))

        try:
            for number, embedded in self._embedded(part, tell):
                document, index = self._place(number)
                made.setdefault(document, {})[index] = embedded
        finally:
            for document, new in made.items():
                rows = {index: embedded.vector for index, embedded in new.items()}
                self._of[document].add(rows, {index: embedded.tokens for index, embedded in new.items()})
                self.n_new += len(new)

    def _embedded(
        self, numbers: Sequence[int], on_progress: Counter | None = None
    ) -> Iterator[tuple[int, Embedded]]:
        """(number, Embedded) of the blocks, in no certain order."""
        texts = [embedded_text(self.run.passage(number), self.file.passage_prefix) for number in numbers]
        for place, embedded in self.embedder.embed(texts, on_progress) if texts else ():
            yield numbers[place], embedded

    def _place(self, number: int) -> tuple[int, int]:
        """(document, block of it) of a running number."""
        for document, reading in enumerate(self.run.readings):
            if number < reading.n_blocks:
                return document, number
            number -= reading.n_blocks
        raise IndexError(number)


def _place_of(reading: Reading, shelf: Shelf, embedder: tuple[str, str]) -> Place | None:
    """Where a document's vectors are kept; None where nothing is."""
    if shelf.files is None or not shelf.stays(reading):
        return None
    facts = (VECTORS_VERSION, shelf.key(reading), *embedder)
    key = blake2b(repr(facts).encode(), digest_size=16).hexdigest()
    return Place(shelf.files, reading.document.content_hash, key)


def missing_first(pointed: Iterator[int], n_blocks: int, most: int) -> list[int]:
    """The blocks that words point at, then the others in order, at most so many."""
    order = dict.fromkeys(pointed)
    for number in range(n_blocks):
        if len(order) >= most:
            break
        order.setdefault(number)
    return list(order)[:most]
