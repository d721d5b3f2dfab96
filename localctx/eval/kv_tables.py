"""The JSON of `eval kv` as tables for docs/benchmarks.md. Knows no files; measures nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from localctx.eval.tables import Table, cell

__all__ = ["kv_tables"]

Result = Mapping[str, Any]
ARM_COLUMNS = (
    "codec", "prefill window", "mode", "attended", "hit rate", "bytes a token", "perplexity rise", "KL",
    "top-1", "long context: rise", "KL", "top-1", "decode, ms",
)  # fmt: skip
LONG_COLUMNS = (
    "tokens read", "mode", "attended", "perplexity", "by the baseline's", "hit rate", "with prefix",
    "put together, ms", "decode, ms",
)  # fmt: skip


def kv_tables(result: Result) -> list[Table]:
    """A row an arm and the curves, or a row a place and mode."""
    return [*_matrix(result), *_long(result)]


def _matrix(result: Result) -> Iterator[Table]:
    matrix = result["matrix"]
    if matrix is None:
        return
    exact, short = matrix["exact"], matrix["short"]
    told = (
        f"{result['model']['name']}, {result['text']}: {matrix['n_tokens']:,} tokens predicted behind "
        f"{matrix['n_context']:,} each; perplexity {cell(exact['perplexity'])} with exact attention, "
        f"{cell(short['perplexity'])} behind the last 128 alone; of the "
        f"{matrix['long_context']['n_tokens']:,} that need long context "
        f"{cell(exact['perplexity_long_context'])} and {cell(short['perplexity_long_context'])}"
    )
    yield Table(told, ARM_COLUMNS, [_arm(row) for row in matrix["arms"]])
    points = [_point(curve, one) for curve in matrix["curves"] for one in curve["points"]]
    yield Table("Compression and its cost", ("curve", "", "bytes a token", "times smaller", "KL", ""), points)


def _point(curve: Result, one: Result) -> list[str]:
    figures = (cell(one[name]) for name in ("bytes_per_token", "compression", "kl"))
    return [curve["name"], one["name"], *figures, "knee" if one["name"] == curve["knee"] else ""]


def _arm(row: Result) -> list[str]:
    everywhere, needy, hits = row["all_tokens"], row["long_context_tokens"], row["hit_rate"]
    window = "exact" if row["window"] is None else f"{row['window']:,}"
    return [
        cell(row["codec"]),
        window if row["codec"] else cell(None),
        row["mode"],
        "all" if row["budget"] is None else cell(row["budget"]),
        _share(None if hits is None else hits["document"]),
        cell(row["bytes_per_token"]),
        f"{everywhere['rise']:+.2%} ± {everywhere['rise_error']:.2%}",
        cell(everywhere["kl"]),
        _share(everywhere["top1"]),
        f"{needy['rise']:+.1%}",
        cell(needy["kl"]),
        _share(needy["top1"]),
        cell(row["latency"]["decode_ms_per_token"]),
    ]


def _long(result: Result) -> Iterator[Table]:
    long = result["long"]
    if long is None:
        return
    rates = [point["latency"]["prefill_tokens_per_s"] for point in long["points"]]
    told = (
        f"{result['model']['name']}, {result['text']}: {long['n_target']:,} tokens predicted at each place, "
        f"window {long['window']:,}, {long['codec']}, {cell(long['bytes_per_token'])} bytes a token; "
        f"baseline {long['baseline'] or 'none'}; prefill {min(rates):,.0f} to {max(rates):,.0f} tokens/s"
    )
    rows = [_place(point, one) for point in long["points"] for one in point["modes"]]
    yield Table(told, LONG_COLUMNS, rows)


def _place(point: Result, one: Result) -> list[str]:
    ratio = cell(None) if one["ratio"] is None else f"{one['ratio']:.3f} ± {one['ratio_error']:.3f}"
    return [
        cell(point["n_tokens"]),
        one["mode"],
        cell(one["n_attended"]),
        cell(one["perplexity"]),
        ratio,
        _share(one["hit_rate"]["document"]),
        _share(one["hit_rate"]["all"]),
        cell(one["latency"]["place_ms"]),
        cell(one["latency"]["decode_ms_per_token"]),
    ]


def _share(value: float | None) -> str:
    return cell(None) if value is None else f"{value:.1%}"
