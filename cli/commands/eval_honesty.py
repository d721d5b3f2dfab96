"""`localctx eval honesty`: how often the support judgement, and with a model `ask`, is right."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from localctx.errors import UsageError

from ..options import QuietOptions, RunOptions, with_options

__all__ = ["add_honesty"]


def add_honesty(group: typer.Typer) -> None:
    """Add the command to its group."""
    group.command("honesty")(with_options(honesty))


def honesty(
    run: RunOptions,
    output: QuietOptions,
    split: Annotated[
        str, typer.Option("--split", metavar="NAME", help="calibrate (thresholds were set on it) or judge.")
    ] = "judge",
    documents: Annotated[
        int, typer.Option("--documents", metavar="N", min=1, help="Of each of three kinds and languages.")
    ] = 4,
    with_model: Annotated[
        bool, typer.Option("--ask", help="Put the questions to the model instead, in English.")
    ] = False,
) -> None:
    """Judge given answers whose truth is known: true, invented, changed, negated, of unanswered questions."""
    from localctx.eval.honesty import measure
    from localctx.eval.honesty_texts import SPLITS

    from ..terminal import print_json, print_line

    chosen_split = next((one for one in SPLITS if one == split), None)
    if chosen_split is None:
        raise UsageError(f"--split {split} is not known", " or ".join(SPLITS))
    if with_model:
        from localctx.eval.honesty_asked import ask_generated
        from localctx.from_settings import choose_model, open_model_for

        settings, chosen = choose_model(run.flags(), run.config)
        with closing(open_model_for(settings, chosen)) as model:
            asked = ask_generated(model, settings, chosen_split, n_seeds=documents)
        lines, value = list(asked.lines()), asked.to_json()
    else:
        judged = measure(chosen_split, n_seeds=documents)
        lines, value = list(judged.lines()), judged.to_json()
    if output.json:
        print_json(value)
        return
    for line in lines:
        print_line(line)
