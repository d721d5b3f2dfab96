"""What `eval kv` found over one context length: figures of every arm, the table, its JSON, the curves."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localctx.bench.repeats import rounded
from localctx.eval.kv_arms import Arm, Wanted
from localctx.eval.kv_curve import Curve, Point, curve_of
from localctx.eval.kv_mass import Hits
from localctx.eval.kv_matrix import Baseline, Found
from localctx.eval.plots import Plot
from localctx.verify.compare import NEEDY_SHARE, SHORT_CONTEXT

__all__ = ["Matrix", "hits_json", "perplexity_of"]

HEADS = (
    "codec", "prefill", "attended", "cells", "hit rate", "B/token", "perplexity rise", "KL", "top-1",
    "long: rise", "KL", "top-1", "restore", "decode",
)  # fmt: skip
WIDTHS = (9, 12, 11, 7, 10, 9, 18, 10, 8, 12, 10, 8, 10, 9)
LEAST_KL = 1e-12
LEAST_POINTS = 3


def perplexity_of(nll: NDArray[np.float64]) -> float:
    """Of -log p in nats; the largest number there is where it would be larger."""
    return math.exp(min(700.0, float(nll.mean())))


def hits_json(hits: Hits | None) -> dict[str, Any] | None:
    """Shares to six digits: they are sums of many rounded products."""
    if hits is None:
        return None
    values = asdict(hits)
    values["by_layer"] = [round(share, 6) for share in hits.by_layer]
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class _Row:
    """One arm's figures over a part of the tokens."""

    n_tokens: int
    perplexity: float
    rise: float
    rise_error: float
    kl: float
    top1: float

    @classmethod
    def of(cls, found: Found, exact: NDArray[np.float64], where: NDArray[np.bool_]) -> _Row:
        rise = np.concatenate(found.nll_rise)[where]
        ratio = math.exp(min(700.0, float(rise.mean())))
        error = ratio * float(rise.std(ddof=1)) / math.sqrt(len(rise)) if len(rise) > 1 else 0.0
        return cls(
            len(rise),
            perplexity_of(exact[where] + rise),
            ratio - 1.0,
            error,
            float(np.concatenate(found.kl)[where].mean()),
            float(np.concatenate(found.agrees)[where].mean()),
        )

    def to_json(self) -> dict[str, Any]:
        """Six digits."""
        values = asdict(self)
        return {name: float(f"{v:.6g}") if isinstance(v, float) else v for name, v in values.items()}


