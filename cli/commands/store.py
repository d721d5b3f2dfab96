"""`localctx store ls|show|verify|rm|gc|path|export|import`: KV and converted texts kept between runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from localctx.errors import LocalctxError, UsageError

from ..options import Config, JsonOptions, Store, with_options

if TYPE_CHECKING:
    from ..stored import Stored

__all__ = ["register"]

Target = Annotated[
    str, typer.Argument(metavar="FILE|KEY", help="A document's file, or its key or the key's beginning.")
]
Targets = Annotated[
    list[str] | None, typer.Argument(metavar="[FILE|KEY]...", help="Files, or keys or their beginnings.")
]


@dataclass(frozen=True, kw_only=True)
class StoreOptions(JsonOptions):
    """Which store, and the form of the result."""

    store: Store = None
    config: Config = None

    def open(self) -> Stored:
        """What the store holds; it is not made where there is none."""
        from localctx.from_settings import settings_for

        from ..stored import Stored

        settings = settings_for({"store": self.store}, self.config)
        return Stored(settings.store, settings.store_limit_bytes)


def register(app: typer.Typer) -> None:
    """Add the command group to the app."""
    group = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="What is kept between runs.")
    for command in (ls, show, verify, rm, gc, path, export):
        group.command(command.__name__)(with_options(command))
    group.command("import")(with_options(import_))
    app.add_typer(group, name="store")


def ls(options: StoreOptions) -> None:
    """List stored documents and converted texts, the last used first."""
    from ..stored_view import line_of_document, line_of_text

    with options.open() as stored:
        if options.json:
            _print_json("store", stored.facts())
            return
        for document in stored.documents:
            _line(line_of_document(document))
        for text in stored.texts:
            _line(line_of_text(text))
        _line(stored.total())


def show(options: StoreOptions, target: Target) -> None:
    """Say everything that is known of a document in the store."""
    from ..stored_view import facts_of_document, facts_of_text, time_text
    from ..tables import print_facts

    with options.open() as stored:
        found = stored.find(target)
        facts = {
            "documents": [facts_of_document(document) for document in found.documents],
            "texts": [facts_of_text(text) for text in found.texts],
            "indexes": [
                {"text_hash": text_hash, "size_bytes": stored.indexes[text_hash]}
                for text_hash in sorted(found.indexed)
            ],
        }
    if options.json:
        _print_json("store-document", facts)
        return
    for one in [*facts["documents"], *facts["texts"], *facts["indexes"]]:
        times: dict[str, Any] = {
            name: time_text(one[name]) for name in ("created", "last_used") if name in one
        }
        print_facts({**one, **times})


def verify(
    options: StoreOptions,
    repair: Annotated[bool, typer.Option("--repair", help="Forget what is damaged.")] = False,
) -> None:
    """Read everything that is stored and compare it with its checksums."""
    from dataclasses import asdict

    from ..answer_lines import counted

    with options.open() as stored:
        report = stored.kv.verify(repair=repair) if stored.kv is not None else None
        is_clean = report is None or report.is_clean
        if report is not None and repair and not is_clean and stored.kv is not None:
            is_clean = stored.kv.verify().is_clean
    facts: dict[str, Any] = asdict(report) if report is not None else {"problems": ()}
    if options.json:
        _print_json("store-verify", {"clean": is_clean, **facts})
        if not is_clean:
            raise typer.Exit(1)
        return
    for problem in facts["problems"]:
        _line(problem)
    if report is None:
        _line("nothing is stored")
    else:
        _line(
            f"{counted(report.n_runs, 'run')} and {counted(report.n_artifacts, 'derived file')} of "
            f"{counted(report.n_documents, 'document')} checked in {counted(report.n_segments, 'segment')}"
        )
    if report is not None and report.n_dropped:
        _line(f"{report.n_dropped:,} damaged entries forgotten; they are computed again when they are needed")
    if not is_clean:
        raise LocalctxError(
            f"{len(facts['problems'])} problems in the store", _way_out(facts["problems"], repaired=repair)
        )


def _way_out(problems: Sequence[str], *, repaired: bool) -> str:
    """What puts them right: entries can be forgotten, a damaged catalogue cannot be mended."""
    if repaired or any(line.startswith("catalogue:") for line in problems):
        return "localctx store rm --all starts anew"
    return "localctx store verify --repair"


def rm(
    options: StoreOptions,
    targets: Targets = None,
    every: Annotated[bool, typer.Option("--all", help="Remove all documents and texts.")] = False,
) -> None:
    """Remove documents from the store: their KV and their converted text."""
    if bool(targets) == every:
        problem = (
            "--all removes everything: name no file beside it" if every else "name what to remove, or --all"
        )
        raise UsageError(problem, "localctx store ls lists what is stored")
    with options.open() as stored:
        if every:
            names, n_texts, freed_bytes = stored.remove_all()
        else:
            names, n_texts, freed_bytes = stored.remove(targets or [])
    if options.json:
        _print_json("store-rm", {"documents": len(names), "texts": n_texts, "freed_bytes": freed_bytes})
    else:
        from localctx.names import display_name

        from ..answer_lines import counted

        some = ", ".join([*map(display_name, names[:5]), *(["…"] if len(names) > 5 else [])])
        which = f" ({some})" if names else ""
        texts = counted(n_texts, "text")
        _line(f"removed {counted(len(names), 'document')}{which} and {texts}, {_size(freed_bytes)}")


def gc(options: StoreOptions) -> None:
    """Tidy: remove what nothing refers to, rewrite half-empty files, sweep what killed runs left."""
    from dataclasses import asdict

    from ..answer_lines import counted

    with options.open() as stored:
        report = stored.tidy()
    if options.json:
        _print_json("store-gc", asdict(report) if report is not None else {"freed_bytes": 0})
    elif report is None:
        _line("nothing is stored")
    else:
        _line(
            f"removed {counted(report.n_runs_removed, 'run')}, "
            f"{counted(report.n_segments_removed, 'segment')} and "
            f"{counted(report.n_leftovers_removed, 'leftover')}, "
            f"rewrote {counted(report.n_segments_rewritten, 'segment')}; "
            f"freed {_size(report.freed_bytes)}"
        )


def path(options: StoreOptions) -> None:
    """Print the folder of everything that is kept."""
    with options.open() as stored:
        root = str(stored.root)
    if options.json:
        _print_json("store-path", {"path": root})
    else:
        _line(root)


def export(
    options: StoreOptions,
    target: Target,
    output: Annotated[str, typer.Option("--output", "-o", metavar="OUT", help="The file to write.")],
) -> None:
    """Write one document's KV to a file that another machine can import."""
    from ..output_file import check_writable

    check_writable(Path(output))
    with options.open() as stored:
        document = stored.one_document(target)
        size_bytes = stored.making_kv().export(document.key, Path(output))
    if options.json:
        facts = {"key": document.key, "path": output, "size_bytes": size_bytes}
        _print_json("store-export", facts)
    else:
        _line(f"{document.identity.name}: {_size(size_bytes)} to {output}")


def import_(
    options: StoreOptions,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file that `store export` wrote.")],
) -> None:
    """Take in an exported document. Import only what comes from people you trust."""
    from ..stored_view import facts_of_document, line_of_document

    with options.open() as stored:
        document = stored.making_kv().import_(Path(file))
    if options.json:
        _print_json("store-import", facts_of_document(document))
    else:
        _line(line_of_document(document))


def _print_json(name: str, facts: dict[str, Any]) -> None:
    from ..terminal import print_json

    print_json({"schema": f"localctx.{name}/1", **facts})


def _line(text: str) -> None:
    from ..terminal import print_line

    print_line(text)


def _size(n_bytes: int) -> str:
    from localctx.byte_sizes import format_bytes

    return format_bytes(n_bytes)
