"""`localctx bench compare`: the same questions through llama.cpp alone, text retrieval, localctx."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Annotated

import typer

from localctx.errors import UsageError

from ..options import QuietOptions, RunOptions, with_options

__all__ = ["add_compare"]

N_ANSWER = 24
"""Tokens of an answer."""


def add_compare(group: typer.Typer) -> None:
    """Add the command to the group `bench`."""
    group.command("compare")(with_options(compare))


def compare(
    run: RunOptions,
    output: QuietOptions,
    source: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A document (default: technical prose).")
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option("--tokens", metavar="N", help="Read its first N tokens only.", show_default=False),
    ] = None,
    questions: Annotated[
        str | None,
        typer.Option(
            "--questions",
            metavar="FILE",
            help="Lines of question and answers as JSON (default: facts are planted).",
            show_default=False,
        ),
    ] = None,
    facts: Annotated[
        int, typer.Option("--facts", metavar="N", help="Planted questions of each of two kinds.")
    ] = 4,
    way: Annotated[
        list[str] | None,
        typer.Option("--way", metavar="NAME", help="Only this way; repeatable.", show_default=False),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", metavar="N", help="Rounds, at least.")] = 5,
) -> None:
    """The same document and questions through llama.cpp's dense prefill and its state files, text retrieval,
    map-reduce and localctx, by turns: first token, time, tokens, disk, memory, right answers, joules.
    """
    from localctx.bench.compare import Comparing, measure
    from localctx.from_settings import choose_model, open_model_for
    from localctx.registry.selectors import opened_embedder

    from ..terminal import note, print_json, print_line, silent

    if run.strategy is not None:
        raise UsageError("--strategy is not for bench compare", "--way names what is compared")
    comparing = Comparing(questions, facts, repeats, tuple(way) if way else None)
    comparing.check()
    settings, chosen = choose_model(run.flags(), run.config)
    settings = replace(settings, max_tokens=run.max_tokens or N_ANSWER)
    say = silent if output.quiet or output.json else note
    with closing(open_model_for(settings, chosen)) as model, opened_embedder(settings) as embedder:
        report = measure(model, settings, source, tokens, comparing, say, embedder)
    if output.json:
        print_json(report.to_json())
    else:
        print_line("\n".join(report.lines))
