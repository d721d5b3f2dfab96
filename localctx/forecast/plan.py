"""A plan as values: what would be done, how long it takes, what it takes; as JSON and as lines. Knows no
machine and no model.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from localctx.byte_sizes import format_bytes
from localctx.forecast.machine import Machine
from localctx.forecast.speed import Forecast
from localctx.session.ladder import Step
from localctx.values import ModelInfo

__all__ = ["Estimates", "Footprint", "Plan", "PlannedModel", "PlannedTokens", "Way"]

SCHEMA = "localctx.plan/1"


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes of a way. weights, kv, compute: wherever they lie · vram, ram: all that lies there, `ram` with
    the program itself · gpu_layers: layers on the GPU.
    """

    weights_bytes: int
    kv_bytes: int
    compute_bytes: int
    vram_bytes: int
    ram_bytes: int
    gpu_layers: int


@dataclass(frozen=True, slots=True)
class Estimates:
    """What a way takes. minutes: from the start to the first answer · answer_seconds: each further answer ·
    disk_bytes: what it writes to the store.
    """

    minutes: float
    answer_seconds: float
    n_ctx: int
    disk_bytes: int
    footprint: Footprint

    def to_json(self) -> dict[str, Any]:
        """Flat, with the promised keys first."""
        foot = self.footprint
        return {
            "minutes": _rounded(self.minutes),
            "vram_bytes": foot.vram_bytes,
            "ram_bytes": foot.ram_bytes,
            "disk_bytes": self.disk_bytes,
            "answer_seconds": _rounded(self.answer_seconds),
            "n_ctx": self.n_ctx,
            "gpu_layers": foot.gpu_layers,
            "weights_bytes": foot.weights_bytes,
            "kv_bytes": foot.kv_bytes,
            "compute_bytes": foot.compute_bytes,
        }


@dataclass(frozen=True, slots=True)
class Way:
    """A rung with its figures; None where the command does not have it, or it cannot be."""

    step: Step
    estimates: Estimates | None

    def to_json(self) -> dict[str, Any]:
        """With `options`: what is typed for it."""
        rung = self.step.rung
        return {
            "rung": rung.name,
            "strategy": rung.strategy,
            "chosen": self.step.is_chosen,
            "why": self.step.why,
            "options": rung.words,
            "estimates": None if self.estimates is None else self.estimates.to_json(),
        }


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """The model as the plan sees it. kv_bytes_per_token: by cache type · store: whether its KV can be stored,
    with the reason where not.
    """

    info: ModelInfo
    weights_bytes: int
    n_layer: int
    kv_bytes_per_token: dict[str, float]
    store: bool
    why_no_store: str = ""


@dataclass(frozen=True, slots=True)
class PlannedTokens:
    """total: of all documents · needed: with the question and the answer · stored: at hand in the store ·
    limit: the longest context here · window: attended to in a streamed prefill · budget: of the passages that
    a question selects.
    """

    total: int
    needed: int
    stored: int
    limit: int
    window: int
    budget: int


