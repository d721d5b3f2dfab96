"""`localctx eval`: quality on long documents, every way of answering beside its bound."""

from __future__ import annotations

from contextlib import closing

import typer

from ..options import QuietOptions, RunOptions, with_options
from .eval_compare import add_compare
from .eval_honesty import add_honesty
from .eval_kv import add_kv
from .eval_leader import add_leader
from .eval_options import GeneratedOptions, Modes, what_is_asked
from .eval_rope import add_rope
from .eval_ruler import add_ruler

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command group to the app."""
    group = typer.Typer(
        rich_markup_mode=None, no_args_is_help=True, help="Measure answers on long documents."
    )
    group.command("niah")(with_options(niah))
    add_honesty(group)
    add_compare(group)
    add_rope(group)
    add_kv(group)
    add_ruler(group)
    add_leader(group)
    app.add_typer(group, name="eval")


def niah(run: RunOptions, generated: GeneratedOptions, output: QuietOptions, modes: Modes = None) -> None:
    """Needles, chains, lists and questions in generated documents: recall, declining, selection, bounds."""
    from localctx.eval.niah import measure
    from localctx.from_settings import open_model_for
    from localctx.registry.selectors import opened_embedder

    from ..terminal import note, print_json, print_line, silent

    settings, chosen, options = what_is_asked("niah", run, generated, modes)
    with closing(open_model_for(settings, chosen)) as model, opened_embedder(settings) as embedder:
        say = silent if output.quiet or output.json else note
        report = measure(model, settings, options, say, embedder)
    if output.json:
        print_json(report.to_json())
    else:
        print_line("\n".join(report.lines))
