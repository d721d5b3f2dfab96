"""Some of a question's documents, where they are: what they say of its terms, and their best passages.

The other documents are elsewhere; selection/shards.py puts the shards together. All values are those of JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from localctx.document import Document
from localctx.selection.shards import TermHolders, best_of_shard
from localctx.session.events import ignore_progress
from localctx.session.opening import index_all
from localctx.session.run import start
from localctx.settings import Settings
from localctx.values import Model

__all__ = ["Shard"]


class Shard:
    """The documents, read and indexed by words. Close it before them, or use `with`."""

    def __init__(self, documents: Sequence[Document], model: Model, settings: Settings) -> None:
        """Raises what reading the documents raises."""
        self._run = start(documents, model, settings, ignore_progress)
        self._index = index_all(self._run)

    def count(self, question: str) -> dict[str, Any]:
        """n_tokens and n_blocks of each document, the terms' weights, how many blocks hold each, and `limit`:
        the context that the model has here.
        """
        holders = self._holders(question)
        return {
            "limit": self._run.limit,
            "n_tokens": [reading.n_tokens for reading in self._run.readings],
            "n_blocks": [reading.n_blocks for reading in self._run.readings],
            "terms": [term.weight for term in holders],
            "n_holding": [len(term.blocks) for term in holders],
        }

    def best(self, question: str, weights: Sequence[float], k: int) -> list[tuple[float, int, int]]:
        """The best k blocks as (score, document, block of the document), by the weights of all shards."""
        found = []
        for score, number in best_of_shard(self._holders(question), weights, k):
            place = self._run.passage(number)
            first = sum(reading.n_blocks for reading in self._run.readings[: place.document])
            found.append((score, place.document, number - first))
        return found

    def _holders(self, question: str) -> list[TermHolders]:
        return [TermHolders(weight, blocks) for weight, blocks in self._index.holders(question)]

    def close(self) -> None:
        """Let the index go."""
        self._index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
