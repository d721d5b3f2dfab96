"""Seconds from costs, and costs from measured speeds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.forecast.rates import Rates, fit

H200 = Rates(93e-6, 2.24e-9, 3.3e-3, 0.0)


def test_dense_prefill_grows_with_the_square() -> None:
    assert H200.prefill(1_000_000) == pytest.approx(93 + 1120, rel=0.01)
    assert H200.prefill(4_000_000) == pytest.approx(372 + 17_920, rel=0.01)


def test_streamed_prefill_grows_with_the_length() -> None:
    held = 8192
    one, four = (H200.streamed(n * 1_000_000, held) for n in (1, 4))
    assert one == pytest.approx(93 + 18.3, rel=0.01)
    assert four == pytest.approx(4 * one, rel=0.01)
    assert H200.streamed(held, held) == pytest.approx(H200.prefill(held))


@given(st.integers(0, 5000), st.integers(0, 5000))
@settings(deadline=None)
def test_prefill_in_two_parts_takes_as_long_as_in_one(first: int, second: int) -> None:
    parts = H200.prefill(first) + H200.prefill(second, first)
    assert parts == pytest.approx(H200.prefill(first + second), abs=1e-12)


@given(st.floats(1e-6, 1e-2), st.floats(0.0, 1e-6))
@settings(deadline=None)
def test_costs_are_found_again(base: float, slope: float) -> None:
    points = [(depth, 1 / (base + slope * depth)) for depth in (100.0, 2000.0, 8000.0)]
    found, found_slope = fit(points)
    assert found == pytest.approx(base, rel=0.02)
    assert found_slope == pytest.approx(max(slope, 1e-6 * base), rel=0.05, abs=base * 3e-6)


def test_one_step_that_warmed_up_or_waited_tilts_nothing() -> None:
    depths = [256.0, *(float(depth) for depth in range(1024, 16_384, 1024))]
    costs = [9e-5 + 2e-9 * depth for depth in depths]
    for place in (0, 7, -1):
        points = [
            (depth, 1 / (cost * (3 if number == place % len(depths) else 1)))
            for number, (depth, cost) in enumerate(zip(depths, costs, strict=True))
        ]
        base, slope = fit(points)
        assert base == pytest.approx(9e-5, rel=0.02)
        assert slope == pytest.approx(2e-9, rel=0.1)


def test_points_at_one_depth_tell_no_slope() -> None:
    assert fit([(64.0, 100.0), (70.0, 50.0)]) == (0.015, None)
    with pytest.raises(ValueError, match="no speed"):
        fit([])


def test_noise_gives_no_cost_below_zero() -> None:
    base, slope = fit([(100.0, 1000.0), (4000.0, 10.0)])
    assert base > 0
    assert slope is not None and slope > 0
    base, slope = fit([(100.0, 10.0), (4000.0, 1000.0)])  # faster when deeper: noise
    assert base > 0
    assert slope is not None and slope > 0


@pytest.mark.parametrize("slope", [-2e-9, 0.0, 1e-9])
def test_what_small_depths_hide_is_at_least_a_share(slope: float) -> None:
    points = [(depth, 1 / (9e-5 + slope * depth)) for depth in (512.0, 1536.0, 2560.0, 3584.0)]
    base, found = fit(points, 2e-5)
    assert found == pytest.approx(2e-5 * base)
    assert base == pytest.approx(9e-5, rel=0.15)
    for steeper, depths in ((4e-9, (512.0, 3584.0)), (1e-9, (512.0, 16_384.0))):
        points = [(depth, 1 / (9e-5 + steeper * depth)) for depth in depths]
        assert fit(points, 2e-5)[1] == pytest.approx(steeper)
