"""Speeds measured on this machine, kept in the cache folder: a model, a device, threads and a build each.

`localctx bench prefill` and `bench decode` write them; plans read them. Another model's are re-used through
operations and bytes. Knows no engine.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from localctx.engine.shape import Shape
from localctx.errors import LocalctxError
from localctx.forecast.rates import Rates, fit
from localctx.private_files import default_root, read_regular
from localctx.small_text import reason_of

__all__ = ["FILE_NAME", "Calibration", "Place", "keep", "kept", "rates_of", "scaled"]

FILE_NAME = "calibration.json"
SCHEMA = "localctx.calibration/1"
MOST_BYTES = 4 << 20
MOST_POINTS = 64
LEAST_ATTENTION = 0.6
"""An operation of attention takes at least this share of the time of one with weights: 0.64 with Q4_0 and
Q8_0 on an H200, more with BF16. A short measurement of a fast device does not tell it from noise.
"""
DECODE_DEPTH_SHARE = 1.0
"""Without measured depths, a byte of KV is read as fast as one of weights."""

Points = tuple[tuple[float, float], ...]
"""(depth, tokens a second)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a speed holds beside the model. layers: on GPUs, all of them as -1."""

    device: str
    n_threads: int
    layers: int
    build: str


@dataclass(frozen=True, slots=True)
class Calibration:
    """One model's speeds in one place. stream: of prefill into the store, `depth` being the tokens attended
    to at most.
    """

    fingerprint: str
    model: str
    place: Place
    shape: Shape
    prefill: Points = ()
    stream: Points = ()
    decode: Points = ()


def kept(root: Path | None) -> list[Calibration]:
    """All that is kept under `root` (default: the user's cache folder), the newest last; what cannot be read
    is not there.
    """
    try:
        data = read_regular((root or default_root()) / FILE_NAME)
        value = json.loads(data) if len(data) <= MOST_BYTES else {}
        rows = value["calibrations"] if value.get("schema") == SCHEMA else []
        return [_read(row) for row in rows]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []


def keep(root: Path | None, new: Calibration) -> None:
    """Add what was measured to what is kept: points as deep as the new ones replace the older ones.

    Raises LocalctxError where the folder cannot be written.
    """
    folder = root or default_root()
    rows = kept(folder)
    older = next((row for row in rows if _key(row) == _key(new)), None)
    rows = [row for row in rows if row is not older]
    before = older or replace(new, prefill=(), stream=(), decode=())
    new = replace(
        new,
        prefill=_merged(before.prefill, new.prefill),
        stream=_merged(before.stream, new.stream),
        decode=_merged(before.decode, new.decode),
    )
    value = {"schema": SCHEMA, "calibrations": [asdict(row) for row in (*rows, new)]}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
            json.dump(value, file)
        Path(file.name).replace(folder / FILE_NAME)
    except OSError as error:
        raise LocalctxError(
            f"the measured speeds cannot be kept in {folder}: {reason_of(error)}",
            "--store DIR names another folder",
        ) from None


def rates_of(found: Calibration) -> Rates:
    """The costs of the calibrated model. Raises ValueError where it has no prefill speed."""
    shape = found.shape
    attention = shape.attention_flops / max(1.0, shape.prefill_flops)
    base, slope = fit(found.prefill or found.stream, LEAST_ATTENTION * attention)
    if slope is None:
        slope = base * attention
    if found.decode:
        decode, decode_slope = fit(found.decode)
    else:
        decode, decode_slope = base * shape.decode_flops / max(1.0, shape.prefill_flops), None
    if decode_slope is None:
        decode_slope = decode * DECODE_DEPTH_SHARE * shape.kv_bytes / max(1.0, shape.weight_bytes)
    rates = Rates(base, slope, decode, decode_slope)
    if found.prefill and found.stream:
        factors = [1 / rate / (base + slope * depth) for depth, rate in found.stream]
        rates = replace(rates, stream_factor=median(factors))
    return rates


def scaled(rates: Rates, known: Shape, wanted: Shape) -> Rates:
    """The costs of a model of shape `wanted`, from those of one of shape `known`: prefill by operations,
    decoding by bytes.
    """
    weights = wanted.prefill_flops / max(1.0, known.prefill_flops)
    attention = wanted.attention_flops / max(1.0, known.attention_flops)
    read = wanted.weight_bytes / max(1.0, known.weight_bytes)
    cells = wanted.kv_bytes / max(1.0, known.kv_bytes)
    return Rates(
        rates.prefill_s * weights,
        rates.prefill_depth_s * attention,
        rates.decode_s * read,
        rates.decode_depth_s * cells,
        rates.stream_factor,
    )


def _key(row: Calibration) -> tuple[str, Place]:
    return row.fingerprint, row.place


def _merged(older: Points, newer: Points) -> Points:
    """The newer points, and the older ones that lie deeper; spread over the depths where there are many."""
    deepest = max((depth for depth, _ in newer), default=-1.0)
    points = sorted([*newer, *(point for point in older if point[0] > deepest)])
    return tuple(_thinned(points))


def _thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    step = -(-len(points) // MOST_POINTS)
    return points[:: max(1, step)]


def _read(row: dict[str, Any]) -> Calibration:
    """A calibration from its JSON. Raises what a damaged one raises."""
    points = {
        name: tuple((float(depth), float(rate)) for depth, rate in row[name])
        for name in ("prefill", "stream", "decode")
    }
    return Calibration(
        str(row["fingerprint"]), str(row["model"]), Place(**row["place"]), Shape(**row["shape"]), **points
    )
