"""`localctx chat`: a conversation about documents, on a terminal or line by line."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from localctx.errors import UsageError

from ..options import OutputOptions, Pages, RunOptions, with_options

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("chat")(with_options(chat))


def chat(
    run: RunOptions,
    output: OutputOptions,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...]", help="Files or directories; - is standard input.", show_default=False
        ),
    ] = None,
    go_on: Annotated[
        bool, typer.Option("--continue", help="Go on with the last conversation (on these files).")
    ] = False,
    pages: Pages = None,
) -> None:
    """Talk about documents; /help lists what else can be typed. Without a terminal: a question a line."""
    from ..chat.chat import Chat, Wanted

    names = tuple(files or ())
    is_live = sys.stdin.isatty() and sys.stdout.isatty() and not output.json
    if "-" in names and not is_live and not _has_terminal():
        raise UsageError(
            "standard input is the document, and there is no terminal to ask from",
            "localctx ask - -q QUESTION",
        )
    is_live = is_live or ("-" in names and sys.stdout.isatty())
    wanted = Wanted(names, run.flags(), run.config, output, pages, go_on)
    if not is_live:
        from ..chat.piped import standard_input, talk

        with Chat(wanted) as opened:
            talk(opened, standard_input())
        return
    from ..chat.terminal import talk as talk_live
    from ..markdown import MarkdownPainter

    with Chat(wanted, MarkdownPainter()) as opened:
        talk_live(opened)


def _has_terminal() -> bool:
    """Whether a line can be read from the user although standard input is something else."""
    if not sys.stdout.isatty():
        return False
    try:
        with open("/dev/tty", "rb"):  # noqa: PTH123  # only whether it opens
            return True
    except OSError:
        return False
