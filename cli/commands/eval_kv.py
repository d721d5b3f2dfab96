"""`localctx eval kv`: what stored KV costs in quality, what it saves, and how much attention it keeps."""

from __future__ import annotations

import shlex
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

import typer

from localctx.errors import UsageError

from ..options import QuietOptions, RunOptions, with_options

if TYPE_CHECKING:
    from localctx.eval.kv_arms import Mode, Wanted
    from localctx.eval.kv_long import LongWanted

__all__ = ["add_kv"]

MAX_POINTS = 1024
T = TypeVar("T")


def add_kv(group: typer.Typer) -> None:
    """Add the command to the group `eval`."""
    group.command("kv")(with_options(kv))


@dataclass(frozen=True, kw_only=True)
class ComparedOptions:
    """What is compared, over how many tokens."""

    text: Annotated[
        str | None,
        typer.Option("--text", metavar="FILE", help="Prose (default: technical prose).", show_default=False),
    ] = None
    tokens: Annotated[
        int | None,
        typer.Option(
            "--tokens", metavar="N", help="Tokens predicted in all (default: 1024).", show_default=False
        ),
    ] = None
    context: Annotated[
        int | None,
        typer.Option(
            "--context",
            metavar="N",
            help="Tokens before each stretch of them (default: 1024).",
            show_default=False,
        ),
    ] = None
    target: Annotated[int, typer.Option("--target", metavar="N", help="Tokens of a stretch.")] = 256
    codecs: Annotated[
        str | None,
        typer.Option(
            "--codecs",
            metavar="NAME,...",
            help="Codecs (default: all; with --lengths one, int4).",
            show_default=False,
        ),
    ] = None
    windows: Annotated[
        str | None,
        typer.Option(
            "--windows",
            metavar="N,...",
            help="Of prefill: exact, or tokens (default: exact,256; with --lengths one, 4096).",
            show_default=False,
        ),
    ] = None
    modes: Annotated[
        str | None,
        typer.Option(
            "--modes",
            metavar="NAME,...",
            help="What is attended to: all, local, selected, random, refreshed, text, local-text "
            "(default: all of them).",
            show_default=False,
        ),
    ] = None
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="N,...",
            help="Tokens that modes other than all attend to (default: half of the context; with --lengths "
            "one, the window).",
            show_default=False,
        ),
    ] = None
    full: Annotated[
        bool, typer.Option("--full", help="Every mode with every codec (default: with int4).")
    ] = False
    lengths: Annotated[
        str | None,
        typer.Option(
            "--lengths",
            metavar="N,...",
            help="Instead, one text streamed through a window, looked at behind so many tokens: 64k,1m.",
            show_default=False,
        ),
    ] = None
    step: Annotated[
        str | None,
        typer.Option("--step", metavar="N", help="And at every N tokens up to there.", show_default=False),
    ] = None


def kv(
    run: RunOptions,
    compared: ComparedOptions,
    output: QuietOptions,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="A picture of it.", show_default=False)
    ] = None,
) -> None:
    """Perplexity, KL divergence, top-1 agreement and hit rate of stored KV beside exact f16 attention."""
    from localctx.eval.kv import measure, measure_long
    from localctx.eval.panels import panels_to_file
    from localctx.eval.plots import check_plot_file
    from localctx.from_settings import choose_model, open_model_for

    from ..terminal import note, print_json, print_line, silent

    settings, chosen = choose_model(run.flags(), run.config)
    if run.strategy is not None or settings.kv:
        option = "--strategy" if run.strategy is not None else "--kv"
        raise UsageError(f"{option} is not for eval kv", "--codecs, --windows and --modes name the ways")
    matrix, long = None, None
    if compared.lengths is None:
        matrix = _matrix_wanted(compared, settings.seed)
        matrix.check()
    else:
        long = _long_wanted(compared, settings.seed)
        long.check()
    if plot is not None:
        check_plot_file(Path(plot))
        if matrix is not None:
            matrix.check_plot()
    command, say = shlex.join(["localctx", *sys.argv[1:]]), silent if output.quiet or output.json else note
    with closing(open_model_for(settings, chosen)) as model:
        if long is not None:
            report = measure_long(model, settings, long, command, say)
        elif matrix is not None:
            report = measure(model, settings, matrix, command, say)
    if output.json:
        print_json(report.to_json())
    else:
        print_line("\n".join(report.lines))
    if plot is not None:
        panels_to_file(report.plots, Path(plot))


