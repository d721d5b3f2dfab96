"""`localctx eval kv`: what stored KV costs in quality, what it saves, and how much attention it keeps."""

from __future__ import annotations

import shlex
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from localctx.errors import UsageError

from ..options import QuietOptions, RunOptions, with_options

if TYPE_CHECKING:
    from localctx.eval.kv_arms import Mode, Wanted

__all__ = ["add_kv"]


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
    tokens: Annotated[int, typer.Option("--tokens", metavar="N", help="Tokens predicted in all.")] = 1024
    context: Annotated[
        int, typer.Option("--context", metavar="N", help="Tokens before each stretch of them.")
    ] = 1024
    target: Annotated[int, typer.Option("--target", metavar="N", help="Tokens of a stretch.")] = 256
    codecs: Annotated[
        str | None,
        typer.Option("--codecs", metavar="NAME,...", help="Codecs (default: all).", show_default=False),
    ] = None
    windows: Annotated[
        str, typer.Option("--windows", metavar="N,...", help="Of prefill: exact, or tokens.")
    ] = "exact,256"
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
        str, typer.Option("--budget", metavar="N,...", help="Tokens that modes other than all attend to.")
    ] = "512"
    full: Annotated[
        bool, typer.Option("--full", help="Every mode with every codec (default: with int4).")
    ] = False


def kv(
    run: RunOptions,
    compared: ComparedOptions,
    output: QuietOptions,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="A picture of it.", show_default=False)
    ] = None,
) -> None:
    """Perplexity, KL divergence, top-1 agreement and hit rate of stored KV beside exact f16 attention."""
    from localctx.eval.kv import measure
    from localctx.eval.plots import check_plot_file, panels_to_file
    from localctx.from_settings import choose_model, open_model_for

    from ..terminal import note, print_json, print_line, silent

    if run.strategy is not None:
        raise UsageError("--strategy is not for eval kv", "it compares the ways there are")
    settings, chosen = choose_model(run.flags(), run.config)
    wanted = _wanted(compared, settings.seed)
    wanted.check()
    if plot is not None:
        check_plot_file(Path(plot))
    command = shlex.join(["localctx", *sys.argv[1:]])
    with closing(open_model_for(settings, chosen)) as model:
        report = measure(model, settings, wanted, command, silent if output.quiet or output.json else note)
    if plot is not None:
        panels_to_file(report.plots, Path(plot))
    if output.json:
        print_json(report.to_json())
    else:
        print_line("\n".join(report.lines))


def _wanted(compared: ComparedOptions, seed: int) -> Wanted:
    from localctx.eval.kv_arms import CODECS, MODES, Wanted

    names = MODES if compared.modes is None else tuple(_names(compared.modes.replace("-", " ")))
    windows = (None if name == "exact" else _number("--windows", name) for name in _names(compared.windows))
    return Wanted(
        compared.tokens,
        compared.context,
        compared.target,
        CODECS if compared.codecs is None else _names(compared.codecs),
        tuple(windows),
        cast("tuple[Mode, ...]", names),
        tuple(_number("--budget", name) for name in _names(compared.budget)),
        compared.full,
        seed,
        compared.text,
    )


def _names(text: str) -> tuple[str, ...]:
    """A list as it is typed, between commas, each name once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _number(option: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 12):
        raise UsageError(f"{option} {text} is not understood", "numbers of tokens, as 256,512")
    return int(text)
