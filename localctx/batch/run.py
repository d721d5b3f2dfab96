"""A batch from tasks to rows: the plan carried out, each row written before the next one is asked for."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

from localctx.batch.answering import Answering
from localctx.batch.plan import Plan, make_plan
from localctx.batch.results import Results
from localctx.batch.tasks import Task, error_json
from localctx.errors import UsageError
from localctx.settings import Settings

__all__ = ["BatchOptions", "RowWritten", "Started", "run_batch"]


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """n_workers: processes or actors, each with a model; None: as the engine has it · retries: earlier errors
    are tried again.
    """

    n_workers: int | None = None
    engine: Literal["local", "ray"] = "local"
    retries: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """What is there and what is to be done."""

    plan: Plan
    n_tasks: int


@dataclass(frozen=True, slots=True)
class RowWritten:
    """A task has its row; `error`: its message, None for an answer."""

    task: Task
    error: str | None


def run_batch(
    tasks: Sequence[Task], results: Results, settings: Settings, options: BatchOptions
) -> Iterator[Started | RowWritten]:
    """Do what is not done, telling the plan and then each row.

    Raises ModelError when the model cannot be opened, UsageError when the answers that are there are another
    model's, LocalctxError when results cannot be written, Interrupted.
    """
    plan = make_plan(tasks, results.rows, retries=options.retries)
    if plan.groups:
        _check_model(results, settings)
    results.drop(plan.dropped)
    yield Started(plan, len(tasks))
    for task in plan.failed:
        if task.problem is not None:
            yield _written(results, task, error_json(*task.problem))
    for task, row in plan.copied:
        yield _written(results, task, _copy(results.read(row)))
    if not plan.groups:
        return
    with closing(_answers(plan, settings, options)) as answers:
        for task, value in answers:
            yield _written(results, task, value)
            for other in plan.copies.get(task.content, ()):
                yield _written(results, other, _copy(value))


def _answers(
    plan: Plan, settings: Settings, options: BatchOptions
) -> Generator[tuple[Task, dict[str, Any]], None, None]:
    """The rows of all groups, from the engine that is wanted."""
    if options.engine == "ray":
        from localctx.batch.cluster import answer_by_actors

        yield from answer_by_actors(plan.groups, settings, options.n_workers)
    elif (options.n_workers or 1) > 1:
        from localctx.batch.workers import answer_by_processes

        yield from answer_by_processes(plan.groups, settings, options.n_workers or 1)
    else:
        with closing(Answering(settings)) as answering:
            for group in plan.groups:
                yield from answering.answer(group)


def _check_model(results: Results, settings: Settings) -> None:
    """Refuse to mix the answers of two models in one file."""
    there = {row.fingerprint for row in results.rows if row.fingerprint is not None}
    if there:
        with closing(Answering(settings)) as answering:
            if there != {answering.fingerprint}:
                raise UsageError(
                    f"{results.path} holds answers of another model than {settings.model}",
                    "the same --model goes on with it, another -o begins anew",
                )


def _written(results: Results, task: Task, value: dict[str, Any]) -> RowWritten:
    """Write a task's row."""
    results.append(
        {"schema": value["schema"], "id": task.id, "line": task.line, "key": task.key, **_rest(value)}
    )
    error = value.get("error")
    return RowWritten(task, error["message"] if error else None)


def _rest(value: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name not in ("schema", "id", "line", "key")}


def _copy(value: dict[str, Any]) -> dict[str, Any]:
    """The row of an equal task: nothing was computed for it."""
    if "tokens" not in value:
        return value
    return {
        **value,
        "tokens": dict.fromkeys(value["tokens"], 0),
        "timings": dict.fromkeys(value["timings"], 0),
    }
