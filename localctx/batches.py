"""Things in order, as many together as a limit allows. Knows neither tokens nor bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

__all__ = ["batches"]

Item = TypeVar("Item")


def batches(items: Iterable[Item], size: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """The items in order, of `most` in size together at most; a larger one is a batch of its own."""
    batch: list[Item] = []
    total = 0
    for one in items:
        if batch and total + size(one) > most:
            yield batch
            batch, total = [], 0
        batch.append(one)
        total += size(one)
    if batch:
        yield batch
