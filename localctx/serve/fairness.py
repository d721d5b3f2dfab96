"""Who is next: a bounded queue for several tenants, weighted-fair among them. Pure: no clock, no thread.

Each tenant has a virtual time that grows with the tokens it was served, divided by its weight; the one with
the least is next (start-time fair queueing: Goyal, Vin and Cheng 1996). Of tenants whose times are within one
request of each other, the one whose oldest request is due first is next: a latency target decides among
equals and cannot starve anyone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from localctx.serve.keys import Tenant

__all__ = ["FairQueue", "QueueFull"]

Item = TypeVar("Item")
QUANTUM_TOKENS = 256.0
"""Tokens by which tenants may be apart and still count as equal."""
NO_TARGET_S = 60.0
"""When the request of a tenant without a latency target is due."""


class QueueFull(Exception):
    """No more is taken now."""


@dataclass(slots=True)
class _Lane(Generic[Item]):
    """One tenant's requests, with the times at which they are due, and the tokens it was served."""

    tenant: Tenant
    virtual: float = 0.0
    waiting: deque[tuple[float, Item]] = field(default_factory=deque)
    n_running: int = 0

    @property
    def is_active(self) -> bool:
        return bool(self.waiting) or self.n_running > 0


class FairQueue(Generic[Item]):
    """At most `limit` requests wait, of one tenant among several at most half of them."""

    def __init__(self, limit: int, n_tenants: int) -> None:
        self._limit = limit
        self._limit_each = limit if n_tenants == 1 else max(1, limit // 2)
        self._lanes: dict[str, _Lane[Item]] = {}

    def __len__(self) -> int:
        return sum(len(lane.waiting) for lane in self._lanes.values())

    def n_waiting(self, tenant: Tenant) -> int:
        """Requests of a tenant that wait."""
        return len(self._lane(tenant).waiting)

    def push(self, tenant: Tenant, item: Item, now: float) -> None:
        """Wait in line. Raises QueueFull."""
        lane = self._lane(tenant)
        if len(self) >= self._limit or len(lane.waiting) >= self._limit_each:
            raise QueueFull
        if not lane.is_active:  # idle time earns no credit
            lane.virtual = max(lane.virtual, self._virtual_now())
        target_s = NO_TARGET_S if tenant.latency_slo_ms is None else tenant.latency_slo_ms / 1000
        lane.waiting.append((now + target_s, item))

    def pop(self) -> tuple[Tenant, Item] | None:
        """The next request, which runs now; None where none waits."""
        lanes = [lane for lane in self._lanes.values() if lane.waiting]
        if not lanes:
            return None
        least = min(lane.virtual for lane in lanes)
        equal = [
            lane for lane in lanes if (lane.virtual - least) * lane.tenant.tenant_weight < QUANTUM_TOKENS
        ]
        lane = min(equal, key=lambda one: (one.waiting[0][0], one.virtual))
        lane.n_running += 1
        return lane.tenant, lane.waiting.popleft()[1]

    def charge(self, tenant: Tenant, n_tokens: float) -> None:
        """Tokens that were computed for a tenant."""
        self._lane(tenant).virtual += n_tokens / tenant.tenant_weight

    def finished(self, tenant: Tenant) -> None:
        """A request that pop() gave is over."""
        self._lane(tenant).n_running -= 1

    def remove(self, tenant: Tenant, item: Item) -> bool:
        """Take a request out of the line again; whether it was in it."""
        waiting = self._lane(tenant).waiting
        for entry in waiting:
            if entry[1] is item:
                waiting.remove(entry)
                return True
        return False

    def drain(self) -> Iterator[Item]:
        """Everything that waits, out of the line."""
        for lane in self._lanes.values():
            while lane.waiting:
                yield lane.waiting.popleft()[1]

    def _virtual_now(self) -> float:
        active = [lane.virtual for lane in self._lanes.values() if lane.is_active]
        return min(active) if active else max((lane.virtual for lane in self._lanes.values()), default=0.0)

    def _lane(self, tenant: Tenant) -> _Lane[Item]:
        if tenant.name not in self._lanes:
            self._lanes[tenant.name] = _Lane(tenant)
        return self._lanes[tenant.name]
