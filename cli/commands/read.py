"""`localctx summarize` and `localctx ask`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from localctx.errors import UsageError
from localctx.small_text import read_small_stream, read_small_text, reason_of

from ..options import Files, LoggedOptions, OutputOptions, Pages, with_options

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.session.events import Event, Listener
    from localctx.settings import Settings
    from localctx.values import Model

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    app.command("summarize")(with_options(summarize))
    app.command("ask")(with_options(ask))


def summarize(
    files: Files,
    run: LoggedOptions,
    output: OutputOptions,
    length: Annotated[
        str,
        typer.Option(
            "--length", "-l", metavar="short|medium|long|NUMBER", help="Points, or a number of words."
        ),
    ] = "medium",
    focus: Annotated[
        str | None, typer.Option("--focus", metavar="TEXT", help="What the summary is to be about.")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--output", "-o", metavar="OUT", help="Write the summary to a file.")
    ] = None,
    pages: Pages = None,
) -> None:
    """Summarize documents: points with their pages, and what was read."""
    from localctx.session.strategy import choose_summarize
    from localctx.session.summarize import summarize as verb
    from localctx.session.summarize import wanted_points

    from ..running import Job, run_logged

    wanted_points(length)
    run_logged(
        Job("summarize", files, run, output, pages, out),
        (focus or "", length),
        lambda documents, model, settings, listen: verb(
            documents, model, settings, length=length, focus=focus, listen=listen
        ),
        choose_summarize,
    )


def ask(
    files: Files,
    run: LoggedOptions,
    output: OutputOptions,
    question: Annotated[
        list[str] | None,
        typer.Option("--question", "-q", metavar="TEXT", help="A question; repeatable."),
    ] = None,
    question_file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="F", help="Read the question from a file.")
    ] = None,
    pages: Pages = None,
) -> None:
    """Ask questions of documents: the answers, where they stand, and what was read."""
    from localctx.registry.selectors import opened_embedder, opened_reranker
    from localctx.session.ask import ask as verb
    from localctx.session.strategy import choose_ask

    from ..running import Job, run_logged

    texts = _questions(question, question_file)
    if len(texts) > 1:
        from ..questions import answer_all

        answer_all(Job("ask", files, run, output, pages), texts)
        return

    def asked(
        documents: list[Document], model: Model, settings: Settings, listen: Listener
    ) -> Iterator[Event]:
        with opened_embedder(settings) as embedder, opened_reranker(settings) as reranker:
            yield from verb(
                documents, model, texts[0], settings, listen, embedder=embedder, reranker=reranker
            )

    run_logged(
        Job("ask", files, run, output, pages),
        (texts[0],),
        asked,
        choose_ask,
    )


def _questions(texts: list[str] | None, file: str | None) -> list[str]:
    """The questions from --question, or the one from --file."""
    if bool(texts) == (file is not None):
        raise UsageError("give the question with -q TEXT or with -f FILE", "localctx ask FILE -q 'What …?'")
    if file is not None:
        try:
            is_piped = file == "-"
            texts = [read_small_stream(sys.stdin.buffer) if is_piped else read_small_text(Path(file))]
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read the question in {file}: {reason_of(error)}") from None
    questions = [
        text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip() for text in texts or ()
    ]
    if not all(questions):
        raise UsageError("the question is empty", "localctx ask FILE -q 'What …?'")
    return questions
