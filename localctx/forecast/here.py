"""This machine as plans and suggestions see it, with what was measured on it. Loads no model."""

from __future__ import annotations

from localctx.engine.limits import usable_cpus
from localctx.engine.no_alloc import Wanted
from localctx.forecast.buffers import count
from localctx.forecast.calibration import Calibration, kept
from localctx.forecast.machine import Machine, Sizes, machine_of
from localctx.settings import Settings

__all__ = ["gpus_here", "here"]


def gpus_here() -> tuple[tuple[str, int], ...]:
    """(name, free bytes) of each graphics processor, as a child process sees them."""
    from localctx.engine.llama import library

    return count(Wanted("", 0, ())).gpus if library().llama_supports_gpu_offload() else ()


def here(settings: Settings, sizes: Sizes) -> tuple[Machine, int, list[Calibration]]:
    """(the machine, threads worth starting, measured speeds). Raises UsageError for a size that is none."""
    sizes.check()
    machine = machine_of(sizes, gpus_here(), settings.store_root)
    return machine, settings.threads or usable_cpus(), kept(settings.store_root)