@dataclass(frozen=True, slots=True)
class Plan:
    """ways: the whole ladder, in order · eager_pays_after: questions from which indexing all of it costs less
    than prefilling what each needs; None: it never does, or is not possible.
    """

    command: str
    ways: tuple[Way, ...]
    model: PlannedModel
    tokens: PlannedTokens
    machine: Machine
    speed: Forecast
    eager_pays_after: int | None
    warnings: tuple[str, ...] = ()

    @property
    def chosen(self) -> Way:
        """The way that is taken."""
        return next(way for way in self.ways if way.step.is_chosen)

    def to_json(self) -> dict[str, Any]:
        """The object of schema localctx.plan/1 (docs/cli.md)."""
        taken, rates = self.chosen, self.speed.rates
        estimates = taken.estimates
        return {
            "schema": SCHEMA,
            "command": self.command,
            "strategy": taken.step.rung.strategy,
            "rung": taken.step.rung.name,
            "why": [taken.step.why, self.speed.words],
            "estimates": None if estimates is None else estimates.to_json(),
            "alternatives": [way.to_json() for way in self.ways if way is not taken],
            "ladder": [way.step.rung.name for way in self.ways],
            "eager_pays_after": self.eager_pays_after,
            "tokens": asdict(self.tokens),
            "model": {
                "name": self.model.info.name,
                "fingerprint": self.model.info.fingerprint,
                "n_ctx_train": self.model.info.n_ctx_train,
                "n_layer": self.model.n_layer,
                "weights_bytes": self.model.weights_bytes,
                "kv_bytes_per_token": self.model.kv_bytes_per_token,
                "store": self.model.store,
                "why_no_store": self.model.why_no_store,
            },
            "speed": {
                "source": self.speed.source,
                "source_model": self.speed.source_model,
                "prefill_tokens_per_s": _rounded(1 / rates.prefill_s),
                "decode_tokens_per_s": _rounded(1 / rates.decode_s),
            },
            "machine": {
                "ram_bytes": self.machine.ram.ram_bytes,
                "vram_bytes": self.machine.vram_bytes,
                "disk_bytes": self.machine.disk_bytes,
                "cpu": self.machine.cpu,
                "gpu": self.machine.gpu,
                "simulated": self.machine.is_simulated,
            },
            "warnings": list(self.warnings),
        }

    @property
    def lines(self) -> list[str]:
        """The plan for a person: what is taken, what it takes, then the ladder."""
        taken, tokens, model = self.chosen, self.tokens, self.model
        rung = taken.step.rung
        name = rung.name if rung.name == rung.strategy else f"{rung.strategy} ({rung.name})"
        lines = [
            f"{name}: {taken.step.why}",
            f"{tokens.total:,} tokens, {tokens.stored:,} of them stored; {model.info.name}: weights"
            f" {format_bytes(model.weights_bytes)}, KV {model.kv_bytes_per_token['f16']:,.0f} bytes/token in"
            f" f16, {model.kv_bytes_per_token['q8_0']:,.0f} in q8_0",
        ]
        if taken.estimates is not None:
            lines += _lines_of(taken.estimates, model.n_layer, has_gpu=self.machine.vram_bytes > 0)
        lines += [f"window {tokens.window:,} tokens, budget {tokens.budget:,}; {self.speed.words}", ""]
        lines += [_ladder_line(way) for way in self.ways]
        if self.eager_pays_after is not None:
            lines += ["", f"indexing all of it first pays after about {self.eager_pays_after:,} questions"]
        return lines


def _lines_of(estimates: Estimates, n_layer: int, *, has_gpu: bool) -> list[str]:
    foot = estimates.footprint
    sizes = (
        f"memory {format_bytes(foot.ram_bytes)}, GPU memory {format_bytes(foot.vram_bytes)},"
        f" disk {format_bytes(estimates.disk_bytes)}; context {estimates.n_ctx:,}"
        f" (KV {format_bytes(foot.kv_bytes)}, buffers {format_bytes(foot.compute_bytes)})"
    )
    lines = [
        f"first answer after {duration(estimates.minutes * 60)}, each further one"
        f" {duration(estimates.answer_seconds)}",
        sizes,
    ]
    if has_gpu:
        n = foot.gpu_layers
        lines.append(
            f"all {n_layer} layers on the GPU" if n > n_layer else f"--gpu-layers {n} (of {n_layer})"
        )
    return lines


def _ladder_line(way: Way) -> str:
    mark, figures = ("→" if way.step.is_chosen else " "), ""
    if way.estimates is not None:
        foot = way.estimates.footprint
        figures = (
            f" [{duration(way.estimates.minutes * 60)}, {format_bytes(foot.ram_bytes)} memory,"
            f" {format_bytes(way.estimates.disk_bytes)} disk]"
        )
    return f"{mark} {way.step.rung.name:<15}{way.step.why}{figures}"


def duration(seconds: float) -> str:
    """For a table: 3 s, 12 min, 5.2 h."""
    if seconds < 90:
        return f"{max(0.1, seconds):.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"


def _rounded(value: float) -> float:
    """Three digits are more than is known."""
    return float(f"{value:.3g}")
