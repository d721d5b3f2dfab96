"""One model that answers groups of tasks: the documents of a group are opened once, and prefilled once.

How the questions of one document are asked is _asked() alone. Knows no files of results, no other workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from localctx.api import LoadedModel, OpenDocument
from localctx.batch.tasks import Task, error_json
from localctx.errors import Interrupted, LocalctxError
from localctx.from_settings import chosen_model, open_model_for
from localctx.session.events import Failed, Finished
from localctx.session.shard import Shard
from localctx.settings import Settings

__all__ = ["Answering"]


class Answering:
    """Answers one group after another with one model; its weights come with the first. Close it."""

    def __init__(self, settings: Settings) -> None:
        """Raises ModelError for a model that cannot be opened."""
        self._model = LoadedModel(open_model_for(settings, chosen_model(settings)), settings)

    @property
    def fingerprint(self) -> str:
        """The model's, with its adapters."""
        return self._model.model.info.fingerprint

    def answer(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, dict[str, Any]]]:
        """The rows of tasks of one place, each as soon as it is there; a task that fails has an error for its
        row. Raises Interrupted when it was cancelled.
        """
        done: set[str] = set()
        try:
            with self._model.open(*dict.fromkeys(tasks[0].documents)) as opened:
                for task, row in _asked(opened, tasks):
                    done.add(task.content)
                    yield task, row
        except Interrupted:
            raise
        except LocalctxError as error:  # of the documents: all that is left of the group fails
            for task in tasks:
                if task.content not in done:
                    yield task, error_json(error.kind, error.message, error.hint)
        except Exception as error:  # noqa: BLE001  # one document must not end the others; its rows tell it
            for task in tasks:
                if task.content not in done:
                    yield task, _unexpected(error)

    @contextmanager
    def shard(self, documents: Sequence[str]) -> Iterator[Shard]:
        """Documents to be ranked, not asked. Raises what opening them raises."""
        with (
            self._model.open(*documents) as opened,
            Shard(opened.documents, opened.model, opened.settings) as shard,
        ):
            yield shard

    def close(self) -> None:
        """Free the weights."""
        self._model.close()


def _asked(opened: OpenDocument, tasks: Sequence[Task]) -> Iterator[tuple[Task, dict[str, Any]]]:
    """The questions of documents that are open, several side by side; rows as they are finished."""
    with opened.side_by_side() as asking:
        for task in tasks:
            asked = _settings_for(task, opened.settings)
            asking.submit(opened.documents, task.question, settings=asked, blocks=task.blocks)
        for ticket, event in asking:
            if isinstance(event, Failed):
                yield tasks[ticket], error_json(event.error.kind, event.error.message, event.error.hint)
            elif isinstance(event, Finished):
                if event.answer.finish_reason == "cancelled":
                    raise Interrupted("interrupted")
                yield tasks[ticket], event.answer.to_json()


def _settings_for(task: Task, settings: Settings) -> Settings:
    """The run's settings with the task's own."""
    return replace(settings, schema=task.schema, max_tokens=task.max_tokens or settings.max_tokens)


def _unexpected(error: Exception) -> dict[str, Any]:
    """The row of a task that met a bug."""
    what = f"unexpected {type(error).__name__}: {' '.join(str(error).split())}"
    return error_json("InternalError", what, "please report it; --retry-failed tries again")
