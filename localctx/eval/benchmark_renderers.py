"""How results of some schemas are shown on docs/benchmarks.md. Knows their JSON, no files; runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from localctx.bench.dense_fit import DenseFit
from localctx.eval.kv_tables import kv_tables
from localctx.eval.tables import Table, cell, generic_tables

__all__ = ["RENDERERS", "tables_of"]

Result = Mapping[str, Any]
SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def tables_of(result: Result) -> list[Table]:
    """Of a command's JSON: its schema's way, else one that fits all."""
    schema = str(result.get("schema", "")).partition("/")[0]
    return RENDERERS.get(schema, generic_tables)(result)


def _size(n_bytes: int | None) -> str:
    """12.3 MB; – for nothing measured."""
    if n_bytes is None:
        return cell(None)
    scale, unit = next(((scale, unit) for scale, unit in SIZES if n_bytes >= scale), (1, "B"))
    return f"{n_bytes / scale:,.3g} {unit}" if n_bytes else "0"


def _compared(result: Result) -> list[Table]:
    """`bench compare`: a row a way."""
    n_with, n_without = result["n_with_answer"], result["n_without_answer"]
    columns = (
        "way", "first token, s", f"× sooner than {result['baseline']}", "in all, s", "× sooner", "evaluated",
        "done before, s", "on disk", "memory", "GPU memory", f"right of {n_with}", f"declined of {n_without}",
        "joules",
    )  # fmt: skip
    rows = [_way(row) for row in result["ways"]]
    told = (
        f"{result['model']['name']}, {result['source']}, {result['n_tokens']:,} tokens, {result['n_rounds']} "
        f"rounds, answers of {result['max_tokens']} tokens at most"
    )
    tables = [Table(told, columns, rows)]
    if result["missing"]:
        tables.append(Table("Not measured", ("way", "why"), [*result["missing"].items()]))
    return tables


def _way(row: Result) -> list[str]:
    joules = sum(row["joules"].values()) if row["joules"] else None
    spreads = ("first_token_s", "times_sooner_first_token", "seconds", "times_sooner_in_all", "n_evaluated")
    sizes = ("kept_bytes", "peak_memory_bytes", "peak_device_bytes")
    return [
        row["way"],
        *(cell(row.get(name)) for name in (*spreads, "prepared_s")),
        *(_size(row[name]) for name in sizes),
        *(cell(value) for value in (row["n_right"], row["n_declined"], joules)),
    ]


def _answered(result: Result) -> list[Table]:
    """`eval niah` and its like: a row a task and length, a column a mode, right · declined · false."""
    modes = list(dict.fromkeys(mode for row in _rows(result) for mode in row["modes"]))
    rows = [
        [
            cell(row.get("length")), cell(row.get("language")), row["task"], cell(row["n"]),
            *(_scores(row["modes"].get(mode)) for mode in modes),
        ]
        for row in _rows(result)
    ]  # fmt: skip
    told = f"{result['model']['name']}, {result['haystack']}; right strings · declined · false answers"
    return [Table(told, ("tokens", "language", "task", "questions", *modes), rows)]


def _rows(result: Result) -> Iterator[Result]:
    yield from result["rows"]
    yield from result.get("totals", ())


def _scores(found: Result | None) -> str:
    if not found:
        return cell(None)
    return " · ".join(cell(found[name]) for name in ("recall", "declined", "false_answers"))


def _leader(result: Result) -> list[Table]:
    """`eval leader`: the measures, then right answers by distance and under each change."""
    measures = {
        "n": "questions", "match": "right", "declined": "declined", "false_answers": "false", "lpa5": "LPA@5",
        "cri_delta": "CRI-Δ", "cri_without": "CRI without evidence", "ldr": "LDR",
    }  # fmt: skip
    at = {"length": "tokens", "language": "language", "mode": "mode"}
    parts = {
        f"{result['model']['name']}, {result['haystack']}": ("scores", measures),
        "As evidence moves away": (
            "distances", {"distance": "tokens to the end", "match": "right", "lpa5": "LPA@5", "kept": "kept"}
        ),
        "As documents change": (
            "perturbations",
            {"perturbation": "change", "n": "questions", "match": "right", "base_match": "right before",
             "lpa5": "LPA@5", "cri_delta": "CRI-Δ", "cri_value": "CRI-Δ of the value"},
        ),
        "At random": ("chance", {"match": "right", "lpa5": "LPA@5"}),
    }  # fmt: skip
    tables = []
    for title, (part, named) in parts.items():
        columns = {**at, **named} if part != "chance" else {**dict(list(at.items())[:2]), **named}
        rows = [[cell(row.get(key)) for key in columns] for row in result[part]]
        tables += [Table(title, tuple(columns.values()), rows)] if rows else []
    return tables


def _layers(result: Result) -> list[Table]:
    """`python -m localctx.eval.layers`: a row an arm."""
    rows = [
        (row["arm"], f"{row['share_not_kept']:.0%}", cell(row["perplexity"]),
         f"× {cell(row['ratio'])} ± {cell(row['ratio_error'])}")
        for row in result["arms"]
    ]  # fmt: skip
    told = (
        f"{result['model']['name']}, {result['text']}: {result['n_targets']:,} tokens predicted behind "
        f"{result['n_context']:,} tokens of context"
    )
    return [Table(told, ("made from neighbours", "KV not kept", "perplexity", "beside unchanged"), rows)]


def _prefilled(result: Result) -> list[Table]:
    """`bench prefill`: all figures, and what dense prefill would take beyond what was measured."""
    tables = generic_tables({key: value for key, value in result.items() if key != "dense_fit"})
    fit = DenseFit.of(result["dense"])
    if fit is None:
        return tables
    rate = result["streamed"]["tokens_per_s"]["median"]
    rows = [
        [cell(value) for value in (length, seconds, length / rate, seconds * rate / length)]
        for length in fit.beyond
        for seconds in [fit.seconds(length)]
    ]
    told = f"Extrapolated; {fit.shown}, and streamed at the same {cell(rate)} tokens a second"
    return [*tables, Table(told, ("tokens", "dense, s", "streamed, s", "× sooner"), rows)]


RENDERERS: dict[str, Callable[[Result], list[Table]]] = {
    "localctx.bench.compare": _compared,
    "localctx.bench.prefill": _prefilled,
    "localctx.eval.kv": kv_tables,
    "localctx.eval.leader": _leader,
    "localctx.eval.niah": _answered,
    "localctx.eval.ruler": _answered,
    "localctx.eval.layers": _layers,
}
"""By a schema without its version."""
