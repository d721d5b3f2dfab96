"""The class of machine that a measurement belongs to, as JSON values. Knows no benchmark."""

from __future__ import annotations

import os
import platform
from typing import Any

from localctx.forecast.machine import cpu_name

__all__ = ["machine"]


def machine(n_threads: int | None = None) -> dict[str, Any]:
    """CPU, cores, threads used, instructions, memory, GPUs, versions, and the load average now (None where
    the system has none): a busy machine is no baseline.
    """
    import psutil

    import localctx
    from localctx._native import simd_level
    from localctx.engine.limits import usable_cpus
    from localctx.engine.llama import build_info

    build = build_info()
    return {
        "cpu": cpu_name(),
        "n_cores": usable_cpus(),
        "n_threads": n_threads or usable_cpus(),
        "simd": simd_level(),
        "ram_bytes": psutil.virtual_memory().total,
        "gpus": build["devices"],
        "system": platform.platform(),
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "localctx": localctx.__version__,
        "llama_cpp_python": build["llama_cpp_python"],
    }
