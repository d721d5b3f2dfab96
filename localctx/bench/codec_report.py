"""What `bench codec` found, for a person and for a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localctx.bench.repeats import Spread, ratio

__all__ = ["CodecRow", "Copying", "Report"]

NUMPY = 0
"""Stands for NumPy where others are numbers of threads."""
GB = 1e9

Rates = Mapping[int, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Copying:
    """Bytes a second of plain copies of size_bytes, by one thread and by all."""

    size_bytes: int
    one: tuple[float, ...]
    all: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CodecRow:
    """One codec on one shape: bytes a second of each repeat by number of threads, 0 being NumPy."""

    shape: str
    codec: str
    bytes_per_token: float
    bytes_per_token_f16: int
    max_key_error: float
    max_value_error: float
    encode: Rates
    decode: Rates


@dataclass(frozen=True, slots=True)
class Report:
    """n_threads: the larger number of threads · copying: the limit."""

    machine: dict[str, Any]
    n_tokens: int
    n_threads: int
    copying: Copying
    rows: tuple[CodecRow, ...]

    @property
    def lines(self) -> list[str]:
        """The result for a person."""
        one, all_threads = (_gb(values).median for values in (self.copying.one, self.copying.all))
        n = self.n_threads
        return [
            f"limit, memcpy: {one:.2f} GB/s with 1 thread, {all_threads:.2f} with {n}",
            f"GB/s of f16 KV in or out, {self.n_tokens:,} tokens, 1 and {n} threads; errors are absolute",
            f"{'shape':<14}{'codec':<10}{'B/token':>9}{'of f16':>8}{'encode 1':>10}{n:>7}{'NumPy':>8}"
            f"{'decode 1':>10}{n:>7}{'NumPy':>8}{'key error':>11}{'value error':>13}",
            *(self._line(row) for row in self.rows),
        ]

    def _line(self, row: CodecRow) -> str:
        encode, decode = (
            [_gb(rates[n]).median for n in (1, self.n_threads, NUMPY)] for rates in (row.encode, row.decode)
        )
        return (
            f"{row.shape:<14}{row.codec:<10}{row.bytes_per_token:>9,.0f}"
            f"{row.bytes_per_token / row.bytes_per_token_f16:>8.1%}"
            f"{encode[0]:>10.2f}{encode[1]:>7.2f}{encode[2]:>8.3f}"
            f"{decode[0]:>10.2f}{decode[1]:>7.2f}{decode[2]:>8.3f}"
            f"{row.max_key_error:>11.4f}{row.max_value_error:>13.4f}"
        )

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.bench.codec/1` (docs/cli.md)."""
        return {
            "schema": "localctx.bench.codec/1",
            "machine": self.machine,
            "n_tokens": self.n_tokens,
            "n_threads": self.n_threads,
            "memcpy": {
                "size_bytes": self.copying.size_bytes,
                "one_thread_gb_per_s": _gb(self.copying.one).to_json(),
                "all_threads_gb_per_s": _gb(self.copying.all).to_json(),
            },
            "codecs": [self._row(row) for row in self.rows],
        }

    def _row(self, row: CodecRow) -> dict[str, Any]:
        return {
            "shape": row.shape,
            "codec": row.codec,
            "bytes_per_token": round(row.bytes_per_token, 1),
            "bytes_per_token_f16": row.bytes_per_token_f16,
            "max_error": {"keys": row.max_key_error, "values": row.max_value_error},
            "encode": self._speeds(row.encode),
            "decode": self._speeds(row.decode),
        }

    def _speeds(self, rates: Rates) -> dict[str, Any]:
        one, many, numpy = (_gb(rates[n]) for n in (1, self.n_threads, NUMPY))
        return {
            "one_thread_gb_per_s": one.to_json(),
            "all_threads_gb_per_s": many.to_json(),
            "numpy_gb_per_s": numpy.to_json(),
            "by_numpy": ratio(many, numpy),
        }


def _gb(rates: Sequence[float]) -> Spread:
    return Spread.of([rate / GB for rate in rates])
