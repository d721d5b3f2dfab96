"""Texts → vectors, with an embedding model of llama.cpp. Knows no documents, no questions, no files.

Several short sequences are evaluated at a time; a text longer than the model's limit is cut into pieces, and
its vector is their mean, weighted by their tokens. The vectors of single tokens, which MaxSim compares, come
from the same pass. Equal texts have equal vectors but for rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localctx.engine.encoder import Encoder, Piece, steps
from localctx.engine.gguf import GGUFHeader, display, fingerprint, open_embedding_model
from localctx.engine.options import EngineOptions
from localctx.values import Progress

__all__ = ["Embedded", "Embedder", "EmbedderFile", "open_embedder"]

MEAN, FIRST, LAST = 1, 2, 3
"""llama.cpp's numbers for how a text's vector comes from those of its tokens."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """A text's vector [dim], and those of its tokens [n_tokens, dim], special ones left out; of length 1."""

    vector: NDArray[np.float32]
    tokens: NDArray[np.float32]


def open_embedder(path: Path, options: EngineOptions | None = None) -> Embedder:
    """Check the file and load it. Raises ModelError for a file that is no embedding model."""
    from localctx.engine.llama import library

    return Embedder(library(), open_embedding_model(path), options or EngineOptions())


class Embedder:
    """An open embedding model. Close it, or use `with`; used by one thread at a time."""

    def __init__(self, lib: Any, header: GGUFHeader, options: EngineOptions) -> None:
        """Raises ModelError with llama.cpp's reason."""
        self.name = options.name or header.text("general.name") or display(header.path)
        self.fingerprint = fingerprint(header)
        self._pooling = header.integer(header.arch_key("pooling_type"), MEAN)
        self._encoder = Encoder(lib, header, self.name, options, lib.LLAMA_POOLING_TYPE_NONE)
        self.n_dim, self.n_ctx = self._encoder.n_dim, self._encoder.n_ctx

    def embed(
        self, texts: Sequence[str], on_progress: Progress | None = None
    ) -> Iterator[tuple[int, Embedded]]:
        """(number, Embedded) of the texts, in no certain order; on_progress counts texts.

        Raises LocalctxError when closed, ModelError when a step fails.
        """
        self._encoder.check_open()
        waiting = [list(self._pieces(number, text)) for number, text in enumerate(texts)]
        parts: dict[int, list[NDArray[np.float32]]] = {number: [] for number in range(len(texts))}
        n_done = 0
        for step in steps(chain.from_iterable(waiting)):
            for piece, rows in zip(step, self._rows(step), strict=True):
                parts[piece.text].append(rows)
                if len(parts[piece.text]) == len(waiting[piece.text]):
                    yield piece.text, self._joined(parts.pop(piece.text))
                    n_done += 1
            if on_progress is not None:
                on_progress(n_done, len(texts))

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector of length 1 a text, [n_texts, dim]."""
        out = np.empty((len(texts), self.n_dim), np.float32)
        for number, embedded in self.embed(texts):
            out[number] = embedded.vector
        return out

    def n_tokens(self, text: str) -> int:
        """Tokens of the text, special ones not counted."""
        return len(self._encoder.encode(text))

    def close(self) -> None:
        """Free everything; again is harmless."""
        self._encoder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    # --- inside ---------------------------------------------------------------------------------------

    def _pieces(self, number: int, text: str) -> Iterator[Piece]:
        """The text's tokens, as many at a time as the model can see; one piece of an empty text."""
        encoder = self._encoder
        tokens = encoder.encode(text)
        room = self.n_ctx - len(encoder.opening) - len(encoder.closing)
        n_pieces = max(1, -(-len(tokens) // room))
        for place in range(n_pieces):  # of like length: a last piece of two words would say nothing
            part = tokens[place * len(tokens) // n_pieces : (place + 1) * len(tokens) // n_pieces]
            yield Piece(number, (*encoder.opening, *part, *encoder.closing))

    def _rows(self, step: Sequence[Piece]) -> list[NDArray[np.float32]]:
        """The vectors of each piece's tokens, special ones among them."""
        rows = self._encoder.rows([piece.tokens for piece in step])
        return np.split(rows, np.cumsum([len(piece.tokens) for piece in step])[:-1])

    def _joined(self, parts: Sequence[NDArray[np.float32]]) -> Embedded:
        """One text from the rows of its pieces."""
        pooled = np.stack([self._pooled(rows) for rows in parts])
        weights = np.array([len(rows) for rows in parts], np.float32)
        vector = np.average(pooled, axis=0, weights=weights).astype(np.float32)
        first, last = len(self._encoder.opening), len(self._encoder.closing)
        tokens = np.concatenate([rows[first : len(rows) - last] for rows in parts])
        return Embedded(_unit(vector), _unit(tokens))

    def _pooled(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        if self._pooling == FIRST:
            return _unit(rows[0])
        if self._pooling == LAST:
            return _unit(rows[-1])
        return _unit(rows.mean(axis=0))


def _unit(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of length 1 along the last axis; zeros stay zeros."""
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    unit: NDArray[np.float32] = np.divide(values, lengths, out=np.zeros_like(values), where=lengths > 0)
    return unit


class EmbedderFile:
    """An embedder by its file, loaded when it is first asked for; whoever made this closes it.

    languages: codes it was made for; empty: not known, so all are taken · query_prefix, passage_prefix: what
    the model wants before a question and before a passage.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        languages: Sequence[str] = (),
        query_prefix: str = "",
        passage_prefix: str = "",
        options: EngineOptions | None = None,
    ) -> None:
        self.path = path
        self.name = name
        self.languages = tuple(languages)
        self.query_prefix, self.passage_prefix = query_prefix, passage_prefix
        self._options = options
        self._embedder: Embedder | None = None

    def open(self) -> Embedder:
        """The embedder, loaded once. Raises ModelError."""
        if self._embedder is None:
            self._embedder = open_embedder(self.path, self._options)
        return self._embedder

    def covers(self, language: str | None) -> bool:
        """Whether it was made for the language; a language that is not known counts as covered."""
        return language is None or not self.languages or language in self.languages

    def close(self) -> None:
        """Free the embedder if it was loaded."""
        if self._embedder is not None:
            self._embedder.close()
            self._embedder = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()
