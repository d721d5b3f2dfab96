"""What `eval kv` found along one long text: the table, its JSON, perplexity, hit rate, latency as plots."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from localctx.bench.repeats import rounded
from localctx.eval.kv_arms import EVALUATED, Mode
from localctx.eval.kv_long import At, LongWanted, Used
from localctx.eval.kv_report import hits_json, perplexity_of
from localctx.eval.plots import Plot

__all__ = ["Long"]

BASELINES: tuple[Mode, ...] = ("local text", "local")
"""What the others' perplexity is divided by: the first of them that was measured."""
HEADS = (
    "tokens", "mode", "attended", "perplexity", "by the baseline's", "hit rate", "with prefix", "placed in",
    "decode",
)  # fmt: skip
WIDTHS = (11, 13, 10, 12, 19, 10, 13, 11, 10)


@dataclass(frozen=True, slots=True)
class Long:
    """Every place of one text. bytes_per_token: of stored KV · chunk_tokens: prefilled at a time."""

    wanted: LongWanted
    bytes_per_token: float
    chunk_tokens: int
    at: tuple[At, ...]

    @property
    def baseline(self) -> Mode | None:
        """The mode that the others are compared with."""
        return next((mode for mode in BASELINES if mode in self.wanted.modes), None)

    def to_json(self) -> dict[str, Any]:
        """The parts of schema `localctx.eval.kv/1` that are of this measurement."""
        wanted = self.wanted
        return {
            "codec": wanted.codec,
            "window": wanted.window,
            "budget": wanted.budget,
            "n_target": wanted.n_target,
            "chunk_tokens": self.chunk_tokens,
            "bytes_per_token": rounded(self.bytes_per_token) if self.bytes_per_token else None,
            "baseline": self.baseline,
            "points": [self._point_json(at) for at in self.at],
        }

    def _point_json(self, at: At) -> dict[str, Any]:
        return {
            "n_tokens": at.n_tokens,
            "latency": {"prefill_tokens_per_s": rounded(at.n_prefilled / at.seconds)},
            "modes": [self._used_json(at, one) for one in at.used],
        }

    def _used_json(self, at: At, one: Used) -> dict[str, Any]:
        ratio = self._ratio(at, one)
        return {
            "mode": one.mode,
            "n_attended": one.n_attended,
            "n_evaluated": one.n_evaluated,
            "perplexity": float(f"{perplexity_of(one.losses):.6g}"),
            "ratio": None if ratio is None else float(f"{ratio[0]:.6g}"),
            "ratio_error": None if ratio is None else float(f"{ratio[1]:.3g}"),
            "hit_rate": hits_json(one.hits),
            "latency": {
                "place_ms": rounded(1000 * one.place_s),
                "decode_ms_per_token": rounded(1000 * statistics.median(one.decode_s)),
            },
        }

    def _ratio(self, at: At, one: Used) -> tuple[float, float] | None:
        """Perplexity by the baseline's, with the standard error of the paired difference."""
        base = next((other.losses for other in at.used if other.mode == self.baseline), None)
        if base is None:
            return None
        rise = one.losses - base
        ratio = math.exp(min(700.0, float(rise.mean())))
        return ratio, ratio * float(rise.std(ddof=1)) / math.sqrt(len(rise))

    @property
    def lines(self) -> Iterator[str]:
        """The table for a person."""
        wanted = self.wanted
        stored = f"{wanted.codec}, {self.bytes_per_token:,.0f} B a token, " if self.bytes_per_token else ""
        yield (
            f"{wanted.n_target:,} tokens behind so many, streamed through a window of {wanted.window:,} "
            f"({stored}{wanted.budget:,} attended; baseline: {self.baseline or 'none'})"
        )
        yield _line(HEADS)
        for at in self.at:
            for one in at.used:
                yield _line(self._cells(at, one))
        rates = (at.n_prefilled / at.seconds for at in self.at)
        yield "prefill, tokens/s: " + ", ".join(f"{rate:,.0f}" for rate in rates)

    def _cells(self, at: At, one: Used) -> tuple[str, ...]:
        ratio = self._ratio(at, one)
        return (
            f"{at.n_tokens:,}",
            one.mode,
            f"{one.n_attended:,}",
            f"{perplexity_of(one.losses):.4g}",
            "–" if ratio is None else f"{ratio[0]:.3f} ± {ratio[1]:.3f}",
            f"{one.hits.document:.1%}",
            f"{one.hits.all:.1%}",
            f"{1000 * one.place_s:,.0f} ms",
            f"{1000 * statistics.median(one.decode_s):,.1f} ms",
        )

    @property
    def plots(self) -> list[Plot]:
        """Perplexity, hit rate and latency by tokens read, side by side."""
        places = [at.n_tokens for at in self.at]
        stored = [mode for mode in self.wanted.modes if mode not in EVALUATED]

        def lines(modes: list[Mode] | tuple[Mode, ...], value: Any) -> dict[str, list[float]]:
            return {mode: [value(_of(at, mode)) for at in self.at] for mode in modes}

        decode = lines(self.wanted.modes, lambda one: 1000 * statistics.median(one.decode_s))
        return [
            Plot("perplexity", "tokens read", "perplexity", places,
                 lines(self.wanted.modes, lambda one: perplexity_of(one.losses))),
            Plot("KV hit rate", "tokens read", "share of the attention on the document", places,
                 lines(stored or self.wanted.modes, lambda one: one.hits.document)),
            Plot("latency", "tokens read", "ms a decoded token", places, decode),
        ]  # fmt: skip


def _of(at: At, mode: Mode) -> Used:
    return next(one for one in at.used if one.mode == mode)


def _line(cells: tuple[str, ...]) -> str:
    left = f"{cells[0]:>{WIDTHS[0]}}  {cells[1]:<{WIDTHS[1]}}"
    return left + "".join(f"{cell:>{width}}" for cell, width in zip(cells[2:], WIDTHS[2:], strict=True))
