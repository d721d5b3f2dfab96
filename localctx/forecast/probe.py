"""What this machine can do where no model was measured on it: a matrix product and a copy, a fraction of a
second. Knows no models.

What llama.cpp makes of it was compared with its measured speeds once (docs/plan.md); it is a guess.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass

from localctx.engine.shape import Shape
from localctx.forecast.rates import Rates

__all__ = ["ASSUMED_GPU", "Speed", "probe", "rates_from"]

SIDE = 768
COPIED_BYTES = 32 << 20
REPEATS = 3
MATRIX_SHARE = 0.5
"""Of a plain f32 product's speed, what quantised matrices reach."""
ATTENTION_SHARE = 0.3
"""The same of attention in one kernel."""
READ_SHARE = 0.6
"""Of the bytes that a copy moves (read and written), those a decoded token's weights are read at."""
STREAM_FACTOR = 1.15


@dataclass(frozen=True, slots=True)
class Speed:
    """Of one device: operations of large products and bytes moved, a second."""

    flops: float
    bytes_per_s: float


ASSUMED_GPU = Speed(20e12, 300e9)
"""A graphics card that is not here to be measured: one of the middle class."""


@functools.cache
def probe() -> Speed:
    """Measure this machine's processor, once a process; the best of three."""
    import numpy as np

    left = np.ones((SIDE, SIDE), np.float32)
    out = left @ left
    source = np.ones(COPIED_BYTES, np.uint8)
    target = source.copy()
    product = copy = float("inf")
    for _ in range(REPEATS):
        started = time.perf_counter()
        np.matmul(left, left, out=out)
        between = time.perf_counter()
        np.copyto(target, source)
        product = min(product, between - started)
        copy = min(copy, time.perf_counter() - between)
    return Speed(2 * SIDE**3 / max(product, 1e-9), 2 * COPIED_BYTES / max(copy, 1e-9))


def rates_from(speed: Speed, shape: Shape) -> Rates:
    """About what a model of that shape costs at such a speed."""
    read = speed.bytes_per_s * READ_SHARE
    return Rates(
        prefill_s=shape.prefill_flops / (speed.flops * MATRIX_SHARE),
        prefill_depth_s=shape.attention_flops / (speed.flops * ATTENTION_SHARE),
        decode_s=max(shape.weight_bytes / read, shape.decode_flops / speed.flops),
        decode_depth_s=max(shape.kv_bytes / read, shape.attention_flops / speed.flops),
        stream_factor=STREAM_FACTOR,
    )
