"""The longest context that a run would get on a machine, and the refusals before anything is allocated."""

from __future__ import annotations

from localctx.engine.estimate import CELL_STEP, require, require_gpu
from localctx.engine.limits import check_context_size
from localctx.engine.options import RopeOptions
from localctx.engine.rope_scaling import longest_context, reach
from localctx.errors import OutOfMemory, UsageError
from localctx.forecast.fitting import Fitting
from localctx.settings import Settings
from localctx.values import ModelInfo

__all__ = ["context_limit", "require_fit", "wanted_layers"]


def wanted_layers(settings: Settings, n_layers: int, vram_bytes: int) -> int | None:
    """Layers asked for; None: as many as fit. Raises UsageError where there is no GPU for them."""
    if settings.gpu_layers == "auto":
        return None
    wanted = n_layers + 1 if settings.gpu_layers == "all" else int(settings.gpu_layers)
    if wanted and not vram_bytes:
        raise UsageError(f"--gpu-layers {settings.gpu_layers}: there is no GPU", "--vram SIZE plans for one")
    return wanted


def context_limit(fit: Fitting, info: ModelInfo, rope: RopeOptions, settings: Settings, n_seq: int) -> int:
    """The largest context of a run, as run.start() would find it on the machine.

    Raises UsageError for a context that nothing provides for, OutOfMemory for one that does not fit.
    """
    trained, asked = info.n_ctx_train, settings.ctx
    longest = longest_context(fit.header, rope) or CELL_STEP
    if settings.strategy == "stream" and asked and 0 < trained < asked:
        asked, longest = None, min(longest, trained)
    if asked is None:
        largest = fit.largest_n_ctx(longest)
        if not largest:
            require_fit(fit, min(CELL_STEP, longest), info.name)
        return largest
    check_context_size(info, asked, n_seq, reach(fit.header, rope), force=settings.force)
    if not settings.force and not fit.fits(asked):
        require_fit(fit, asked, info.name)
    return asked


def require_fit(fit: Fitting, n_ctx: int, name: str) -> tuple[str, ...]:
    """Notices about memory. Raises OutOfMemory, with both sizes, for a context that does not fit."""
    n_gpu = fit.layers(n_ctx)
    needed = fit.needed(n_ctx, n_gpu)
    require_gpu(needed, fit.vram_bytes, name)
    largest = 0 if fit.fits(n_ctx) else fit.largest_n_ctx(n_ctx)
    notices = require(needed, fit.ram, name, largest)
    if not fit.fits(n_ctx):  # a GPU that is too small for a single layer
        raise OutOfMemory(f"{name}: {n_gpu} layers do not fit the GPU", "fewer --gpu-layers")
    return notices
