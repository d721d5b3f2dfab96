"""`localctx log`: past questions, their answers, and what was read for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from localctx.errors import UsageError

from ..options import Config, JsonOptions, Store, with_options

if TYPE_CHECKING:
    from localctx.session.question_log import LoggedQuestion

__all__ = ["register"]

SHOWN_CHARACTERS = 300


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("log")(with_options(log))


def log(
    output: JsonOptions,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]", help="Words to look for, or clear to remove the log."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="Show at most N entries.", min=1, max=5000)
    ] = 20,
    store: Store = None,
    config: Config = None,
) -> None:
    """List past questions with their answers, the last first, or those most like TEXT."""
    from localctx.from_settings import settings_for
    from localctx.session.private_database import folder_of
    from localctx.session.question_log import QuestionLog

    from ..answer_lines import counted
    from ..terminal import print_json, print_line

    folder = folder_of(settings_for({"store": store}, config))
    if folder is None:
        raise UsageError("with the store off there is no log", "--store DIR names one")
    text = " ".join(words or ())
    if text == "clear":
        n_removed = QuestionLog.clear(folder)
        if output.json:
            print_json({"schema": "localctx.log-clear/1", "removed": n_removed})
        else:
            print_line(f"{counted(n_removed, 'question')} removed")
        return
    entries = _found(folder, text, limit)
    if output.json:
        print_json({"schema": "localctx.log/1", "entries": [entry.to_json() for entry in entries]})
        return
    for entry in entries:
        print_line(_lines(entry))
    if not entries:
        print_line("nothing found" if text else "no questions yet")


def _found(folder: Path, text: str, limit: int) -> list[LoggedQuestion]:
    """The entries to show; a log is not made by looking."""
    from localctx.session.question_log import LogUnusable, QuestionLog

    if not (folder / QuestionLog.FILE).exists():
        return []
    try:
        with QuestionLog(folder) as opened:
            return opened.search(text, limit) if text else opened.last(limit)
    except LogUnusable as error:
        raise LogUnusable(error.message, "localctx log clear removes a damaged one") from None


def _lines(entry: LoggedQuestion) -> str:
    """An entry for people: when, on what, the question, the answer's beginning, coverage."""
    from ..stored_view import time_text

    record = entry.record
    answer = " ".join(str(record.get("answer", "")).split())
    if len(answer) > SHOWN_CHARACTERS:
        answer = answer[:SHOWN_CHARACTERS] + " …"
    coverage = record.get("coverage", {})
    what = entry.question or ("summary" if entry.command == "summarize" else "")
    read = f"{coverage.get('tokens_read', 0):,} of {coverage.get('tokens_total', 0):,} tokens read"
    return (
        f"{time_text(entry.at)}  {', '.join(entry.sources)}  ({entry.model})\n"
        f"  {'Q' if entry.command == 'ask' else 'S'}: {what}\n  A: {answer}\n"
        f"  {record.get('strategy')}: {read}; support: {record.get('support')}"
    )
