"""How much memory this process may still take: RAM, cgroup limits (v1, v2), RLIMIT_AS. Knows no models."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["Available", "available", "format_bytes"]

_UNLIMITED = 1 << 60
_ADDRESS_SPACE_RESERVE = 192 << 20  # thread stacks, allocator arenas, libraries still to be loaded
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Available:
    """`ram_bytes` may be filled before anything is killed or swapped; file pages that can be dropped count
    as free. `address_space_bytes` may still be mapped (files too); None without a limit. `limited_by` names
    what sets ram_bytes.
    """

    ram_bytes: int
    address_space_bytes: int | None = None
    limited_by: str = "free memory"


def available(root: Path = Path("/")) -> Available:
    """What is free now. `root` holds proc/ and sys/ (another folder in tests)."""
    candidates = [(psutil.virtual_memory().available, "free memory")]
    if sys.platform == "linux":
        candidates += [(free, "the cgroup's memory limit") for free in _cgroup_free(root)]
    ram, limited_by = min(candidates)
    return Available(max(0, ram), _address_space_left(), limited_by)


def format_bytes(n_bytes: int) -> str:
    """Three digits and a binary unit: "1.50 GiB", "812 MiB"."""
    value, unit = (n_bytes / _GIB, "GiB") if n_bytes >= _GIB else (n_bytes / (1 << 20), "MiB")
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f} {unit}"


def _address_space_left() -> int | None:
    if sys.platform == "win32":
        return None
    import resource  # not on Windows

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= _UNLIMITED:
        return None
    mapped = int(psutil.Process(os.getpid()).memory_info().vms)
    return max(0, limit - mapped - _ADDRESS_SPACE_RESERVE)


def _cgroup_free(root: Path) -> list[int]:
    """Free bytes under each memory limit above this process."""
    free = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers:
            base, names = (
                root / "sys/fs/cgroup",
                ("memory.max", "memory.current", "inactive_file", "active_file"),
            )
        elif "memory" in controllers.split(","):
            base = root / "sys/fs/cgroup/memory"
            names = (
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file",
                "total_active_file",
            )
        else:
            continue
        parts = [part for part in group.split("/") if part and part != ".."]
        folders = [base.joinpath(*parts[:n]) for n in range(len(parts), -1, -1)]
        free += [left for folder in folders if (left := _left_in(folder, names)) is not None]
    return free


def _left_in(folder: Path, names: tuple[str, str, str, str]) -> int | None:
    """limit - usage + file pages that can be dropped, in one cgroup; None without a limit."""
    limit, usage = _read(folder / names[0]).strip(), _read(folder / names[1]).strip()
    if not limit.isdecimal() or not usage.isdecimal() or int(limit) >= _UNLIMITED:
        return None
    droppable = 0
    for line in _read(folder / "memory.stat").splitlines():
        key, _, value = line.partition(" ")
        if key in names[2:] and value.isdecimal():
            droppable += int(value)
    return max(0, int(limit) - int(usage) + droppable)


def _read(path: Path) -> str:
    """The file's text; empty where it does not exist or may not be read, which means "no limit known"."""
    try:
        return path.read_text("utf-8")
    except OSError:
        return ""
