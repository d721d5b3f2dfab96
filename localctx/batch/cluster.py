"""Actors on a Ray cluster (extra `ray`): one model each, documents at home on one host. Knows no results.

The cluster is that of RAY_ADDRESS, else one is started here. A document's home is chosen by a hash of its
content and the hosts' names: the same host in every run, so that its store has it. Files are read by the
actors, under the paths of the host that started them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from localctx.batch.actor import Actor
from localctx.batch.dispatch import MAX_DEATHS, Dispatch
from localctx.batch.spread import choose_passages, is_spread, parts_of, with_unread
from localctx.batch.tasks import Task, error_json
from localctx.batch.workers import lost_row
from localctx.end_signals import handlers_kept
from localctx.errors import InputError, LocalctxError, ModelError, UsageError
from localctx.settings import Settings

__all__ = ["answer_by_actors", "check_installed"]

OBJECT_STORE_BYTES = 100 << 20
"""Only jobs and rows pass through it."""
MAX_START_DEATHS = 3


def check_installed() -> None:
    """Raises UsageError where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise UsageError("--engine ray needs Ray, which is not installed", "pip install 'localctx[ray]'")


def answer_by_actors(
    groups: Sequence[Sequence[Task]], settings: Settings, n_workers: int | None
) -> Iterator[tuple[Task, dict[str, Any]]]:
    """The rows of all tasks, as they come, from n_workers actors (default: one a GPU, else one a host).

    An actor that dies is replaced and its tasks are done again; a task that kills each of them fails. Raises
    ModelError when an actor cannot open the model, LocalctxError without a cluster.
    """
    check_installed()
    with _cluster(n_workers) as ray:
        hosts = sorted({node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]})
        n_gpus = int(ray.cluster_resources().get("GPU", 0))
        n_actors = n_workers or n_gpus or len(hosts)
        plain = [[task for task in group if not is_spread(task, n_actors)] for group in groups]
        dispatch = Dispatch([group for group in plain if group], lambda task: home_of(task.place, hosts))
        placed = _placed(ray, settings, n_actors, n_gpus)
        actors = _Actors(ray, dispatch, placed, n_actors)
        while not dispatch.is_over:
            yield from actors.step()
        actors.end()
        spread = [task for group in groups for task in group if is_spread(task, n_actors)]
        together = _Together(ray, placed, n_actors)
        for task in spread:
            yield task, together.answer(task)


def home_of(place: str, hosts: Sequence[str]) -> str:
    """The host of a set of documents: it stays when other hosts come or go."""
    return max(hosts, key=lambda host: hashlib.blake2b(f"{host} {place}".encode()).digest())


def _placed(ray: Any, settings: Settings, n_actors: int, n_gpus: int) -> tuple[Any, Settings]:
    """The actors' class with what each takes of its host, and the settings that fit that."""
    n_cpus = float(ray.cluster_resources().get("CPU", 1))
    n_threads = settings.threads or max(1, int(n_cpus) // n_actors)
    largest = max(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]) or 1
    n_taken = min(n_threads, largest, n_cpus / n_actors)  # more would be waited for without end
    takes = {"num_cpus": int(n_taken) if n_taken > 1 else n_taken, "num_gpus": 1 if n_gpus >= n_actors else 0}
    kind = ray.remote(Actor).options(**takes, max_restarts=0, scheduling_strategy="SPREAD")
    return kind, replace(settings, threads=n_threads)


