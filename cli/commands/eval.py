"""`localctx eval`: quality on long documents, every way of answering beside its bound."""

from __future__ import annotations

import typer

from .eval_rope import add_rope
from .later import add_later

__all__ = ["register"]

LATER = ("niah", "ruler", "leader", "kv")


def register(app: typer.Typer) -> None:
    """Add the command group to the app."""
    group = typer.Typer(
        rich_markup_mode=None, no_args_is_help=True, help="Measure answers on long documents."
    )
    add_rope(group)
    for name in LATER:
        add_later(group, name, f"localctx eval {name}")
    app.add_typer(group, name="eval")
