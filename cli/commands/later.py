"""Promised commands that this version does not have: each says so and exits with 2."""

from __future__ import annotations

from collections.abc import Callable

import typer

from localctx.errors import NotYetAvailable

__all__ = ["add_later"]


def add_later(app: typer.Typer, name: str, words: str, text: str = "Later version.") -> None:
    """Add a command that takes anything and refuses it; `words` are what the user types."""
    app.command(name, help=text, context_settings={"ignore_unknown_options": True})(_refuse(words))


def _refuse(words: str) -> Callable[[list[str] | None], None]:
    """The body of a command that is not there yet."""

    def command(arguments: list[str] | None = typer.Argument(None, metavar="...")) -> None:
        raise NotYetAvailable(
            f"`{words}` is not available yet in this version",
            "localctx --help; localctx ask and localctx summarize read documents",
        )

    return command
