"""What `eval rope` measures and what it found: methods, rows, the table and its JSON. Computes nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from localctx.values import RopeInfo

__all__ = ["FITTED", "NAMES", "SHARPER", "At", "Method", "Report", "Row", "Wanted"]

NAMES = ("none", "linear", "ntk", "dynamic-ntk", "yarn")
FITTED = {"linear": "linear", "dynamic-ntk": "ntk", "yarn": "yarn"}
"""Methods that take the factor each context needs, and what they are called with a fixed one."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is measured: contexts of so many times the trained length, target tokens, methods by name (empty:
    all), and the text (None: technical prose).
    """

    times: tuple[float, ...] = (1, 2, 4)
    n_targets: int = 8192
    methods: tuple[str, ...] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """A way of scaling; factor None: what each context needs."""

    name: str
    factor: float | None = None

    @property
    def label(self) -> str:
        """As it stands in the table."""
        return self.name if self.factor is None else f"{self.name} × {self.factor:.4g}"

    @property
    def family(self) -> str:
        """What it is at one given factor: at the longest context, fixed and fitted are the same."""
        return self.label if self == SHARPER else FITTED.get(self.name, self.name)


SHARPER = Method("dynamic-ntk", 2.0)
"""Stretches more than the length asks for, as 2 n/trained - 1."""


@dataclass(frozen=True, slots=True)
class At:
    """One method behind one length: perplexity, and its ratio to the baseline with the standard error of the
    paired difference.
    """

    n_context: int
    rope: RopeInfo
    perplexity: float
    ratio: float
    ratio_error: float
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "n_context": self.n_context,
            "freq_base": round(self.rope.freq_base, 1),
            "freq_scale": float(f"{self.rope.freq_scale:.6g}"),
            "perplexity": float(f"{self.perplexity:.5g}"),
            "ratio": float(f"{self.ratio:.5g}"),
            "ratio_error": float(f"{self.ratio_error:.3g}"),
            "seconds": round(self.seconds, 1),
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One method at every length."""

    method: Method
    at: tuple[At, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What was found. `baseline`: perplexity inside the trained length, each token behind half of it at
    least.
    """

    model: str
    fingerprint: str
    n_ctx_train: int
    text: str
    wanted: Wanted
    baseline: float
    rows: tuple[Row, ...]

    @property
    def best(self) -> Method | None:
        """The lowest perplexity over all lengths, of those that --rope-scaling alone names."""
        named = [row for row in self.rows if row.method.factor is None and row.method.name != "none"]
        if not named:
            return None
        return min(named, key=lambda row: math.prod(at.ratio for at in row.at)).method

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.eval.rope/1`."""
        return {
            "schema": "localctx.eval.rope/1",
            "model": {"name": self.model, "fingerprint": self.fingerprint, "n_ctx_train": self.n_ctx_train},
            "text": self.text,
            "n_targets": self.wanted.n_targets,
            "times": list(self.wanted.times),
            "baseline": {"perplexity": float(f"{self.baseline:.5g}")},
            "methods": [
                {
                    "name": row.method.name,
                    "factor": row.method.factor,
                    "at": [at.to_json() for at in row.at],
                }
                for row in self.rows
            ],
            "best": None if self.best is None else self.best.name,
        }

    @property
    def lines(self) -> list[str]:
        """The table: perplexity, and its ratio to the baseline."""
        heads = [f"{times:g} × {self.n_ctx_train:,}" for times in self.wanted.times]
        lines = [f"{self.wanted.n_targets:,} target tokens of {self.text}: perplexity (by the first row's)"]
        lines.append(f"{'after':<18}" + "".join(f"{head:>26}" for head in heads))
        lines.append(f"{'inside training':<18}{self.baseline:>26.3f}")
        for row in self.rows:
            cells = (f"{at.perplexity:,.3f} ({at.ratio:.3f} ± {at.ratio_error:.3f})" for at in row.at)
            lines.append(f"{row.method.label:<18}" + "".join(f"{cell:>26}" for cell in cells))
        if self.best is not None:
            lines.append(f"best at all lengths together: {self.best.name}")
        return lines
