"""`localctx bench summary`: what summaries of the same length tell, by the way they are made."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from localctx.errors import UsageError

from ..options import QuietOptions, RunOptions, with_options

if TYPE_CHECKING:
    from localctx.bench.summary import Report

__all__ = ["add_summary"]


def add_summary(group: typer.Typer) -> None:
    """Add the command to the group."""
    group.command("summary")(with_options(summary))


def summary(
    run: RunOptions,
    output: QuietOptions,
    texts: Annotated[
        str | None, typer.Option("--texts", metavar="DIR", help="Texts (default: cut from the sample).")
    ] = None,
    sample: Annotated[
        str | None, typer.Option("--sample", metavar="FILE", help="Document that texts are cut from.")
    ] = None,
    modes: Annotated[
        list[str] | None,
        typer.Option("--mode", metavar="MODE", help="map-reduce, taps, refine, lead, centroid, index."),
    ] = None,
    count: Annotated[int, typer.Option("--count", metavar="N", help="Texts cut from the sample.")] = 10,
    facts: Annotated[int, typer.Option("--facts", metavar="N", help="Facts planted in each text.")] = 10,
    words: Annotated[int, typer.Option("--words", metavar="N", help="Words of each summary.")] = 480,
    tokens: Annotated[
        int | None, typer.Option("--tokens", metavar="N", help="Tokens that each text is cut to.")
    ] = None,
) -> None:
    """Planted facts told by tenth of the text, coverage, faithfulness, redundancy and cost, for each way."""
    from localctx.bench.faithfulness_modes import Inputs
    from localctx.bench.summary import ALL_WAYS, Asked, measure
    from localctx.from_settings import choose_model, open_model_for

    from ..terminal import note, print_json, silent

    if run.strategy is not None:
        raise UsageError("--strategy is not for bench summary", "--mode names what is compared")
    inputs = Inputs(texts, sample, count)
    inputs.check()
    settings, chosen = choose_model(run.flags(), run.config)
    asked = Asked(tuple(modes or ALL_WAYS), facts, words, tokens, settings.seed or 1)
    asked.check()
    with closing(open_model_for(settings, chosen)) as model:
        report = measure(model, settings, inputs, asked, silent if output.quiet else note)
    if output.json:
        print_json(report.as_json())
    else:
        _print_table(report)


def _print_table(report: Report) -> None:
    """A line a way, and a line an indexed text."""
    from ..terminal import print_line

    head = f"{'mode':<12}{'recall':>8}{'covered':>9}{'held':>7}{'repeats':>9}{'words':>7}{'CPU s':>9}"
    if report.ways:
        print_line(f"{head}{'s':>8}{'read':>10}{'written':>9}  recall by tenth")
    for row in report.ways:
        held = f"{row.faithfulness:.0%}" if row.faithfulness is not None else "–"
        tenths = " ".join("–" if share is None else f"{share:.0%}" for share in row.recall_by_decile)
        print_line(
            f"{row.way:<12}{row.recall:>8.0%}{row.coverage:>9.0%}{held:>7}{row.redundancy:>9.0%}"
            f"{row.n_words:>7}{row.cpu_seconds:>9.1f}{row.seconds:>8.1f}{row.n_evaluated:>10,}"
            f"{row.n_generated:>9,}  {tenths}"
        )
    for cost in report.index:
        by_cpu = f"{cost.cpu_ratio:.2f} of the {cost.plain_cpu_seconds:.1f} s of processors"
        by_clock = f"{cost.ratio:.2f} of the {cost.plain_seconds:.1f} s"
        print_line(f"index {cost.text}: {cost.n_tokens:,} tokens, with summaries {by_cpu}, {by_clock}")