@contextmanager
def _cluster(n_workers: int | None) -> Iterator[Any]:
    """Ray, connected; what was started here ends with it. Raises LocalctxError."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    address = os.environ.get("RAY_ADDRESS")
    own: dict[str, Any] = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    if address:
        own = {}
    elif n_workers is not None:
        own["num_cpus"] = max(n_workers, os.cpu_count() or 1)
    try:
        with handlers_kept():
            ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **own)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())
        raise LocalctxError(
            f"no Ray cluster at {address or 'this host'}: {reason}", "set RAY_ADDRESS"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _started(placed: tuple[Any, Settings]) -> tuple[Any, Any]:
    """A new actor, and the reference of what begin() will say."""
    kind, settings = placed
    actor = kind.remote(asdict(settings), str(Path.cwd()))
    return actor, actor.begin.remote()


@dataclass(slots=True)
class _Actors:
    """The actors that are up, what each was asked, and the answers that are on their way."""

    ray: Any
    dispatch: Dispatch
    placed: tuple[Any, Settings]
    n_actors: int
    hosts: dict[Any, str] = field(default_factory=dict)
    streams: dict[Any, Any] = field(default_factory=dict)
    starting: dict[Any, Any] = field(default_factory=dict)
    n_deaths: int = 0

    def step(self) -> Iterator[tuple[Task, dict[str, Any]]]:
        """Start who is missing, then hear one of them; the rows that it brings."""
        n_wanted = min(self.n_actors, len(self.streams) + self.dispatch.n_waiting)
        while len(self.starting) + len(self.streams) < n_wanted:
            actor, begun = _started(self.placed)
            self.starting[begun] = actor
        (ready,), _ = self.ray.wait([*self.starting, *self.streams], num_returns=1)
        if ready in self.starting:
            self._begun(self.starting.pop(ready), ready)
        else:
            yield from self._heard(ready)

    def end(self) -> None:
        """Let them go, so that their places are free."""
        for actor in (*self.starting.values(), *self.streams.values()):
            self.ray.kill(actor)

    def _begun(self, actor: Any, answer: Any) -> None:
        try:
            value = self.ray.get(answer)
        except self.ray.exceptions.RayActorError as error:
            self.n_deaths += 1
            if self.n_deaths > MAX_START_DEATHS * self.n_actors:
                reason = " ".join(str(error).split())
                raise LocalctxError(
                    f"actors do not come up: {reason}", "look at the cluster's logs"
                ) from None
            return
        if "fatal" in value:
            raise ModelError(*value["fatal"])
        self.hosts[actor] = value["host"]
        self._give(actor)

    def _give(self, actor: Any) -> None:
        """The next group for an idle actor; without one it is let go."""
        if group := self.dispatch.give(actor, self.hosts[actor]):
            stream = actor.answer.options(num_returns="streaming").remote([task.to_json() for task in group])
            self.streams[stream] = actor
        else:
            self.hosts.pop(actor)
            self.ray.kill(actor)

    def _heard(self, stream: Any) -> Iterator[tuple[Task, dict[str, Any]]]:
        """A row, the end of a group, or the end of an actor."""
        actor = self.streams[stream]
        try:
            content, row = self.ray.get(next(stream))
        except StopIteration:
            self.streams.pop(stream)
            self._give(actor)
        except self.ray.exceptions.RayActorError:
            self.streams.pop(stream)
            self.hosts.pop(actor)
            for task in self.dispatch.died(actor):
                yield task, lost_row("the actor's process")
        else:
            if done := self.dispatch.task_done(actor, content):
                yield done, row


@dataclass(slots=True)
class _Together:
    """Actors that rank a task's documents together; they stay up from task to task."""

    ray: Any
    placed: tuple[Any, Settings]
    n_actors: int
    actors: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def answer(self, task: Task) -> dict[str, Any]:
        """The task's row. Actors that die are replaced, and all is asked again."""
        for _ in range(MAX_DEATHS):
            try:
                self._start()
                return self._answer(task)
            except self.ray.exceptions.RayActorError:
                for actor in self.actors:
                    self.ray.kill(actor)
                self.actors.clear()
            except InputError as error:
                return error_json(error.kind, error.message, error.hint)
        return lost_row("the actor's process")

    def _start(self) -> None:
        if self.actors:
            return
        started = [_started(self.placed) for _ in range(self.n_actors)]
        self.actors = [actor for actor, _ in started]
        values = self.ray.get([begun for _, begun in started])
        if fatal := next((value["fatal"] for value in values if "fatal" in value), None):
            raise ModelError(*fatal)
        ranked = sorted(zip((value["host"] for value in values), range(self.n_actors), strict=True))
        self.actors = [self.actors[number] for _, number in ranked]
        self.names = [f"{host} {number}" for number, (host, _) in enumerate(ranked)]

    def _answer(self, task: Task) -> dict[str, Any]:
        documents = list(dict.fromkeys(task.documents))
        parts = parts_of(documents, self.n_actors, lambda path: self.names.index(home_of(path, self.names)))
        chosen = choose_passages(task, parts, self._calls)
        stream = (
            self.actors[chosen.part].answer.options(num_returns="streaming").remote([chosen.task.to_json()])
        )
        _, row = self.ray.get(next(stream))
        return with_unread(row, chosen)

    def _calls(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What each part's actor says. Raises InputError for documents that cannot be read."""
        asked = zip(self.actors, arguments, strict=False)
        values: list[Any] = self.ray.get([getattr(actor, method).remote(*given) for actor, given in asked])
        for value in values:
            if isinstance(value, dict) and "failed" in value:
                raise InputError(*value["failed"])
        return values
