"""Sizes an engine context may have, and the CPU threads it uses; knows no llama.cpp."""

from __future__ import annotations

import math
import os
from pathlib import Path

from localctx.errors import UsageError
from localctx.values import ModelInfo

__all__ = ["MAX_SEQUENCES", "check_context_size", "spin_count", "usable_cpus"]

MAX_SEQUENCES = 256  # LLAMA_MAX_SEQ


def check_context_size(
    info: ModelInfo, n_ctx: int, n_seq: int, longest: int | None, *, force: bool = False
) -> None:
    """Raises UsageError for sizes that cannot be, or a length that nothing provides for.

    `longest`: the context that training, or the RoPE scaling in force, reaches; None: any. `force`: the user
    insists.
    """
    if n_ctx < 1:
        raise UsageError(f"a context of {n_ctx} tokens", "--ctx N with N of at least 1")
    if not 1 <= n_seq <= MAX_SEQUENCES:
        raise UsageError(f"{n_seq} parallel sequences", f"from 1 to {MAX_SEQUENCES}")
    if longest is None or force or n_ctx <= longest:
        return
    if longest == info.n_ctx_train:
        raise UsageError(
            f"--ctx {n_ctx} is more than {info.name} was trained for ({longest:,} tokens)",
            f"--ctx {longest} or less, --strategy stream, --rope-scaling auto, or --force",
        )
    raise UsageError(
        f"--ctx {n_ctx} is more than {info.name} reaches ({longest:,} tokens; trained for"
        f" {info.n_ctx_train:,}, as its RoPE is set)",
        f"--ctx {longest} or less, or --rope-scaling auto alone",
    )


def usable_cpus(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """CPU threads worth starting: the affinity mask, cut to the physical cores (two threads of one core are
    not faster) and to the cgroup's quota (v2 or v1); at least 1.
    """
    import psutil

    n_cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    n_cores = psutil.cpu_count(logical=False) or n_cpus
    quota = _cgroup_quota(cgroup)
    return max(1, min(n_cpus, n_cores, n_cpus if quota is None else math.ceil(quota)))


def spin_count(load: float, n_cpus: int) -> int:
    """How often a waiting thread of libgomp looks again before it sleeps, given the machine's load average.

    Spinning is fastest while every thread has a CPU of its own and ruinous otherwise: on 2 CPUs under a load
    of 8, decoding was measured at 0.4 tokens/s with 100,000 (libgomp's default is 300,000), 1.4 with 10,000,
    11 with 0.
    """
    return 10_000 if load < n_cpus / 2 else 0


def _cgroup_quota(cgroup: Path) -> float | None:
    """CPUs' worth of time the container may use, or None where nothing limits it."""
    try:
        limit, period = (cgroup / "cpu.max").read_text("ascii").split()
    except (OSError, ValueError):
        try:
            limit = (cgroup / "cpu/cpu.cfs_quota_us").read_text("ascii").strip()
            period = (cgroup / "cpu/cpu.cfs_period_us").read_text("ascii").strip()
        except OSError:
            return None
    if not limit.isdecimal() or not period.isdecimal() or int(period) == 0:
        return None
    return int(limit) / int(period)