@dataclass(frozen=True)
class Matrix:
    """Every arm over the same tokens."""

    wanted: Wanted
    baseline: Baseline
    found: tuple[Found, ...]

    @cached_property
    def exact(self) -> NDArray[np.float64]:
        """-log p of each token behind exact attention."""
        return np.concatenate(self.baseline.exact)

    @cached_property
    def gains(self) -> NDArray[np.float64]:
        """What each token's log-probability gains from all of the context."""
        gains: NDArray[np.float64] = np.concatenate(self.baseline.short) - self.exact
        return gains

    @cached_property
    def needy(self) -> NDArray[np.bool_]:
        """The tokens that need long context."""
        n = max(1, round(NEEDY_SHARE * len(self.exact)))
        where = np.zeros(len(self.exact), bool)
        where[np.argsort(-self.gains, kind="stable")[:n]] = True
        return where

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """All codecs with everything attended to, and every mode over its budgets, behind exact prefill."""
        stored = [one for one in self.found if one.arm.codec is not None and one.arm.window is None]
        whole = [one for one in stored if one.arm.mode == "all"]
        if not whole:
            return ()
        curves = [curve_of("codecs", [self._point(one, one.arm.codec or "") for one in whole])]
        for mode in dict.fromkeys(one.arm.mode for one in stored if one.arm.mode != "all"):
            points = [
                self._point(one, f"{one.arm.budget or one.arm.mode} tokens")
                for one in stored
                if one.arm.mode in (mode, "all") and one.arm.codec == self.wanted.mode_codec
            ]
            curves.append(curve_of(mode, points))
        return tuple(curves)

    def _point(self, one: Found, name: str) -> Point:
        memory = one.n_bytes / one.n_stored * one.n_attended / one.n_stored
        kl = float(np.concatenate(one.kl).mean())
        return Point(name, memory, self.baseline.f16_bytes / memory, kl)

    def to_json(self) -> dict[str, Any]:
        """The parts of schema `localctx.eval.kv/1` that are of this measurement."""
        everywhere = np.ones(len(self.exact), bool)
        return {
            "n_tokens": len(self.exact),
            "n_context": self.wanted.n_context,
            "n_target": self.wanted.n_target,
            "exact": self._baseline_json(self.exact),
            "short": self._baseline_json(np.concatenate(self.baseline.short)),
            "long_context": {
                "n_tokens": int(self.needy.sum()),
                "least_gain": float(f"{self.gains[self.needy].min():.6g}"),
            },
            "arms": [self._arm_json(one, everywhere) for one in self.found],
            "curves": [_curve_json(curve) for curve in self.curves],
        }

    def _baseline_json(self, nll: NDArray[np.float64]) -> dict[str, Any]:
        return {
            "perplexity": float(f"{perplexity_of(nll):.6g}"),
            "perplexity_long_context": float(f"{perplexity_of(nll[self.needy]):.6g}"),
        }

    def _arm_json(self, one: Found, everywhere: NDArray[np.bool_]) -> dict[str, Any]:
        n_spans = len(self.baseline.exact)
        return {
            **asdict(one.arm),
            "bytes_per_token": rounded(one.n_bytes / one.n_stored) if one.n_stored else None,
            "n_attended": one.n_attended / n_spans,
            "n_evaluated": one.n_evaluated / n_spans,
            "hit_rate": hits_json(Hits.mean(one.hits)),
            "all_tokens": _Row.of(one, self.exact, everywhere).to_json(),
            "long_context_tokens": _Row.of(one, self.exact, self.needy).to_json(),
            "latency": {
                "restore_ms_per_token": rounded(1000 * statistics.median(one.restore_s)),
                "decode_ms_per_token": rounded(1000 * statistics.median(one.decode_s)),
            },
        }

    @property
    def lines(self) -> Iterator[str]:
        """The table for a person."""
        everywhere, needy = np.ones(len(self.exact), bool), self.needy
        short = np.concatenate(self.baseline.short)
        yield (
            f"{len(self.exact):,} tokens behind {self.wanted.n_context:,} each: perplexity "
            f"{perplexity_of(self.exact):.4g} with exact attention, {perplexity_of(short):.4g} behind the "
            f"last {SHORT_CONTEXT} alone"
        )
        yield (
            f"{needy.sum():,} of them need it (they gain {self.gains[needy].min():.2f} nats or more): "
            f"{perplexity_of(self.exact[needy]):.4g} and {perplexity_of(short[needy]):.4g}"
        )
        yield _line(HEADS)
        for one in self.found:
            yield _line(self._cells(one, everywhere))
        for curve in self.curves:
            yield from _curve_lines(curve)

    def _cells(self, one: Found, everywhere: NDArray[np.bool_]) -> Sequence[str]:
        arm, row = one.arm, _Row.of(one, self.exact, everywhere)
        needy, hits = _Row.of(one, self.exact, self.needy), Hits.mean(one.hits)
        return (
            arm.codec or "–",
            _window(arm),
            arm.mode,
            "all" if arm.budget is None else f"{arm.budget:,}",
            "–" if hits is None else f"{hits.document:.1%}",
            f"{one.n_bytes / one.n_stored:,.0f}" if one.n_stored else "–",
            f"{row.rise:+.2%} ± {row.rise_error:.2%}",
            f"{row.kl:.2g}",
            f"{row.top1:.1%}",
            f"{needy.rise:+.1%}",
            f"{needy.kl:.2g}",
            f"{needy.top1:.1%}",
            f"{1e6 * statistics.median(one.restore_s):,.0f} µs",
            f"{1000 * statistics.median(one.decode_s):,.1f} ms",
        )

    @property
    def plots(self) -> list[Plot]:
        """A picture of the codecs' curve, and of every other one that can have a knee."""
        curves = enumerate(self.curves)
        return [_plot(curve) for n, curve in curves if n == 0 or len(curve.points) >= LEAST_POINTS]


def _window(arm: Arm) -> str:
    if arm.codec is None:
        return "–"
    return "exact" if arm.window is None else f"window {arm.window:,}"


def _line(cells: Sequence[str]) -> str:
    left = "".join(f"{cell:<{width}}" for cell, width in zip(cells[:3], WIDTHS[:3], strict=True))
    return left + "".join(f"{cell:>{width}}" for cell, width in zip(cells[3:], WIDTHS[3:], strict=True))


def _curve_json(curve: Curve) -> dict[str, Any]:
    points = [
        {
            "name": point.name,
            "bytes_per_token": rounded(point.bytes_per_token),
            "compression": rounded(point.compression),
            "kl": float(f"{point.kl:.6g}"),
        }
        for point in curve.points
    ]
    return {
        "name": curve.name,
        "points": points,
        "knee": None if curve.knee is None else curve.points[curve.knee].name,
    }


def _curve_lines(curve: Curve) -> Iterator[str]:
    if len(curve.points) < LEAST_POINTS:
        return
    points = (f"{one.name} ×{one.compression:.1f} (KL {one.kl:.2g})" for one in curve.points)
    knee = "none" if curve.knee is None else curve.points[curve.knee].name
    yield f"{curve.name}: {', '.join(points)}; knee: {knee}"


def _plot(curve: Curve) -> Plot:
    knee = "no knee" if curve.knee is None else f"knee at {curve.points[curve.knee].name}"
    return Plot(
        f"{curve.name}: compression and its cost, {knee}",
        "times smaller than all of the context in f16",
        "KL divergence from exact attention",
        [rounded(point.compression) for point in curve.points],
        {curve.name: [max(LEAST_KL, point.kl) for point in curve.points]},
        is_log=True,
    )
