"""Models by how well they suit a machine: what fits, how fast, what a stored million tokens takes.

Knows no manifests: what is known of a model is handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from localctx.byte_sizes import format_bytes
from localctx.engine.shape import Shape
from localctx.forecast.calibration import Calibration
from localctx.forecast.footprint import GPU_OWN_BYTES
from localctx.forecast.machine import Machine
from localctx.forecast.speed import speed_of
from localctx.session.announce import SHARE_OF_F16

__all__ = ["CONTEXT_TOKENS", "HEADER", "Candidate", "Suggestion", "rank", "suggestions_json"]

SCHEMA = "localctx.suggest/1"
CONTEXT_TOKENS = 32_768
"""The context that is allowed for, if the model has as much."""
FAST_TOKENS_PER_S = 5.0
"""Slower than one reads: such models come after faster ones."""
PROGRAM_BYTES = 256 << 20
BUFFERS_BYTES = 512 << 20
FLOPS_PER_WEIGHT = 2
FLOPS_PER_KV_BYTE = 4
"""Of attention in f16, where four query heads share a key."""
CODEC = "int4"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that may be suggested. n_weights: all, n_active: those that a token is sent to · weights_bytes:
    of its file, or about those of Q4_K_M · store: whether the block store can serve it · is_here: whether the
    file is at hand.
    """

    name: str
    title: str
    languages: tuple[str, ...]
    n_ctx: int
    n_weights: float
    n_active: float
    weights_bytes: int
    kv_bytes_per_token: int
    store: bool
    is_here: bool = False

    @property
    def shape(self) -> Shape:
        """Operations and bytes a token, from the number of weights."""
        flops = FLOPS_PER_WEIGHT * self.n_active
        share = self.n_active / max(1.0, self.n_weights)
        attention = FLOPS_PER_KV_BYTE * self.kv_bytes_per_token
        return Shape(flops, flops, attention, self.weights_bytes * share, self.kv_bytes_per_token)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A model on a machine. n_ctx: the context that the sizes are for · gpu_share: of its layers on the GPU ·
    tokens a second at the beginning of a text · gb_per_million_tokens: KV in the store, in int4.
    """

    name: str
    title: str
    fits: bool
    n_ctx: int
    weights_bytes: int
    kv_bytes: int
    needed_bytes: int
    gpu_share: float
    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    speed_source: str
    gb_per_million_tokens: float
    languages: tuple[str, ...]
    store: bool
    is_here: bool

    @property
    def line(self) -> str:
        """For a person."""
        languages = ", ".join(self.languages[:4]) + (" …" if len(self.languages) > 4 else "")
        return (
            f"{'fits' if self.fits else 'no':<5}{self.name:<22}{format_bytes(self.needed_bytes):>9}"
            f"{self.gpu_share:>6.0%}{self.prefill_tokens_per_s:>9,.0f}{self.decode_tokens_per_s:>8,.1f}"
            f"{self.gb_per_million_tokens:>7.1f}  {'yes' if self.store else 'no':<5}"
            f"{'here' if self.is_here else '':<6}{languages}"
        )


HEADER = (
    f"{'':<5}{'model':<22}{'memory':>9}{'GPU':>6}{'prefill':>9}{'decode':>8}{'GB/M':>7}  {'store':<5}"
    f"{'':<6}languages"
)


def rank(
    candidates: Sequence[Candidate], machine: Machine, n_threads: int, known: Sequence[Calibration]
) -> list[Suggestion]:
    """The models that fit first; of these the ones that are no slower than one reads; of these the largest:
    they answer best. Those that do not fit follow, the smallest first.
    """
    found = [_suggestion(one, machine, n_threads, known) for one in candidates]

    def order(one: Suggestion) -> tuple[bool, bool, int]:
        is_slow = one.decode_tokens_per_s < FAST_TOKENS_PER_S
        return not one.fits, is_slow, -one.weights_bytes if one.fits else one.weights_bytes

    return sorted(found, key=order)


def suggestions_json(found: Sequence[Suggestion], machine: Machine) -> dict[str, Any]:
    """The object of schema localctx.suggest/1 (docs/cli.md)."""
    return {
        "schema": SCHEMA,
        "machine": {
            "ram_bytes": machine.ram.ram_bytes,
            "vram_bytes": machine.vram_bytes,
            "simulated": machine.is_simulated,
        },
        "models": [asdict(one) for one in found],
    }


def _suggestion(one: Candidate, machine: Machine, n_threads: int, known: Sequence[Calibration]) -> Suggestion:
    n_ctx = min(CONTEXT_TOKENS, one.n_ctx)
    kv_bytes = n_ctx * one.kv_bytes_per_token
    layers_bytes = one.weights_bytes + kv_bytes
    room = machine.vram_bytes - GPU_OWN_BYTES - BUFFERS_BYTES
    gpu_share = min(1.0, max(0.0, room / max(1, layers_bytes)))
    on_host = round((1 - gpu_share) * layers_bytes) + BUFFERS_BYTES + PROGRAM_BYTES
    speed = speed_of("", one.shape, machine, n_threads, gpu_share, known)
    return Suggestion(
        name=one.name,
        title=one.title,
        fits=on_host <= machine.ram.ram_bytes,
        n_ctx=n_ctx,
        weights_bytes=one.weights_bytes,
        kv_bytes=kv_bytes,
        needed_bytes=layers_bytes + BUFFERS_BYTES + PROGRAM_BYTES,
        gpu_share=round(gpu_share, 3),
        prefill_tokens_per_s=float(f"{1 / speed.rates.prefill_s:.3g}"),
        decode_tokens_per_s=float(f"{1 / speed.rates.decode_s:.3g}"),
        speed_source=speed.source,
        gb_per_million_tokens=round(one.kv_bytes_per_token * SHARE_OF_F16[CODEC] / 1000, 1),
        languages=one.languages,
        store=one.store,
        is_here=one.is_here,
    )
