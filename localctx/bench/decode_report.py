"""What `bench decode` found, for a person and for a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from localctx.bench.repeats import Spread, ratio
from localctx.forecast.calibration import Calibration
from localctx.values import ModelInfo

__all__ = ["Decoding", "Keeping", "Report"]


@dataclass(frozen=True, slots=True)
class Decoding:
    """Tokens a second of each repeat; way: "assembled" or "plain"."""

    way: str
    tokens_per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Keeping:
    """One way of keeping the cells: `by` the store in a codec, or by llama.cpp in its KV type. size_bytes: of
    all tokens. `error`: why there are no figures.
    """

    by: str
    form: str
    size_bytes: int
    save_s: tuple[float, ...]
    load_s: tuple[float, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """n_tokens: cells attended · n_steps: tokens decoded behind them in each repeat · codec: of what was
    assembled · calibration: the speeds that plans are made from; None where they cannot be.
    """

    model: ModelInfo
    machine: dict[str, Any]
    n_tokens: int
    n_steps: int
    codec: str
    decoding: tuple[Decoding, ...]
    keeping: tuple[Keeping, ...]
    calibration: Calibration | None = None

    @property
    def _rates(self) -> dict[str, Spread]:
        return {one.way: Spread.of(one.tokens_per_s) for one in self.decoding}

    @property
    def lines(self) -> list[str]:
        """The result for a person."""
        rates = self._rates
        return [
            f"decode behind {self.n_tokens:,} cells: assembled from {self.codec} "
            f"{rates['assembled'].shown(1)} tokens/s, plain {rates['plain'].shown(1)} tokens/s, "
            f"assembled / plain {ratio(rates['assembled'], rates['plain'])}",
            f"{'kept by':<12}{'as':<8}{'bytes/token':>12}  {'save s':<26}load s",
            *(self._line(row) for row in self.keeping),
        ]

    def _line(self, row: Keeping) -> str:
        if row.error:
            return f"{row.by:<12}{row.form:<8}{row.error}"
        save, load = (Spread.of(values).shown(3) for values in (row.save_s, row.load_s))
        return f"{row.by:<12}{row.form:<8}{row.size_bytes / self.n_tokens:>12,.0f}  {save:<26}{load}"

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.bench.decode/1` (docs/cli.md)."""
        rates = self._rates
        return {
            "schema": "localctx.bench.decode/1",
            "machine": self.machine,
            "model": {"name": self.model.name, "fingerprint": self.model.fingerprint},
            "n_tokens": self.n_tokens,
            "n_steps": self.n_steps,
            "decode": {
                "codec": self.codec,
                "assembled_tokens_per_s": rates["assembled"].to_json(),
                "plain_tokens_per_s": rates["plain"].to_json(),
                "assembled_by_plain": ratio(rates["assembled"], rates["plain"]),
            },
            "keeping": [
                {
                    "by": row.by,
                    "form": row.form,
                    "size_bytes": row.size_bytes,
                    "bytes_per_token": round(row.size_bytes / self.n_tokens, 1),
                    "save_s": _spread(row.save_s),
                    "load_s": _spread(row.load_s),
                    "error": row.error or None,
                }
                for row in self.keeping
            ],
        }


def _spread(values: Sequence[float]) -> dict[str, Any] | None:
    return Spread.of(values).to_json() if values else None
