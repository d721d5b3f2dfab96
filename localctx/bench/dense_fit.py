"""What dense prefill would take beyond the length at which it was measured.

A token costs a constant, and a share of the tokens before it. Pure; knows the figures of `bench prefill`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from localctx.bench.repeats import rounded

__all__ = ["DenseFit"]

LENGTHS = (131_072, 262_144, 524_288, 1_048_576, 4_194_304)
"""For which it is told, where they were not measured."""


@dataclass(frozen=True, slots=True)
class DenseFit:
    """A token behind `depth` others takes token_s + depth_s * depth seconds. Fitted to a run of n_measured
    tokens, which took measured_s.
    """

    token_s: float
    depth_s: float
    n_measured: int
    measured_s: float

    @classmethod
    def of(cls, dense: Mapping[str, Any] | None) -> DenseFit | None:
        """By least squares, of the mean costs of the first quarter, the last one and the whole run. None
        without a dense run, or where cost does not rise with depth, so that nothing can be said.
        """
        if dense is None:
            return None
        n = int(dense["n_evaluated"])
        named = {
            "tokens_per_s_first_quarter": n / 8,
            "tokens_per_s_last_quarter": 7 * n / 8,
            "tokens_per_s": n / 2,
        }
        rates = [dense[name]["median"] for name in named]
        if not all(rates):
            return None
        slope, constant = np.polyfit(list(named.values()), [1 / rate for rate in rates], 1)
        if slope <= 0 or constant <= 0:
            return None
        return cls(float(constant), float(slope), n, float(dense["seconds"]["median"]))

    def seconds(self, n_tokens: int) -> float:
        """For all of so many tokens."""
        return self.token_s * n_tokens + self.depth_s * n_tokens**2 / 2

    @property
    def beyond(self) -> tuple[int, ...]:
        """The lengths that were not measured."""
        return tuple(length for length in LENGTHS if length > self.n_measured)

    @property
    def shown(self) -> str:
        """The fit, and how well it meets what was measured."""
        fitted = self.seconds(self.n_measured)
        return (
            f"dense by the fit: {1e6 * self.token_s:.4g} µs + {1e9 * self.depth_s:.4g} ns × depth a token; "
            f"{self.n_measured:,} tokens {fitted:,.4g} s, measured {self.measured_s:,.4g} s"
        )

    @property
    def line(self) -> str:
        """For a person, with the lengths beyond."""
        beyond = ", ".join(f"{length:,} tokens {self.seconds(length):,.4g} s" for length in self.beyond)
        return "; extrapolated: ".join(filter(None, [self.shown, beyond]))

    def to_json(self) -> dict[str, Any]:
        """`dense_fit` of schema `localctx.bench.prefill/1` (docs/cli.md)."""
        return {
            "us_per_token": rounded(1e6 * self.token_s),
            "ns_per_token_of_depth": rounded(1e9 * self.depth_s),
            "seconds_measured": self.measured_s,
            "seconds_by_fit": rounded(self.seconds(self.n_measured)),
            "extrapolated": [
                {"n_tokens": length, "seconds": rounded(self.seconds(length))} for length in self.beyond
            ],
        }
