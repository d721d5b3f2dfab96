"""Actors of a Ray cluster (extra `ray`): one model each, documents at home on a host. Knows no results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from localctx.batch.tasks import Task
from localctx.errors import NotYetAvailable
from localctx.settings import Settings


def check_installed() -> None:
    """Later."""
    raise NotYetAvailable("ray")


def answer_by_actors(
    groups: Sequence[Sequence[Task]], settings: Settings, n_workers: int
) -> Iterator[tuple[Task, dict[str, Any]]]:
    """Later."""
    raise NotYetAvailable("ray")
