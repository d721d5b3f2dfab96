"""One model under one run's settings on one machine: what all of a plan is about. Loads no weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localctx.engine.estimate import ContextSettings
from localctx.engine.gguf import GGUFHeader
from localctx.engine.limits import usable_cpus
from localctx.engine.llama import LlamaModel
from localctx.engine.model_facts import n_layer
from localctx.engine.no_alloc import Wanted, WantedContext
from localctx.engine.shape import shape_of
from localctx.forecast.buffers import Counted, count
from localctx.forecast.calibration import kept
from localctx.forecast.fitting import Fitting
from localctx.forecast.here import gpus_here
from localctx.forecast.limits import context_limit, wanted_layers
from localctx.forecast.machine import Machine, Sizes, machine_of
from localctx.forecast.speed import Forecast, speed_of
from localctx.settings import Settings

__all__ = ["Site", "site_of"]


@dataclass(frozen=True, slots=True)
class Site:
    """limit: the longest context that a run would get here."""

    model: LlamaModel
    path: Path
    header: GGUFHeader
    settings: Settings
    machine: Machine
    fit: Fitting
    limit: int

    @property
    def n_layer(self) -> int:
        """Layers of the model."""
        return n_layer(self.header)

    @property
    def types(self) -> tuple[str, str]:
        """The cache's types."""
        return self.settings.cache.type_k, self.settings.cache.type_v

    def forecast(self, n_ctx: int) -> Forecast:
        """Speeds, with the layers on the GPU that a context of that many cells leaves room for."""
        return speed_of(
            self.model.info.fingerprint,
            shape_of(self.header),
            self.machine,
            self.settings.threads or usable_cpus(),
            min(1.0, self.fit.layers(n_ctx) / max(1, self.n_layer)),
            kept(self.settings.store_root),
        )

    def counted(self, contexts: Sequence[WantedContext], n_ctx: int) -> Counted:
        """What llama.cpp says of the contexts; layers on a GPU as for one of n_ctx cells, if there is one."""
        layers = self.fit.layers(n_ctx) if self.machine.gpu else 0
        return count(_wanted(self.model, self.path, layers, contexts))


def site_of(model: LlamaModel, path: Path, settings: Settings, sizes: Sizes, n_seq: int) -> Site:
    """The model with contexts of n_seq sequences.

    Raises UsageError for sizes, layers and contexts that cannot be, OutOfMemory for what does not fit.
    """
    header = model.header
    machine = machine_of(sizes, gpus_here(), settings.store_root)
    layers = wanted_layers(settings, n_layer(header), machine.vram_bytes)
    cache = settings.cache
    context = ContextSettings(model.n_batch, n_seq, 0, cache.type_k, cache.type_v)
    fit = Fitting(header, context, machine.ram, machine.vram_bytes, layers)
    limit = context_limit(fit, model.info, model.options.rope, settings, n_seq)
    return Site(model, path, header, settings, machine, fit, limit)


def _wanted(model: LlamaModel, path: Path, layers: int, contexts: Sequence[WantedContext]) -> Wanted:
    options = model.options
    return Wanted(
        path=str(path),
        gpu_layers=layers,
        contexts=tuple(contexts),
        n_threads=options.n_threads,
        n_batch=model.n_batch,
        flash_attn=options.flash_attn,
        overrides=options.overrides,
        rope=options.rope,
    )
