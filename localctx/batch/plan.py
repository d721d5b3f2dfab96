"""Tasks and the rows that are there → what is still to be done. Pure; knows no files.

A row belongs to a task by its key, as often as the key occurs. Tasks of equal content are computed once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from localctx.batch.tasks import Task

__all__ = ["DoneRow", "Plan", "make_plan"]


@dataclass(frozen=True, slots=True)
class DoneRow:
    """A line of the results: its key, where its bytes lie, and whether it is an error."""

    key: str
    start: int
    end: int
    is_error: bool = False
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done.

    failed: tasks whose error is known already · groups: tasks of one place, in the order of their first ·
    copies: tasks by the content that is computed for another task · copied: (task, row that has its answer) ·
    dropped: rows to be taken out of the results: errors that are tried again, or of tasks that have changed ·
    n_answered, n_failed: tasks that are done and stay so.
    """

    failed: list[Task]
    groups: list[list[Task]]
    copies: dict[str, list[Task]]
    copied: list[tuple[Task, DoneRow]]
    dropped: list[DoneRow]
    n_answered: int
    n_failed: int
    n_strange: int

    @property
    def n_open(self) -> int:
        """Tasks that get a row now."""
        n_copies = len(self.copied) + sum(map(len, self.copies.values()))
        return len(self.failed) + n_copies + sum(map(len, self.groups))


def make_plan(tasks: Sequence[Task], done: Iterable[DoneRow], *, retries: bool = False) -> Plan:
    """Match rows to tasks. `retries`: errors are tried again, but not those of lines that are no job.

    Answers are never dropped: those that belong to no task are counted in n_strange.
    """
    open_of: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        open_of[task.key].append(task)
    answers: dict[str, DoneRow] = {}
    dropped: list[DoneRow] = []
    finished: set[int] = set()
    n_answered = n_failed = n_strange = 0
    for row in done:
        waiting = open_of.get(row.key)
        if row.is_error and (not waiting or (retries and waiting[0].is_job)):
            dropped.append(row)
        elif not waiting:
            n_strange += 1
        else:
            task = waiting.pop(0)
            finished.add(id(task))
            n_failed += row.is_error
            n_answered += not row.is_error
            if not row.is_error:
                answers[task.content] = row
    left = [task for task in tasks if id(task) not in finished]
    failed = [task for task in left if task.problem is not None]
    copied = [(task, answers[task.content]) for task in left if task.content in answers]
    groups, copies = _grouped([t for t in left if t.problem is None and t.content not in answers])
    return Plan(failed, groups, copies, copied, dropped, n_answered, n_failed, n_strange)


def _grouped(tasks: Iterable[Task]) -> tuple[list[list[Task]], dict[str, list[Task]]]:
    """Tasks by place; of those of equal content the first one, the others apart."""
    groups: dict[str, list[Task]] = {}
    copies: dict[str, list[Task]] = {}
    for task in tasks:
        if task.content in copies:
            copies[task.content].append(task)
        else:
            copies[task.content] = []
            groups.setdefault(task.place, []).append(task)
    return list(groups.values()), {content: rest for content, rest in copies.items() if rest}
