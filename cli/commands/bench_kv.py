"""`localctx bench prefill|ask|decode|codec`: stored KV and its baselines, in one process, by turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from localctx.errors import LocalctxError, UsageError

from ..options import JsonOptions, ParallelOptions, QuietOptions, RunOptions, with_options

if TYPE_CHECKING:
    from localctx.forecast.calibration import Calibration
    from localctx.settings import Settings
    from localctx.values import Model

__all__ = ["add_kv_benchmarks"]

Source = Annotated[str | None, typer.Argument(metavar="FILE", help="A document (default: technical prose).")]
Tokens = Annotated[
    int | None,
    typer.Option("--tokens", metavar="N", help="Read its first N tokens only.", show_default=False),
]
Repeats = Annotated[int, typer.Option("--repeats", metavar="N", help="How often each is measured.")]


class Report(Protocol):
    """What a benchmark found."""

    @property
    def lines(self) -> list[str]:
        """For a person."""

    def to_json(self) -> dict[str, Any]:
        """For a program."""


def add_kv_benchmarks(group: typer.Typer) -> None:
    """Add the commands to the group `bench`."""
    for command in (prefill, ask, decode, codec):
        group.command(command.__name__)(with_options(command))


def prefill(
    run: RunOptions,
    output: QuietOptions,
    source: Source = None,
    tokens: Tokens = None,
    repeats: Repeats = 3,
) -> None:
    """Streamed prefill into a store beside dense prefill by llama.cpp: tokens/s, bytes, memory, flatness."""
    from localctx.bench.prefill import measure

    with _ready(run, "prefill") as (model, settings):
        report = measure(model, settings, source, tokens, repeats, _teller(output))
    _keep(settings, report.calibration)
    _print(report, output)


def ask(
    run: ParallelOptions,
    output: QuietOptions,
    source: Source = None,
    tokens: Tokens = None,
    question: Annotated[
        list[str] | None,
        typer.Option("--question", "-q", metavar="TEXT", help="Ask this; repeatable.", show_default=False),
    ] = None,
    questions: Annotated[
        int | None,
        typer.Option(
            "--questions",
            metavar="N",
            help="Ask N questions made from the text's words (default: 4, or as many as side by side).",
            show_default=False,
        ),
    ] = None,
    repeats: Repeats = 3,
) -> None:
    """The first token of answers from stored KV, beside re-prefill of the same text and text retrieval; with
    --parallel N questions a second, N side by side and one by one.
    """
    from localctx.bench import ask_many
    from localctx.bench.ask import Asking, measure

    many = run.parallel
    n_made = questions if questions is not None else many or 4
    asking = Asking(tuple(question or ()), n_made, repeats)
    report: Report
    with _ready(run, "ask") as (model, settings):
        if many is None:
            report = measure(model, settings, source, tokens, asking, _teller(output))
        else:
            report = ask_many.measure(model, settings, source, tokens, asking, many, _teller(output))
    _print(report, output)


def decode(
    run: RunOptions,
    output: QuietOptions,
    source: Source = None,
    tokens: Annotated[int, typer.Option("--tokens", metavar="N", help="Cells that are attended.")] = 2048,
    steps: Annotated[int, typer.Option("--steps", metavar="N", help="Tokens decoded behind them.")] = 32,
    repeats: Repeats = 3,
) -> None:
    """Decoding behind assembled KV beside plain decoding, and the store beside llama.cpp's state files."""
    from localctx.bench.decode import Sizes, measure

    with _ready(run, "decode") as (model, settings):
        report = measure(model, settings, source, Sizes(tokens, steps, repeats), _teller(output))
    _keep(settings, report.calibration)
    _print(report, output)


def codec(
    output: QuietOptions,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            metavar="NAME",
            help="smollm2-135m, 8b, or LAYERSxHEADSxDIM; repeatable.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--codec", metavar="NAME", help="Only this one; repeatable.", show_default=False),
    ] = None,
    tokens: Annotated[int, typer.Option("--tokens", metavar="N", help="Tokens of made-up KV.")] = 512,
    threads: Annotated[
        int | None, typer.Option("--threads", "-t", help="Beside one thread.", show_default=False)
    ] = None,
    repeats: Repeats = 5,
) -> None:
    """Encoding and decoding of KV in every codec beside NumPy, with the speed of memcpy as the limit."""
    from localctx.bench.codec import Options, measure

    options = Options(tuple(shape or ()), tuple(name or ()), tokens, repeats, threads)
    _print(measure(options, _teller(output)), output)


@contextmanager
def _ready(run: RunOptions, command: str) -> Iterator[tuple[Model, Settings]]:
    """The model, open, and the settings."""
    from localctx.from_settings import choose_model, open_model_for

    if run.strategy is not None:
        raise UsageError(f"--strategy is not for bench {command}", "it compares the ways there are")
    settings, chosen = choose_model(run.flags(), run.config)
    with closing(open_model_for(settings, chosen)) as model:
        yield model, settings


def _teller(output: QuietOptions) -> Callable[[str], None]:
    """Who is told what is being done."""
    from ..terminal import note, silent

    return silent if output.quiet or output.json else note


def _keep(settings: Settings, found: Calibration | None) -> None:
    """Keep the speeds for plans; where that cannot be, it is told, and the benchmark counts all the same."""
    from localctx.forecast.calibration import keep

    from ..terminal import note

    if found is None:
        return
    try:
        keep(settings.store_root, found)
    except LocalctxError as error:
        note(f"warning: {error.message}")


def _print(report: Report, output: JsonOptions) -> None:
    from ..terminal import print_json, print_line

    if output.json:
        print_json(report.to_json())
    else:
        print_line("\n".join(report.lines))
