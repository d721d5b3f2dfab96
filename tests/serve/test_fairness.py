"""Weights decide how much each tenant is served, targets who is first among equals; quotas hold over time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.serve.fairness import FairQueue, QueueFull
from localctx.serve.keys import Tenant
from localctx.serve.quota import TokenBucket

GOLD, BRONZE = Tenant("gold", tenant_weight=4), Tenant("bronze", tenant_weight=1)


def serve_all(queue: FairQueue[int], n: int, cost: float) -> list[str]:
    served = []
    for _ in range(n):
        entry = queue.pop()
        assert entry is not None
        served.append(entry[0].name)
        queue.charge(entry[0], cost)
        queue.finished(entry[0])
    return served


def test_who_waits_is_served_in_proportion_to_its_weight() -> None:
    queue = FairQueue[int](400, 2)
    for number in range(100):
        queue.push(BRONZE, number, 0)
        queue.push(GOLD, number, 0)
    served = serve_all(queue, 100, 1000)
    assert served.count("gold") == pytest.approx(80, abs=2)


def test_idle_time_earns_no_credit() -> None:
    queue = FairQueue[int](100, 2)
    for number in range(20):
        queue.push(GOLD, number, 0)
    serve_all(queue, 20, 1000)
    for number in range(20):
        queue.push(BRONZE, number, 0)
        queue.push(GOLD, number, 0)
    assert serve_all(queue, 5, 1000).count("gold") >= 3


def test_among_equals_the_request_that_is_due_first_is_next() -> None:
    fast, slow = Tenant("fast", latency_slo_ms=100), Tenant("slow", latency_slo_ms=5000)
    queue = FairQueue[int](10, 2)
    queue.push(slow, 0, now=0)
    queue.push(fast, 1, now=1)
    assert serve_all(queue, 2, 10) == ["fast", "slow"]
    queue.push(slow, 0, now=0)
    queue.push(fast, 1, now=1)
    queue.charge(fast, 10_000)
    assert serve_all(queue, 2, 10) == ["slow", "fast"]


def test_one_of_several_tenants_cannot_fill_the_line() -> None:
    queue = FairQueue[int](10, 2)
    for number in range(5):
        queue.push(GOLD, number, 0)
    with pytest.raises(QueueFull):
        queue.push(GOLD, 5, 0)
    for number in range(5):
        queue.push(BRONZE, number, 0)
    with pytest.raises(QueueFull):
        queue.push(BRONZE, 5, 0)
    assert queue.remove(GOLD, 2) and not queue.remove(GOLD, 2)
    queue.push(GOLD, 6, 0)
    assert sorted(queue.drain()) == [0, 0, 1, 1, 2, 3, 3, 4, 4, 6]
    assert (len(queue), queue.pop()) == (0, None)


@settings(deadline=None)
@given(
    st.floats(1, 1000),
    st.lists(st.tuples(st.floats(0, 5), st.floats(1, 3000)), min_size=1, max_size=40),
)
def test_a_bucket_gives_no_more_than_its_rate_and_one_request_ahead(
    rate: float, requests: list[tuple[float, float]]
) -> None:
    bucket, now, taken = TokenBucket(rate, 0), 0.0, 0.0
    for pause_s, n_tokens in requests:
        now += pause_s
        if bucket.wait_s(now) == 0:
            assert taken <= rate * (10 + now) * (1 + 1e-9)
            bucket.take(n_tokens, now)
            taken += n_tokens
    assert bucket.wait_s(now + bucket.wait_s(now) * (1 + 1e-6) + 1e-6) == 0


def test_what_was_reserved_and_not_used_is_given_back() -> None:
    bucket = TokenBucket(10, 0)
    bucket.take(150, 0)
    assert bucket.wait_s(0) == pytest.approx(5)
    bucket.take(-140, 0)
    assert bucket.wait_s(0) == 0
    bucket.take(-1000, 0)
    bucket.take(101, 0)
    assert bucket.wait_s(0) > 0


def test_without_a_limit_nobody_waits() -> None:
    bucket = TokenBucket(None, 0)
    bucket.take(1e12, 0)
    assert bucket.wait_s(0) == 0
