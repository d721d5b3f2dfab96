"""The page docs/benchmarks.md and its plots, made from docs/results: python -m localctx.eval.benchmarks_page

Deterministic: the same results give the same page. Runs nothing. Of a plot it is known what it was drawn from
(`source` in the picture), so that a stale one is found without drawing it again.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from localctx.bench.program import run_as_program
from localctx.errors import UsageError
from localctx.eval.benchmark_renderers import tables_of
from localctx.eval.plots import Plot
from localctx.eval.results import Result, read_results
from localctx.eval.tables import Table, plots_of

__all__ = ["page", "plot_sources", "write_page"]

HEAD = """# Benchmarks

Made by `python -m localctx.eval.benchmarks_page` from the files in [results](results/README.md): do not edit.
"""
ORDER = ("localctx.bench.compare", "localctx.eval.kv", "localctx.eval.leader", "localctx.eval.niah")
"""Schemas that come first; the others by name."""
WRITTEN = ("before", "not-reproduced", "loses")
"""Parts of the page that are written by hand: docs/results/NAME.md, where there is one."""


def page(folder: Path) -> str:
    """The page of the results in a folder. Raises UsageError for a file that is no result."""
    before, *after = (_written(folder, name) for name in WRITTEN)
    parts = [HEAD, before, *(_section(result) for result in _in_order(read_results(folder))), *after]
    return "\n".join(part.strip() + "\n" for part in parts if part.strip())


def _in_order(results: Sequence[Result]) -> list[Result]:
    first = {schema: place for place, schema in enumerate(ORDER)}
    return sorted(results, key=lambda one: (first.get(one.schema, len(ORDER)), one.schema, one.name))


def _written(folder: Path, name: str) -> str:
    path = folder / f"{name}.md"
    return path.read_text("utf-8") if path.exists() else ""


def _section(result: Result) -> str:
    machine = result.machine
    threads = machine.get("n_threads")
    told = [
        ", ".join(machine.get("gpus") or []) or "no GPU",
        f"{machine.get('n_cores')} cores" + (f", {threads} threads" if threads else ""),
        str(machine.get("simd") or ""),
        f"{machine.get('ram_gib')} GiB",
        f"load {load:g}" if (load := machine.get("load_average")) is not None else "",
        ", ".join(f"{name} {version}" for name, version in result.versions.items()),
        result.date,
    ]
    lines = [f"## {result.name}", f"```\n{result.command}\n```", "; ".join(one for one in told if one) + "."]
    if result.note:
        lines.append(f"**{result.note[:1].upper()}{result.note[1:].rstrip('.')}.**")
    if result.left_out:
        lines.append(f"Left out of the file: {', '.join(f'`{key}`' for key in result.left_out)}.")
    lines += [table.markdown for table in _tables(result)]
    lines += [f"![{plot.title}](plots/{name})" for name, plot in _plots(result)]
    return "\n\n".join(lines)


def _tables(result: Result) -> list[Table]:
    """Raises UsageError for a result that has not what its schema has."""
    try:
        return tables_of(result.result)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"{result.name} is no {result.schema}: {reason}", "make it anew") from None


def _plots(result: Result) -> Iterator[tuple[str, Plot]]:
    for number, plot in enumerate(plots_of(result.result), 1):
        yield f"{result.name}-{number}.svg", plot


def plot_sources(folder: Path) -> dict[str, str]:
    """Of every plot's file name, what it has to be drawn from, as a hash."""
    return {name: _source(plot) for result in read_results(folder) for name, plot in _plots(result)}


def _source(plot: Plot) -> str:
    return hashlib.sha256(json.dumps(asdict(plot), sort_keys=True).encode()).hexdigest()


def write_page(docs: Path) -> None:
    """benchmarks.md and plots/*.svg below docs; plots of results that are gone go too. Raises UsageError
    without matplotlib, or for a file that is no result.
    """
    folder, plots = docs / "results", docs / "plots"
    named = {name: plot for result in read_results(folder) for name, plot in _plots(result)}
    for stale in set(plots.glob("*.svg")) - {plots / name for name in named}:
        stale.unlink()
    for name, plot in named.items():
        plots.mkdir(exist_ok=True)
        plot.to_file(plots / name, source=_source(plot))
    (docs / "benchmarks.md").write_text(page(folder), "utf-8", newline="\n")


if __name__ == "__main__":
    run_as_program(lambda: write_page(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs")))
