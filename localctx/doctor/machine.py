"""Looks at Python, the CPU, memory and the folders that localctx writes to. Knows nothing of models."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import platformdirs

import localctx
from localctx.doctor.report import Finding
from localctx.engine.gguf import display
from localctx.engine.limits import usable_cpus
from localctx.engine.memory import available, format_bytes

__all__ = ["check_cpu", "check_folders", "check_memory", "check_platform"]

_ENOUGH_RAM_BYTES = 1 << 30
_ENOUGH_DISK_BYTES = 1 << 30
_DISPATCH = "make install CPU=all builds llama.cpp for AVX-512 too"
_OLDEST_PYTHON = (3, 11)


def check_platform() -> Iterator[Finding]:
    """Versions of localctx, Python and the system."""
    version = platform.python_version()
    detail = f"localctx {localctx.__version__}, Python {version}, {platform.platform()}"
    if sys.version_info < _OLDEST_PYTHON:
        yield Finding("python", "fail", detail, "install Python 3.11 or newer")
    else:
        yield Finding("python", "ok", detail)


def check_cpu(cpuinfo: Path = Path("/proc/cpuinfo")) -> Iterator[Finding]:
    """Cores this process may use, and the instruction sets that matter to the build of llama.cpp."""
    model, flags = _cpuinfo(cpuinfo)
    detail = f"{model or platform.machine()}, {usable_cpus()} usable"
    if platform.machine().lower() not in ("x86_64", "amd64") or not flags:
        yield Finding("cpu", "ok", detail)
        return
    present = [name for name in ("avx2", "fma", "f16c", "avx512f", "amx_tile") if name in flags]
    level = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "less than AVX2"
    detail += f"; {level}, has {', '.join(present) or 'none of what matters'}"
    if "avx2" not in flags:
        yield Finding("cpu", "warn", detail, "llama.cpp has to be built without AVX2: make install GPU=cpu")
    elif "amx_tile" in flags:
        note = "virtual machines may mask AMX, so llama.cpp is not to be built with GGML_NATIVE=ON"
        yield Finding("cpu", "ok", f"{detail}. {note}; {_DISPATCH}")
    elif "avx512f" in flags:
        yield Finding("cpu", "ok", f"{detail}. {_DISPATCH}")
    else:
        yield Finding("cpu", "ok", detail)


def check_memory() -> Iterator[Finding]:
    """Memory that may still be taken, with the limits of containers and of the shell."""
    free = available()
    detail = f"{format_bytes(free.ram_bytes)} may be used (set by {free.limited_by})"
    least = free.ram_bytes
    if free.address_space_bytes is not None:
        detail += f"; address space limited to {format_bytes(free.address_space_bytes)} more"
        least = min(least, free.address_space_bytes)
    if least < _ENOUGH_RAM_BYTES:
        yield Finding(
            "memory", "warn", detail, "the embedded model wants 1 GiB: free some or raise the limit"
        )
    else:
        yield Finding("memory", "ok", detail)


def check_folders(models: Path) -> Iterator[Finding]:
    """Whether the folders can be written, and the free disk behind them. Creates nothing that stays."""
    places = {
        "config": Path(platformdirs.user_config_dir("localctx")),
        "cache": Path(platformdirs.user_cache_dir("localctx")),
        "models": models,
    }
    for name, path in places.items():
        existing = next((folder for folder in (path, *path.parents) if _exists(folder)), path)
        problem = _write_problem(existing)
        if problem:
            where = display(path)
            yield Finding(f"{name} folder", "warn", f"{where}: {problem}", _elsewhere(name))
            continue
        free = shutil.disk_usage(existing).free
        detail = f"{display(path)}: writable, {format_bytes(free)} free"
        if free < _ENOUGH_DISK_BYTES:
            yield Finding(f"{name} folder", "warn", detail, f"little disk is left. {_elsewhere(name)}")
        else:
            yield Finding(f"{name} folder", "ok", detail)


def _exists(path: Path) -> bool:
    """Whether it is there and may be looked at."""
    try:
        return path.exists()
    except OSError:
        return False


def _elsewhere(name: str) -> str:
    """How to move a folder."""
    variable = {"config": "XDG_CONFIG_HOME", "cache": "XDG_CACHE_HOME", "models": "LOCALCTX_MODELS_DIR"}[name]
    return f"make it writable, or set {variable} to another folder"


def _write_problem(folder: Path) -> str:
    """Why no file can be made in the folder; empty when it can."""
    if not folder.is_dir():
        return "is not a folder"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"localctx")
            file.flush()
    except OSError as error:
        return os.strerror(error.errno or errno.EIO)
    return ""


def _cpuinfo(path: Path) -> tuple[str, frozenset[str]]:
    """The CPU's name and flags as Linux tells them; nothing elsewhere."""
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return "", frozenset()
    entries = [line.partition(":")[::2] for line in lines]
    model = next((value.strip() for key, value in entries if key.strip() == "model name"), "")
    flags = next((value.split() for key, value in entries if key.strip() == "flags"), [])
    return model, frozenset(flags)
