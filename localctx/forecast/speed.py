"""How fast a model will be here: from its own calibration, from another model's, or from a short test.

Layers on a GPU and on the processor are taken one by one. Knows no documents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from localctx.engine.shape import Shape
from localctx.forecast.calibration import Calibration, Place, rates_of, scaled
from localctx.forecast.machine import Machine, build_name
from localctx.forecast.probe import ASSUMED_GPU, Speed, probe, rates_from
from localctx.forecast.rates import Rates

__all__ = ["ALL_LAYERS", "Forecast", "SpeedSource", "cpu_place", "gpu_place", "speed_of"]

SpeedSource: TypeAlias = Literal["calibrated", "scaled", "uncalibrated", "assumed"]
ALL_LAYERS = -1
_CERTAINTY: tuple[SpeedSource, ...] = ("calibrated", "scaled", "uncalibrated", "assumed")


@dataclass(frozen=True, slots=True)
class Forecast:
    """Costs, and where they come from: this model measured here, another one (`source_model`), a short test
    of the machine, or a device that is not here.
    """

    rates: Rates
    source: SpeedSource
    source_model: str = ""

    @property
    def words(self) -> str:
        """The source for a person."""
        return {
            "calibrated": "speeds of this model as measured here",
            "scaled": f"speeds scaled from {self.source_model} as measured here",
            "uncalibrated": "uncalibrated: speeds guessed from a short test; localctx bench prefill measures",
            "assumed": "uncalibrated: speeds assumed for a graphics card that is not here",
        }[self.source]


def cpu_place(cpu: str, n_threads: int) -> Place:
    """Speeds of the processor."""
    return Place(cpu, n_threads, 0, build_name())


def gpu_place(gpu: str) -> Place:
    """Speeds with all layers on the GPUs; the processor's threads make no difference."""
    return Place(gpu, 0, ALL_LAYERS, build_name())


@dataclass(frozen=True, slots=True)
class _Model:
    fingerprint: str
    shape: Shape


def speed_of(
    fingerprint: str,
    shape: Shape,
    machine: Machine,
    n_threads: int,
    gpu_share: float,
    known: Sequence[Calibration],
    test: Callable[[], Speed] = probe,
) -> Forecast:
    """The model's costs with that share of its layers on GPUs; `test` measures a processor that no model was
    measured on.
    """
    model = _Model(fingerprint, shape)
    parts: list[tuple[float, Forecast]] = []
    if gpu_share > 0:
        place = gpu_place(machine.gpu) if machine.gpu else None
        parts.append((gpu_share, _on(model, place, known, "assumed", lambda: ASSUMED_GPU)))
    if gpu_share < 1:
        place = cpu_place(machine.cpu, n_threads)
        parts.append((1 - gpu_share, _on(model, place, known, "uncalibrated", test)))
    return parts[0][1] if len(parts) == 1 else _mixed(parts)


def _on(
    model: _Model,
    place: Place | None,
    known: Sequence[Calibration],
    otherwise: SpeedSource,
    speed: Callable[[], Speed],
) -> Forecast:
    """All layers in one place."""
    here = [row for row in known if row.place == place and (row.prefill or row.stream)]
    own = next((row for row in reversed(here) if row.fingerprint == model.fingerprint), None)
    if own is not None:
        return Forecast(rates_of(own), "calibrated", own.model)
    if here:
        like = min(here, key=lambda row: _distance(row.shape, model.shape))
        return Forecast(scaled(rates_of(like), like.shape, model.shape), "scaled", like.model)
    return Forecast(rates_from(speed(), model.shape), otherwise)


def _distance(one: Shape, other: Shape) -> float:
    """How many times larger one of them is."""
    low, high = sorted((max(1.0, one.prefill_flops), max(1.0, other.prefill_flops)))
    return high / low


def _mixed(parts: Sequence[tuple[float, Forecast]]) -> Forecast:
    """Layers in two places, one after the other; as certain as the less certain one."""

    def total(name: str) -> float:
        return sum(share * float(getattr(one.rates, name)) for share, one in parts)

    names = ("prefill_s", "prefill_depth_s", "decode_s", "decode_depth_s", "stream_factor")
    worst = max((one for _, one in parts), key=lambda one: _CERTAINTY.index(one.source))
    return Forecast(Rates(*map(total, names)), worst.source, worst.source_model)
