"""Actors of a Ray cluster (extra `ray`): one model each, documents at home on one host. Knows no results.

The cluster is that of RAY_ADDRESS, else one is started here. A document's home is chosen by a hash of its
content and the hosts' names: the same host in every run, so that its store has it. Files are read by the
actors, under the paths of the host that started them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from localctx.batch.answering import Answering
from localctx.batch.dispatch import Dispatch
from localctx.batch.tasks import Task
from localctx.batch.workers import lost_row
from localctx.errors import LocalctxError, ModelError, UsageError
from localctx.settings import Settings

__all__ = ["answer_by_actors", "check_installed"]

OBJECT_STORE_BYTES = 100 << 20
"""Only jobs and rows pass through it."""
MAX_START_DEATHS = 3


def check_installed() -> None:
    """Raises UsageError where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise UsageError("--engine ray needs Ray, which is not installed", "pip install 'localctx[ray]'")


class Actor:
    """What runs in the cluster: one model, asked for groups of tasks."""

    def __init__(self, settings: dict[str, Any], folder: str) -> None:
        """`folder`: what relative names are relative to."""
        self._settings = Settings(**settings)
        self._folder = folder
        self._answering: Answering | None = None

    def begin(self) -> dict[str, Any]:
        """Open the model: {"host": name}, or {"fatal": [message, hint]}."""
        try:
            os.chdir(self._folder)
            self._answering = Answering(self._settings)
        except OSError as error:
            return {
                "fatal": [f"{socket.gethostname()}: {self._folder}: {error.strerror}", "share the folder"]
            }
        except LocalctxError as error:
            return {"fatal": [error.message, error.hint]}
        return {"host": socket.gethostname()}

    def answer(self, tasks: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
        """(content, row) of each task, as soon as it is there."""
        assert self._answering is not None  # noqa: S101  # begin() comes first
        for task, row in self._answering.answer([Task.from_json(value) for value in tasks]):
            yield task.content, row


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
        n_actors = min(n_workers or n_gpus or len(hosts), len(groups))
        dispatch = Dispatch(groups, home=lambda task: home_of(task.place, hosts))
        actors = _Actors(ray, dispatch, _placed(ray, settings, n_actors, n_gpus), n_actors)
        while not dispatch.is_over:
            yield from actors.step()


def home_of(place: str, hosts: Sequence[str]) -> str:
    """The host of a set of documents: it stays when other hosts come or go."""
    return max(hosts, key=lambda host: hashlib.blake2b(f"{host} {place}".encode()).digest())


def _placed(ray: Any, settings: Settings, n_actors: int, n_gpus: int) -> tuple[Any, Settings]:
    """The actors' class with what each takes of its host, and the settings that fit that."""
    n_threads = settings.threads or max(1, int(ray.cluster_resources().get("CPU", 1)) // n_actors)
    takes = {"num_cpus": n_threads, "num_gpus": 1 if n_gpus >= n_actors else 0}
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
    if n_workers is not None:
        own["num_cpus"] = max(n_workers, os.cpu_count() or 1)
    try:
        ray.init(address or "local", log_to_driver=False, logging_level="ERROR", **({} if address else own))
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())
        raise LocalctxError(
            f"no Ray cluster at {address or 'this host'}: {reason}", "set RAY_ADDRESS"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


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
        while len(self.starting) + len(self.streams) < self.n_actors and self.dispatch.n_waiting:
            kind, settings = self.placed
            actor = kind.remote(asdict(settings), str(Path.cwd()))
            self.starting[actor.begin.remote()] = actor
        (ready,), _ = self.ray.wait([*self.starting, *self.streams], num_returns=1)
        if ready in self.starting:
            self._begun(self.starting.pop(ready), ready)
        else:
            yield from self._heard(ready)

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
