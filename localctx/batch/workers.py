"""Worker processes: started, given groups of tasks, replaced when they die. Knows no models, no results."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

from localctx.batch.dispatch import Dispatch
from localctx.batch.tasks import Task, error_json
from localctx.errors import LocalctxError, ModelError
from localctx.settings import Settings

__all__ = ["answer_by_processes", "lost_row"]

PROGRAM = "from localctx.batch.worker import main; main()"
MAX_START_DEATHS = 3
"""Workers, for each place, that may end without an answer."""


class _Worker:
    """A child process; what it says comes to `inbox` as (worker, value), at its end with None."""

    def __init__(self, settings: Settings, inbox: Inbox) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C is for the parent, which ends them
        )
        self._inbox = inbox
        self.has_answered = False
        self.send(asdict(settings))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, value: object) -> None:
        """A line; one that is dead is found out by its silence."""
        assert self._process.stdin is not None  # noqa: S101  # it is a pipe
        try:
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):  # closed already
            return

    def _read(self) -> None:
        """Hand on what it says, until it ends."""
        assert self._process.stdout is not None and self._process.stdin is not None  # noqa: S101  # pipes
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    self._inbox.put((self, json.loads(line)))
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):  # what was not sent is not needed
            self._process.stdin.close()
        self._inbox.put((self, None))

    def how_it_ended(self) -> str:
        """In words, of one that has ended."""
        status = self._process.wait()
        return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"

    def end(self) -> None:
        """Kill it; what it wrote to the store is whole."""
        self._process.kill()
        self._reader.join()


Inbox: TypeAlias = "queue.Queue[tuple[_Worker, dict[str, Any] | None]]"


def answer_by_processes(
    groups: Sequence[Sequence[Task]], settings: Settings, n_workers: int
) -> Iterator[tuple[Task, dict[str, Any]]]:
    """The rows of all tasks, as they come, from up to n_workers processes with a model each.

    A worker that dies is replaced and its tasks are done again; a task that kills each of them fails. Raises
    ModelError when the model cannot be opened, LocalctxError when workers do not come up.
    """
    n_workers = min(n_workers, len(groups))
    if settings.threads is None:
        settings = replace(settings, threads=max(1, (os.cpu_count() or 1) // n_workers))
    pool = _Pool(Dispatch(groups), settings, n_workers)
    try:
        while not pool.dispatch.is_over:
            yield from pool.step()
    finally:
        for worker in pool.workers:
            worker.end()


@dataclass(slots=True)
class _Pool:
    """The workers that are up, and what they say."""

    dispatch: Dispatch
    settings: Settings
    n_workers: int
    inbox: Inbox = field(default_factory=queue.Queue)
    workers: set[_Worker] = field(default_factory=set)
    n_start_deaths: int = 0

    def step(self) -> Iterator[tuple[Task, dict[str, Any]]]:
        """Start who is missing, then hear one message; the rows that it brings."""
        while len(self.workers) < self.n_workers and self.dispatch.n_waiting:
            worker = _Worker(self.settings, self.inbox)
            self.workers.add(worker)
            self._give(worker)
        worker, value = self.inbox.get()
        if value is None:
            yield from self._died(worker)
        elif "fatal" in value:
            raise ModelError(*value["fatal"])
        elif "idle" in value:
            self._give(worker)
        else:
            worker.has_answered = True
            if done := self.dispatch.task_done(worker, value["content"]):
                yield done, value["row"]

    def _give(self, worker: _Worker) -> None:
        """The next group for an idle worker; without one it waits for what others may leave."""
        if group := self.dispatch.give(worker):
            worker.send([task.to_json() for task in group])
        elif self.workers != {worker}:
            worker.end()
            self.workers.discard(worker)

    def _died(self, worker: _Worker) -> Iterator[tuple[Task, dict[str, Any]]]:
        if worker not in self.workers:  # it was ended
            return
        self.workers.discard(worker)
        self.n_start_deaths += not worker.has_answered
        if self.n_start_deaths > MAX_START_DEATHS * self.n_workers:
            raise LocalctxError(f"workers do not come up: {worker.how_it_ended()}", "try --workers 1")
        for task in self.dispatch.died(worker):
            yield task, lost_row(worker.how_it_ended())


def lost_row(how: str) -> dict[str, Any]:
    """The row of a task that no worker survives."""
    return error_json(
        "WorkerDied", f"the worker died over it, each time ({how})", "--retry-failed tries again"
    )
