"""What runs in a cluster: one model, asked for groups of tasks, or to rank a part of a task's documents.

Knows no Ray; all values are those of JSON.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from localctx.batch.answering import Answering
from localctx.batch.tasks import Task
from localctx.errors import LocalctxError
from localctx.session.shard import Shard
from localctx.settings import Settings
from localctx.small_text import reason_of

__all__ = ["Actor"]


class Actor:
    """begin() comes first; answer() and the other two as often as wanted."""

    def __init__(self, settings: dict[str, Any], folder: str) -> None:
        """`folder`: what relative names are relative to."""
        self._settings = Settings(**settings)
        self._folder = folder
        self._answering: Answering | None = None
        self._shard: tuple[Sequence[str], Shard] | None = None
        self._open = ExitStack()

    def begin(self) -> dict[str, Any]:
        """Open the model: {"host": name}, or {"fatal": [message, hint]}."""
        try:
            os.chdir(self._folder)
            self._answering = Answering(self._settings)
        except OSError as error:
            return {
                "fatal": [f"{socket.gethostname()}: {self._folder}: {reason_of(error)}", "share the folder"]
            }
        except LocalctxError as error:
            return {"fatal": [error.message, error.hint]}
        return {"host": socket.gethostname()}

    def answer(self, tasks: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
        """(content, row) of each task, as soon as it is there."""
        self._let_go()
        for task, row in self._model.answer([Task.from_json(value) for value in tasks]):
            yield task.content, row

    def count(self, documents: Sequence[str], question: str) -> dict[str, Any]:
        """See Shard.count(); {"failed": [message, hint]} for documents that cannot be read."""
        try:
            return self._shard_of(documents).count(question)
        except LocalctxError as error:
            return {"failed": [error.message, error.hint]}

    def best(
        self, documents: Sequence[str], question: str, weights: Sequence[float], k: int
    ) -> list[tuple[float, int, int]]:
        """See Shard.best(); of the documents of the last count()."""
        return self._shard_of(documents).best(question, weights, k)

    @property
    def _model(self) -> Answering:
        if self._answering is None:
            raise RuntimeError("begin() comes first")
        return self._answering

    def _shard_of(self, documents: Sequence[str]) -> Shard:
        if self._shard is None or self._shard[0] != documents:
            self._let_go()
            self._shard = documents, self._open.enter_context(self._model.shard(documents))
        return self._shard[1]

    def _let_go(self) -> None:
        self._shard = None
        self._open.close()
