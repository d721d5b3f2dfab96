"""Whether a model's contexts fit the memory and the GPUs as they are now. Allocates nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from localctx.engine.devices import Device
from localctx.engine.estimate import CELL_STEP, ContextSettings, estimate, largest_n_ctx, require, require_gpu
from localctx.engine.gguf import GGUFHeader
from localctx.engine.memory import available
from localctx.engine.model_facts import n_layer
from localctx.engine.new_context import ContextSizes
from localctx.engine.options import EngineOptions
from localctx.engine.placing import Placing
from localctx.engine.rope_scaling import longest_context

__all__ = ["ModelMemory"]


@dataclass(frozen=True, slots=True)
class ModelMemory:
    """A file under its options. find_devices: the devices, with what is free now · n_ubatch: tokens that a
    device computes at once.
    """

    header: GGUFHeader
    options: EngineOptions
    placing: Placing
    n_ubatch: int
    find_devices: Callable[[], Sequence[Device]]

    def settings(self, sizes: ContextSizes) -> ContextSettings:
        """What decides the size of such a context."""
        n_layers = self.placing.n_gpu_layers
        return ContextSettings(
            n_ubatch=self.n_ubatch,
            n_seq=sizes.n_seq,
            n_outputs=sizes.n_rows,
            type_k=self.options.type_k,
            type_v=self.options.type_v,
            n_gpu_layers=n_layers if n_layers >= 0 else n_layer(self.header) + 1,
            moved=self.placing.moved,
        )

    def longest(self, n_seq: int) -> int:
        """The most cells that fit, up to what the model was trained for, or its scaling reaches."""
        longest = longest_context(self.header, self.options.rope) or CELL_STEP
        found = largest_n_ctx(self.header, available(), self.settings(ContextSizes(0, n_seq)), longest)
        return found or min(CELL_STEP, longest)

    def require(self, sizes: ContextSizes, name: str, *, is_loaded: bool) -> tuple[str, ...]:
        """Notices; raises OutOfMemory where it does not fit. With the weights loaded GPUs are not asked
        again: what is free there is what they leave.
        """
        if self.options.force:
            return ()
        settings, free = self.settings(sizes), available()
        needed = estimate(self.header, sizes.n_ctx, settings)
        if not is_loaded:
            require_gpu(needed, self.placing.gpu_bytes(self.find_devices()), name)
        return require(needed, free, name, largest_n_ctx(self.header, free, settings))
