"""What fits a machine: the split of layers between GPU and processor, and the longest context. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from localctx.engine.estimate import CELL_STEP, ContextSettings, MemoryEstimate, estimate
from localctx.engine.gguf import GGUFHeader
from localctx.engine.memory import Available
from localctx.engine.model_facts import n_layer

__all__ = ["Fitting"]


@dataclass(frozen=True, slots=True)
class Fitting:
    """A model under context settings on a machine. wanted_layers: on the GPU, as asked for; None: as many as
    fit.
    """

    header: GGUFHeader
    settings: ContextSettings
    ram: Available
    vram_bytes: int
    wanted_layers: int | None = None

    @property
    def most_layers(self) -> int:
        """All, with the output layer."""
        return n_layer(self.header) + 1

    def needed(self, n_ctx: int, n_gpu_layers: int) -> MemoryEstimate:
        """What a context takes with so many layers on the GPU."""
        return estimate(self.header, n_ctx, replace(self.settings, n_gpu_layers=n_gpu_layers))

    def layers(self, n_ctx: int) -> int:
        """Layers on the GPU for a context: as asked, else as many as its memory holds."""
        if self.wanted_layers is not None:
            return min(self.wanted_layers, self.most_layers)
        if not self.vram_bytes:
            return 0
        return _most(self.most_layers, lambda n: self.needed(n_ctx, n).vram_bytes <= self.vram_bytes)

    def fits(self, n_ctx: int) -> bool:
        """Whether a context of that many cells can be made."""
        needed = self.needed(n_ctx, self.layers(n_ctx))
        in_space = self.ram.address_space_bytes is None or needed.total <= self.ram.address_space_bytes
        in_vram = needed.vram_bytes <= self.vram_bytes
        return needed.unreclaimable <= self.ram.ram_bytes and in_space and in_vram

    def largest_n_ctx(self, longest: int) -> int:
        """The most cells that fit, at most `longest`; 0 when none do."""
        n_steps = _most(-(-longest // CELL_STEP), lambda n: self.fits(n * CELL_STEP))
        return min(n_steps * CELL_STEP, longest)


def _most(high: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to `high` for which it holds, if it holds for all below; 0 when for none."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
