"""`localctx eval rope`: perplexity beyond the trained length, for every way of scaling RoPE."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from localctx.errors import UsageError

from ..options import QuietOptions, RunOptions, with_options

if TYPE_CHECKING:
    from localctx.eval.plots import Plot
    from localctx.eval.rope_report import Report

__all__ = ["add_rope"]


def add_rope(group: typer.Typer) -> None:
    """Add the command to the group `eval`."""
    group.command("rope")(with_options(rope))


def rope(
    run: RunOptions,
    output: QuietOptions,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="FILE", help="Text (default: technical prose).", show_default=False),
    ] = None,
    times: Annotated[
        str, typer.Option("--times", metavar="N,...", help="Contexts, by the trained length.")
    ] = "1,2,4",
    targets: Annotated[int, typer.Option("--targets", metavar="N", help="Tokens predicted.")] = 8192,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="NAME,...",
            help="Of none, linear, ntk, dynamic-ntk, yarn (default: all).",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="A picture of it.", show_default=False)
    ] = None,
) -> None:
    """Perplexity of the same tokens after 1, 2 and 4 times the trained context, for every RoPE scaling."""
    from localctx.eval.plots import check_plot_file
    from localctx.eval.rope import measure
    from localctx.eval.rope_report import Wanted
    from localctx.from_settings import choose_model

    from ..terminal import note, print_json, print_line, silent, write_as_is

    settings, chosen = choose_model(run.flags(), run.config)
    given = [name for name in settings.requested if name != "ctx"]
    if given or run.strategy is not None:
        option = f"--{given[0].replace('_', '-')}" if given else "--strategy"
        raise UsageError(f"{option} is not for eval rope", "it compares the ways there are")
    wanted = Wanted(_numbers(times), targets, tuple(methods.split(",")) if methods else (), text)
    if plot is not None:
        check_plot_file(Path(plot))
    report = measure(settings, chosen, wanted, silent if output.quiet or output.json else note)
    if plot is not None:
        _plot(report).to_file(Path(plot))
    if output.json:
        print_json(report.to_json())
        return
    print_line("\n".join(report.lines))
    if sys.stdout.isatty():
        write_as_is(_plot(report).for_terminal(min(100, shutil.get_terminal_size().columns)) + "\n")


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--times {text} is not understood", "numbers, as 1,2,4") from None


def _plot(report: Report) -> Plot:
    from localctx.eval.plots import Plot

    lines = {row.method.label: [at.ratio for at in row.at] for row in report.rows}
    return Plot(
        f"{report.model}, trained for {report.n_ctx_train:,} tokens",
        "context by the trained length",
        "perplexity by that inside training",
        report.wanted.times,
        lines,
        is_log=True,
    )
