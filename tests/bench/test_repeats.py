"""Medians, turns and memory; nothing here depends on how fast the machine is."""

from __future__ import annotations

import numpy as np
import pytest

from localctx.bench.machine import machine
from localctx.bench.observed import rate_between
from localctx.bench.repeats import PeakMemory, Spread, check_repeats, in_turns, ratio
from localctx.errors import UsageError


def test_a_spread_is_median_and_ends() -> None:
    spread = Spread.of([3.0, 1.0, 2.0, 10.0])
    assert spread == Spread(2.5, 1.0, 10.0, 4)
    assert spread.shown(1) == "2.5 (1.0-10.0)"
    assert Spread.of([1234.5678]).shown() == "1,234.57"
    assert Spread.of([1234.5678]).to_json() == {"median": 1235.0, "lowest": 1235.0, "highest": 1235.0, "n": 1}


def test_a_ratio_needs_both() -> None:
    assert ratio(Spread.of([6.0]), Spread.of([4.0])) == 1.5
    assert ratio(Spread.of([6.0]), None) is None
    assert ratio(Spread.of([6.0]), Spread.of([0.0])) is None


def test_contestants_take_turns_at_being_first() -> None:
    seen: list[str] = []

    def contestant(name: str) -> int:
        seen.append(name)
        return len(seen)

    found = in_turns({name: lambda name=name: contestant(name) for name in "abc"}, 3)  # type: ignore[misc]  # a default binds the name
    assert "".join(seen) == "abccbaabc"
    assert found == {"a": [1, 6, 7], "b": [2, 5, 8], "c": [3, 4, 9]}


@pytest.mark.parametrize("n", [0, -1, 1001])
def test_numbers_of_repeats_that_make_no_sense(n: int) -> None:
    with pytest.raises(UsageError, match="--repeats"):
        check_repeats(n)


def test_memory_that_is_given_back_counts() -> None:
    with PeakMemory() as before:
        pass
    with PeakMemory() as during:
        hoard = np.ones(200 << 20, np.uint8)
        during._look()
        del hoard
    assert during.peak_bytes - before.peak_bytes > 150 << 20


def test_rates_between_marks() -> None:
    marks = [(0.0, 0), (1.0, 100), (3.0, 200)]  # 100 tokens/s, then 50
    assert rate_between(marks, 0, 0.25) == pytest.approx(100)
    assert rate_between(marks, 0.75, 1) == pytest.approx(50)
    assert rate_between(marks, 0, 1) == pytest.approx(200 / 3)


def test_the_class_of_machine() -> None:
    facts = machine(3)
    assert facts["n_threads"] == 3 and facts["n_cores"] >= 1 and facts["ram_bytes"] > 1 << 28
    assert facts["cpu"] and isinstance(facts["gpus"], list) and facts["llama_cpp_python"]
