"""`localctx summarize` and `localctx ask`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from localctx.errors import Interrupted, PartlyDone, UsageError

from ..options import Files, LaterOptions, OutputOptions, RunOptions, with_options

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.session.events import Event, Listener
    from localctx.settings import Settings
    from localctx.values import Model

    Verb = Callable[[list[Document], Model, Settings, Listener], Iterator[Event]]

__all__ = ["register"]

Pages = Annotated[
    str | None, typer.Option("--pages", metavar="A-B", help="Only these pages of a paged file.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    app.command("summarize")(with_options(summarize))
    app.command("ask")(with_options(ask))


def summarize(
    files: Files,
    run: RunOptions,
    later: LaterOptions,
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
    from localctx.session.summarize import summarize as verb
    from localctx.session.summarize import wanted_points

    later.refuse_given()
    wanted_points(length)
    _run(
        files,
        run,
        output,
        pages,
        out,
        lambda documents, model, settings, listen: verb(
            documents, model, settings, length=length, focus=focus, listen=listen
        ),
    )


def ask(
    files: Files,
    run: RunOptions,
    later: LaterOptions,
    output: OutputOptions,
    question: Annotated[
        str | None, typer.Option("--question", "-q", metavar="TEXT", help="The question.")
    ] = None,
    question_file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="F", help="Read the question from a file.")
    ] = None,
    pages: Pages = None,
) -> None:
    """Ask one question of documents: the answer, where it stands, and what was read."""
    from localctx.session.ask import ask as verb

    later.refuse_given()
    text = _question(question, question_file)
    _run(
        files,
        run,
        output,
        pages,
        None,
        lambda documents, model, settings, listen: verb(documents, model, text, settings, listen),
    )


def _question(text: str | None, file: str | None) -> str:
    """The question from --question or --file."""
    if (text is None) == (file is None):
        raise UsageError("give the question with -q TEXT or with -f FILE", "localctx ask FILE -q 'What …?'")
    if file is not None:
        try:
            text = Path(file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read the question: {error}") from None
    question = (text or "").encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()
    if not question:
        raise UsageError("the question is empty", "localctx ask FILE -q 'What …?'")
    return question


def _run(
    files: list[str], run: RunOptions, output: OutputOptions, pages: str | None, out: str | None, verb: Verb
) -> None:
    """Open documents and model, run the verb, show its events; exit codes 4 and 130 where they apply."""
    from localctx.api import choose_model, open_model_for
    from localctx.session.events import Finished

    from ..documents import open_documents, page_range
    from ..render import Reporter, note, silent

    span = page_range(pages)
    if out is not None and out != "-":
        check_writable(Path(out))
    if out is not None and out != "-":
        check_writable(Path(out))
    settings, chosen = choose_model(run.flags(), run.config)
    to_file = out is not None and out != "-"
    reporter = Reporter(
        as_json=output.json,
        quiet=output.quiet,
        verbose=output.verbose,
        answer_to=None if output.json or to_file else _write,
    )
    warn = silent if output.quiet else (lambda text: note(f"warning: {text}"))
    model = open_model_for(settings, chosen)
    try:
        with open_documents(files, settings, span, warn) as opened, reporter:
            answer = None
            for event in verb(opened.documents, model, settings, reporter.progress):
                if isinstance(event, Finished):
                    answer = event.answer
                    if to_file and out is not None:
                        write_whole(Path(out), answer.text + "\n")
                reporter.event(event)
            n_failed = opened.n_failed
    finally:
        model.close()
    if answer is not None and answer.finish_reason == "cancelled":
        raise Interrupted("interrupted")
    if n_failed:
        raise PartlyDone(f"{n_failed} of {n_failed + len(opened.documents)} files could not be read")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def check_writable(path: Path) -> None:
    """Raises UsageError when write_whole() would, before minutes of work are spent on what cannot be kept."""
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a directory", "name a file with -o")
    with _write_errors(path), tempfile.NamedTemporaryFile(dir=path.parent, prefix=".localctx-"):
        pass


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises UsageError when the place cannot be written."""
    with _write_errors(path):
        part = path.with_name(path.name + ".part")
        try:
            part.write_text(text, "utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    """Turn what the file system says into one line."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror or error}", "name another file with -o"
        ) from None
