"""A question and passages → how well each answers it, by a cross-encoder of llama.cpp (bge-reranker and kin).

Question and passage stand in one sequence and see each other: slower than vectors, and more precise. Knows no
documents and no other scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from localctx.engine.encoder import Encoder, Piece, steps
from localctx.engine.gguf import GGUFHeader, display, open_reranking_model
from localctx.engine.options import EngineOptions

__all__ = ["Reranker", "RerankerFile", "open_reranker"]

LEAST_PASSAGE_TOKENS = 64
"""Room that a long question leaves."""


def open_reranker(path: Path, options: EngineOptions | None = None) -> Reranker:
    """Check the file and load it. Raises ModelError for a file that is no reranking model."""
    from localctx.engine.llama import library

    return Reranker(library(), open_reranking_model(path), options or EngineOptions())


class RerankerFile:
    """A cross-encoder by its file, loaded when it is first asked for; whoever made this closes it."""

    def __init__(self, path: Path, options: EngineOptions) -> None:
        self.path = path
        self._options = options
        self._reranker: Reranker | None = None

    def open(self) -> Reranker:
        """The cross-encoder, loaded once. Raises ModelError."""
        if self._reranker is None:
            self._reranker = open_reranker(self.path, self._options)
        return self._reranker

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._reranker is not None:
            self._reranker.close()
            self._reranker = None


class Reranker:
    """An open cross-encoder. Close it, or use `with`; used by one thread at a time."""

    def __init__(self, lib: Any, header: GGUFHeader, options: EngineOptions) -> None:
        """Raises ModelError with llama.cpp's reason."""
        self.name = options.name or header.text("general.name") or display(header.path)
        self._encoder = Encoder(lib, header, self.name, options, lib.LLAMA_POOLING_TYPE_RANK)

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """One number in (0, 1) a passage: the logistic function of the model's output, the best of the parts
        of a passage that is too long for the model. Of a question that is too long, the end counts.

        Raises LocalctxError when closed, ModelError when a step fails.
        """
        encoder = self._encoder
        n_special = len(encoder.opening) + 2 * len(encoder.closing) + len(encoder.separator)
        room = encoder.n_ctx - n_special
        asked = encoder.encode(question)[-(room - min(LEAST_PASSAGE_TOKENS, room // 2)) :]
        pieces: list[Piece] = []
        for number, passage in enumerate(passages):
            tokens, n = encoder.encode(passage), room - len(asked)
            for start in range(0, max(1, len(tokens)), n):
                part = (*encoder.opening, *asked, *encoder.closing, *encoder.separator)
                pieces.append(Piece(number, (*part, *tokens[start : start + n], *encoder.closing)))
        best = np.full(len(passages), -np.inf)
        for step in steps(pieces):
            values = encoder.first_values([piece.tokens for piece in step])
            for piece, value in zip(step, values, strict=True):
                best[piece.text] = max(best[piece.text], value)
        return [float(value) for value in 1 / (1 + np.exp(-np.clip(best, -60, 60)))]

    def close(self) -> None:
        """Free everything; again is harmless."""
        self._encoder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()
