"""Groups of tasks → workers, and what is done again when one dies. Pure; knows no processes.

A task whose worker died is tried again alone; one that is alone MAX_DEATHS times when its worker dies fails.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence

from localctx.batch.tasks import Task

__all__ = ["MAX_DEATHS", "Dispatch"]

MAX_DEATHS = 3
"""Deaths of a worker over one task alone until the task is given up."""
Home = Callable[[Task], Hashable]


class Dispatch:
    """What is still to be given out, and what each worker is at.

    home: where the documents of a task are at home; a worker takes those of its own home first.
    """

    def __init__(self, groups: Sequence[Sequence[Task]], home: Home = lambda task: None) -> None:
        self._waiting = deque(list(group) for group in groups)
        self._home = home
        self._given: dict[Hashable, list[Task]] = {}
        self._deaths: dict[str, int] = {}

    @property
    def n_waiting(self) -> int:
        """Groups that nobody is at."""
        return len(self._waiting)

    @property
    def is_over(self) -> bool:
        """Whether every task has its row."""
        return not self._waiting and not any(self._given.values())

    def give(self, worker: Hashable, home: Hashable = None) -> list[Task] | None:
        """The next group for a worker, which is idle; None: there is none."""
        if not self._waiting:
            return None
        place = next((n for n, group in enumerate(self._waiting) if self._home(group[0]) == home), 0)
        group = self._waiting[place]
        del self._waiting[place]
        self._given[worker] = list(group)
        return group

    def task_done(self, worker: Hashable, content: str) -> Task | None:
        """The worker has answered a task; None: it was not its any more."""
        given = self._given.get(worker, [])
        for task in given:
            if task.content == content:
                given.remove(task)
                return task
        return None

    def died(self, worker: Hashable) -> list[Task]:
        """The worker is gone: its tasks wait again, one by one. Returns those that are given up."""
        left = self._given.pop(worker, [])
        given_up: list[Task] = []
        for task in reversed(left):
            deaths = self._deaths[task.content] = self._deaths.get(task.content, 0) + (len(left) == 1)
            if deaths >= MAX_DEATHS:
                given_up.append(task)
            else:
                self._waiting.appendleft([task])
        return given_up
