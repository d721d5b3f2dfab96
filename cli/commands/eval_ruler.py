"""`localctx eval ruler`: the families of `eval niah` for one model and machine, as a file to hand on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from localctx.errors import UsageError

from ..options import QuietOptions, RunOptions, with_options
from .eval_options import GeneratedOptions, Modes, what_is_asked

__all__ = ["add_ruler"]


def add_ruler(group: typer.Typer) -> None:
    """Add the command to the group `eval`."""
    group.command("ruler")(with_options(ruler))


def ruler(
    run: RunOptions,
    generated: GeneratedOptions,
    output: QuietOptions,
    modes: Modes = None,
    submit: Annotated[
        str | None,
        typer.Option(
            "--submit", metavar="FILE", help="Write the figures there, to hand on.", show_default=False
        ),
    ] = None,
) -> None:
    """The families of eval niah for your model and machine, as one file that can be published."""
    from localctx.eval.niah import measure
    from localctx.eval.ruler import Submission
    from localctx.from_settings import open_model_for
    from localctx.registry.selectors import opened_embedder

    from ..output_file import check_writable, write_whole
    from ..terminal import note, print_json, print_line, silent

    settings, chosen, options = what_is_asked("ruler", run, generated, modes)
    if submit is not None:
        if options.haystack is not None:
            raise UsageError("--submit is for the made prose that everybody has", "leave --haystack out")
        check_writable(Path(submit))
    say = silent if output.quiet or output.json else note
    with closing(open_model_for(settings, chosen)) as model, opened_embedder(settings) as embedder:
        report = measure(model, settings, options, say, embedder)
        submission = Submission.of(report, options, settings, embedder)
    if submit is not None:
        write_whole(Path(submit), submission.file_text)
        say(f"{submit}: written; docs/eval.md says how to hand it on")
    if output.json:
        print_json(submission.to_json())
    else:
        print_line("\n".join(report.lines))
