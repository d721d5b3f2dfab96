"""`localctx bench`: measurements with their baselines, on this machine; those of KV are bench_kv.py's."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from localctx.errors import UsageError

from ..options import JsonOptions, QuietOptions, RunOptions, with_options
from .bench_compare import add_compare
from .bench_kv import add_kv_benchmarks
from .bench_load import add_load
from .bench_summary import add_summary

if TYPE_CHECKING:
    from localctx.bench.faithfulness import Report

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command group to the app."""
    group = typer.Typer(
        rich_markup_mode=None, no_args_is_help=True, help="Measure speed and faithfulness here."
    )
    group.command("document")(with_options(document))
    group.command("faithfulness")(with_options(faithfulness))
    add_kv_benchmarks(group)
    add_load(group)
    add_summary(group)
    add_compare(group)
    app.add_typer(group, name="bench")


def document(
    output: JsonOptions,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="pdf, open, stream or xml; repeatable.")
    ] = None,
    scale: Annotated[float, typer.Option("--scale", metavar="X", help="Size of the inputs, 1 = full.")] = 1.0,
) -> None:
    """Measure document handling: a 2,500-page PDF, a 1 GB text, a 4 GB XML under a 1 GB address space."""
    from dataclasses import asdict

    from localctx.bench.document import run as measure

    from ..terminal import print_json, print_line

    results = []
    for result in measure(scale=scale, only=only):
        results.append(asdict(result))
        if not output.json:
            print_line(result.line)
    if output.json:
        print_json({"schema": "localctx.bench.document/1", "results": results})


def faithfulness(
    run: RunOptions,
    output: QuietOptions,
    texts: Annotated[
        str | None,
        typer.Option("--texts", metavar="DIR", help="Ten or so texts (default: cut from the sample)."),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option("--sample", metavar="FILE", help="Document that the texts are cut from."),
    ] = None,
    modes: Annotated[
        list[str] | None,
        typer.Option("--mode", metavar="MODE", help="map-reduce, condense, exact, plain-prompt."),
    ] = None,
    count: Annotated[int, typer.Option("--count", metavar="N", help="Texts cut from the sample.")] = 10,
) -> None:
    """Share of numbers and names in summaries that stand in the source, for each mode."""
    from localctx.bench.faithfulness_modes import MODES, Inputs, measure
    from localctx.from_settings import choose_model, open_model_for

    from ..terminal import note, print_json, silent

    if run.strategy is not None:
        raise UsageError("--strategy is not for bench faithfulness", "--mode names what is compared")
    inputs = Inputs(texts, sample, count)
    inputs.check()
    settings, chosen = choose_model(run.flags(), run.config)
    with closing(open_model_for(settings, chosen)) as model:
        say = silent if output.quiet else note
        report = measure(model, settings, inputs, modes or list(MODES), say)
    if output.json:
        print_json(report.as_json())
    else:
        _print_table(report)


def _print_table(report: Report) -> None:
    """A line a mode."""
    from ..terminal import print_line

    print_line(f"{'mode':<14}{'claims':>8}{'held':>8}{'share':>8}{'worst':>8}{'words':>8}{'seconds':>9}")
    for row in report.modes:
        share = f"{row.share:.1%}" if row.share is not None else "–"
        worst = f"{row.worst_share:.1%}" if row.worst_share is not None else "–"
        counts = f"{row.n_claims:>8}{row.n_supported:>8}{share:>8}{worst:>8}"
        print_line(f"{row.mode:<14}{counts}{row.n_words:>8}{row.seconds:>9.1f}")
