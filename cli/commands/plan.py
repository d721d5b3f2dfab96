"""`localctx plan`: strategy, minutes and memory of a run before it begins."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Annotated

import typer

from localctx.errors import UsageError

from ..options import Files, Pages, QuietOptions, RunOptions, with_options

__all__ = ["Disk", "Ram", "Vram", "register"]

COMMANDS = ("ask", "summarize")

Vram = Annotated[
    str | None,
    typer.Option(
        "--vram", metavar="SIZE", help="Plan for so much GPU memory, as 8G; 0 for none.", show_default=False
    ),
]
Ram = Annotated[
    str | None, typer.Option("--ram", metavar="SIZE", help="Plan for so much memory.", show_default=False)
]
Disk = Annotated[
    str | None, typer.Option("--disk", metavar="SIZE", help="Plan for so much free disk.", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("plan")(with_options(plan))


def plan(
    files: Files,
    run: RunOptions,
    output: QuietOptions,
    vram: Vram = None,
    ram: Ram = None,
    disk: Disk = None,
    command: Annotated[
        str, typer.Option("--for", metavar="ask|summarize", help="The command that is planned.")
    ] = "ask",
    pages: Pages = None,
) -> None:
    """Say what ask or summarize will do, and take, on this machine or another; loads no weights."""
    from localctx.document.encodings import canonical_encoding
    from localctx.engine.llama import LlamaModel
    from localctx.forecast.machine import Sizes
    from localctx.forecast.planning import Asked, make_plan
    from localctx.from_settings import choose_model, open_document_for, open_model_for
    from localctx.session.strategy import check_strategy

    from ..documents import open_documents, page_range
    from ..running import tell_shortcomings
    from ..terminal import note, print_json, print_line, silent

    if command not in COMMANDS:
        raise UsageError(f"--for {command} is not understood", f"one of {', '.join(COMMANDS)}")
    asked, page_numbers = Asked(command, Sizes(vram, ram, disk)), page_range(pages)
    asked.sizes.check()
    settings, chosen = choose_model(run.flags(), run.config)
    check_strategy(settings.strategy, command)
    if settings.encoding is not None:
        canonical_encoding(settings.encoding)
    say = silent if output.quiet else note
    # the layers that are asked for are planned for, not used: they may be of another machine
    with (
        closing(open_model_for(replace(settings, gpu_layers="auto"), chosen)) as model,
        open_documents(
            files,
            lambda source: open_document_for(source, settings, page_numbers),
            lambda text: say(f"warning: {text}"),
            has_page_range=page_numbers is not None,
        ) as opened,
    ):
        if not isinstance(model, LlamaModel):
            raise UsageError("only models of llama.cpp can be planned", "a GGUF file")
        found = make_plan(opened.documents, model, chosen.path, settings, asked)
    found = replace(found, warnings=(*opened.warnings, *found.warnings))
    if output.json:
        print_json(found.to_json())
    else:
        for warning in found.warnings[len(opened.warnings) :]:
            say(f"warning: {warning}")
        print_line("\n".join(found.lines))
    tell_shortcomings(opened, was_cancelled=False, is_told=output.json)
