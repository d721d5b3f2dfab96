"""CPU counting under container limits."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from localctx.engine.limits import spin_count, usable_cpus


def test_without_limits_it_is_what_the_process_may_use(tmp_path: Path) -> None:
    may_use = len(os.sched_getaffinity(0))
    assert usable_cpus(tmp_path) == min(may_use, psutil.cpu_count(logical=False) or may_use)


@pytest.mark.parametrize(
    ("limit", "n"), [("50000 100000", 1), ("100000 100000", 1), ("max 100000", None), ("junk", None)]
)
def test_a_quota_of_cgroup_v2_counts(limit: str, n: int | None, tmp_path: Path) -> None:
    free = usable_cpus(tmp_path)
    (tmp_path / "cpu.max").write_text(limit + "\n")
    assert usable_cpus(tmp_path) == (free if n is None else n)


def test_a_quota_of_cgroup_v1_counts(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("30000\n")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert usable_cpus(tmp_path) == 1


def test_threads_spin_only_where_cpus_are_free() -> None:
    assert spin_count(0.2, 8) > 0
    assert spin_count(6.0, 8) == 0
    assert spin_count(1.0, 1) == 0
