"""Compression against what it costs, and the knee of that curve by second differences. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Curve", "Point", "curve_of"]


@dataclass(frozen=True, slots=True)
class Point:
    """Memory of a token of context, in bytes, by how much less than f16 that is, and the KL divergence."""

    name: str
    bytes_per_token: float
    compression: float
    kl: float


@dataclass(frozen=True, slots=True)
class Curve:
    """Points by rising compression, none of which another one beats in both. knee: the number of the point
    behind which divergence rises fastest; None where it rises nowhere faster than before.
    """

    name: str
    points: tuple[Point, ...]
    knee: int | None


def curve_of(name: str, points: Iterable[Point]) -> Curve:
    """The front of the points, and its knee."""
    front: list[Point] = []
    for point in sorted(points, key=lambda one: (-one.compression, one.kl)):
        if not front or point.kl < front[-1].kl:
            front.append(point)
    front.reverse()
    return Curve(
        name, tuple(front), knee_of([math.log2(one.compression) for one in front], [one.kl for one in front])
    )


def knee_of(places: Sequence[float], values: Sequence[float]) -> int | None:
    """Where the second divided difference of values over ascending places is highest, and above 0."""
    bends = {}
    for n in range(1, len(places) - 1):
        before = (values[n] - values[n - 1]) / (places[n] - places[n - 1])
        behind = (values[n + 1] - values[n]) / (places[n + 1] - places[n])
        bends[n] = 2 * (behind - before) / (places[n + 1] - places[n - 1])
    best = max(bends, key=lambda n: bends[n], default=None)
    return best if best is not None and bends[best] > 0 else None