def _matrix_wanted(compared: ComparedOptions, seed: int) -> Wanted:
    from localctx.eval.kv_arms import CODECS, MODES, Wanted

    if compared.step is not None:
        raise UsageError("--step is for --lengths", "--lengths N says how far it goes")
    n_context = 1024 if compared.context is None else compared.context
    return Wanted(
        1024 if compared.tokens is None else compared.tokens,
        n_context,
        compared.target,
        CODECS if compared.codecs is None else _names(compared.codecs),
        _windows(compared.windows or "exact,256"),
        _modes(compared.modes, MODES),
        (n_context // 2,) if compared.budget is None else _numbers("--budget", compared.budget),
        compared.full,
        seed,
        compared.text,
    )


def _long_wanted(compared: ComparedOptions, seed: int) -> LongWanted:
    from localctx.eval.kv_arms import CODECS, check_names
    from localctx.eval.kv_long import LONG_MODES, LongWanted

    for option, is_given in (
        ("--tokens", compared.tokens is not None),
        ("--context", compared.context is not None),
        ("--full", compared.full),
    ):
        if is_given:
            raise UsageError(f"{option} is not for --lengths", "--target says how many tokens are predicted")
    window = _only("--windows", _windows(compared.windows or "4096"))
    if window is None:
        raise UsageError("--windows exact is not for --lengths", "a number of tokens")
    budget = window if compared.budget is None else _only("--budget", _numbers("--budget", compared.budget))
    codec = _only("--codecs", _names(compared.codecs or "int4"))
    check_names("--codecs", (codec,), CODECS)
    return LongWanted(
        _lengths(compared.lengths or "", compared.step),
        compared.target,
        codec,
        window,
        budget,
        _modes(compared.modes, LONG_MODES),
        seed,
        compared.text,
    )


def _lengths(lengths: str, step: str | None) -> tuple[int, ...]:
    """The lengths, and the multiples of a step up to the longest of them."""
    from localctx.eval.niah import parse_length

    found = {parse_length(name) for name in _names(lengths)}
    if not found:
        raise UsageError("--lengths: none is named", "numbers of tokens, as 64k,1m")
    if step is not None:
        every = parse_length(step)
        if not every or max(found) // every > MAX_POINTS:
            raise UsageError(f"--step {step} is out of range", f"{MAX_POINTS} places at most")
        found |= set(range(every, max(found) + 1, every))
    return tuple(sorted(found))


def _windows(text: str) -> tuple[int | None, ...]:
    return tuple(None if name == "exact" else _number("--windows", name) for name in _names(text))


def _modes(text: str | None, every: tuple[Mode, ...]) -> tuple[Mode, ...]:
    """The modes as they are called; what is no mode is refused later."""
    if text is None:
        return every
    return cast("tuple[Mode, ...]", tuple(name.replace("-", " ") for name in _names(text)))


def _numbers(option: str, text: str) -> tuple[int, ...]:
    return tuple(_number(option, name) for name in _names(text))


def _only(option: str, values: tuple[T, ...]) -> T:
    """The one value. Raises UsageError for several, or none."""
    if len(values) != 1:
        raise UsageError(f"{option}: one alone with --lengths", "leave the others out")
    return values[0]


def _names(text: str) -> tuple[str, ...]:
    """A list as it is typed, between commas, each name once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _number(option: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 12):
        raise UsageError(f"{option} {text} is not understood", "numbers of tokens, as 256,512")
    return int(text)
