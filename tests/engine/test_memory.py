"""Free memory honours what really limits the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from localctx.engine import memory

MIB = 1 << 20


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_limits_free_memory_counts(tmp_path: Path) -> None:
    free = memory.available(tmp_path)
    assert free.ram_bytes > 0
    assert free.limited_by == "free memory"


def test_cgroup_v2_limits_of_every_level_count(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/outer/inner\n")
    group = tmp_path / "sys/fs/cgroup/outer"
    write(group / "memory.max", f"{100 * MIB}\n")
    write(group / "memory.current", f"{90 * MIB}\n")
    write(group / "memory.stat", f"anon {10 * MIB}\ninactive_file {5 * MIB}\nactive_file {2 * MIB}\n")
    write(group / "inner/memory.max", "max\n")
    write(group / "inner/memory.current", f"{50 * MIB}\n")
    free = memory.available(tmp_path)
    assert (free.ram_bytes, free.limited_by) == (17 * MIB, "the cgroup's memory limit")
    write(group / "inner/memory.max", f"{51 * MIB}\n")
    assert memory.available(tmp_path).ram_bytes == 1 * MIB


def test_cgroup_v1_limits_count(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "5:cpu:/x\n4:memory,hugetlb:/x\n0::/\n")
    group = tmp_path / "sys/fs/cgroup/memory/x"
    write(group / "memory.limit_in_bytes", str(64 * MIB))
    write(group / "memory.usage_in_bytes", str(60 * MIB))
    write(group / "memory.stat", f"total_inactive_file {3 * MIB}\n")
    assert memory.available(tmp_path).ram_bytes == 7 * MIB


def test_a_cgroup_over_its_limit_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/\n")
    write(tmp_path / "sys/fs/cgroup/memory.max", str(MIB))
    write(tmp_path / "sys/fs/cgroup/memory.current", str(2 * MIB))
    assert memory.available(tmp_path).ram_bytes == 0


def test_an_address_space_limit_counts() -> None:
    code = (
        "import resource; from localctx.engine import memory\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "print(memory.available().address_space_bytes)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    assert 1 << 30 < int(done.stdout) < 3 << 30


@pytest.mark.parametrize(
    ("n_bytes", "shown"),
    [
        (0, "0.00 MiB"),
        (3 * MIB // 2, "1.50 MiB"),
        (100 * MIB, "100 MiB"),
        (3 << 30, "3.00 GiB"),
        (5 << 40, "5,120 GiB"),
    ],
)
def test_sizes_are_shown_with_three_digits(n_bytes: int, shown: str) -> None:
    assert memory.format_bytes(n_bytes) == shown
