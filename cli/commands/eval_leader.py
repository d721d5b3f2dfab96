"""`localctx eval leader`: answers as evidence moves away and documents change."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Annotated

import typer

from localctx.errors import UsageError

from ..options import QuietOptions, RunOptions, with_options
from .eval_options import GeneratedOptions, Modes, names, what_is_asked

__all__ = ["add_leader"]


def add_leader(group: typer.Typer) -> None:
    """Add the command to the group `eval`."""
    group.command("leader")(with_options(leader))


def leader(
    run: RunOptions,
    generated: GeneratedOptions,
    output: QuietOptions,
    modes: Modes = None,
    perturb: Annotated[
        str | None,
        typer.Option(
            "--perturb",
            metavar="NAME,...",
            help="Of shuffle, noise, paraphrase (default: all), or none.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Answers and their places as evidence moves away and documents are changed: LPA@5, CRI-Δ, LDR."""
    from localctx.eval.leader import DEFAULT_LEADER_MODES, DEFAULT_LEADER_TASKS, LeaderOptions, measure
    from localctx.eval.perturbations import PERTURBATIONS
    from localctx.from_settings import open_model_for
    from localctx.registry.selectors import opened_embedder

    from ..terminal import note, print_json, print_line, silent

    generated = replace(generated, tasks=generated.tasks or ",".join(DEFAULT_LEADER_TASKS))
    modes = ",".join(DEFAULT_LEADER_MODES) if modes is None else modes
    settings, chosen, asked = what_is_asked("leader", run, generated, modes)
    changes = tuple(PERTURBATIONS) if perturb is None else names(perturb)
    if perturb is not None and not changes:
        raise UsageError("--perturb names nothing", f"some of {','.join(PERTURBATIONS)}, or none")
    options = LeaderOptions(asked, () if changes == ("none",) else changes)
    options.check()
    say = silent if output.quiet or output.json else note
    with closing(open_model_for(settings, chosen)) as model, opened_embedder(settings) as embedder:
        report = measure(model, settings, options, say, embedder)
    if output.json:
        print_json(report.to_json())
    else:
        print_line("\n".join(report.lines))
