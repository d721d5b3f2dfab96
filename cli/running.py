"""A verb from options to exit code: model and documents opened, events shown, the output file written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import typer

from localctx.api import closing_events
from localctx.document.encodings import canonical_encoding
from localctx.document.events import Preview
from localctx.document.language import load_early
from localctx.errors import Interrupted, LocalctxError, PartlyDone
from localctx.from_settings import choose_model, open_document_for, open_model_for, settings_for
from localctx.session.events import Event, Finished, Listener, Overview, Progress
from localctx.session.strategy import Choice, check_strategy
from localctx.session.structured import answer_schema, check_free_text
from localctx.settings import Settings

from .citations import text_with_citations
from .documents import Opened, open_documents, page_range
from .options import OutputOptions, RunOptions
from .output_file import check_writable, write_whole
from .render import Reporter
from .terminal import note, silent, write_as_is

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.session.answer import Answer
    from localctx.session.asked_before import Asked, History
    from localctx.values import Model

__all__ = [
    "Job",
    "Ready",
    "check",
    "history_of",
    "prepared",
    "run_logged",
    "run_verb",
    "tell_shortcomings",
    "with_warnings",
]

Verb: TypeAlias = "Callable[[list[Document], Model, Settings, Listener], Iterator[Event]]"
Chooser: TypeAlias = Callable[[str, int, int], Choice]
"""A ladder of session.strategy: (requested, tokens needed, context) to what is chosen."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a command was told. `out` is the output file; None or - is standard output."""

    command: Literal["ask", "summarize", "extract", "index"]
    files: Sequence[str]
    run: RunOptions
    output: OutputOptions
    pages: str | None = None
    out: str | None = None

    @property
    def out_path(self) -> Path | None:
        """The file to write the answer to."""
        return Path(self.out) if self.out not in (None, "-") and self.out else None


@dataclass(frozen=True, slots=True)
class Ready:
    """What a verb works with: documents and model, open, and where its events are shown."""

    opened: Opened
    model: Model
    settings: Settings
    reporter: Reporter


@contextmanager
def prepared(job: Job, choose: Chooser) -> Iterator[Ready]:
    """Check the options, then open model and documents; all is closed at the end.

    Raises what the stages raise.
    """
    check(job)
    settings, chosen = choose_model(job.run.flags(), job.run.config, may_be_remote=job.command != "index")
    output = job.output
    reporter = Reporter(
        as_json=output.json,
        quiet=output.quiet,
        verbose=output.verbose,
        shows_answer=not output.json and job.out_path is None,
    )
    with closing(open_model_for(settings, chosen)) as model, reporter:
        pages = page_range(job.pages)
        preview = _Preview(reporter, model, settings, choose)
        load_early()  # while the documents are opened; every overview names a language

        def open_one(source: str) -> Document:
            return open_document_for(source, settings, pages, preview.progress, preview)

        warn = silent if output.quiet else (lambda text: note(f"warning: {text}"))
        with open_documents(job.files, open_one, warn, has_page_range=pages is not None) as opened:
            yield Ready(opened, model, settings, reporter)


def run_verb(job: Job, verb: Verb, choose: Chooser) -> None:
    """Run the verb and show its events.

    Raises what the stages raise; Interrupted when it was cancelled, PartlyDone when files failed.
    """
    with prepared(job, choose) as ready:
        answer, opened, reporter = None, ready.opened, ready.reporter
        unwritten: LocalctxError | None = None
        with closing_events(verb(opened.documents, ready.model, ready.settings, reporter.progress)) as events:
            for event in events:
                if isinstance(event, Finished):
                    answer = with_warnings(event.answer, opened)
                    if job.out_path is not None:
                        answer, unwritten = _written(job, job.out_path, answer)
                    reporter.event(Finished(answer))
                else:
                    reporter.event(event)
    if unwritten is not None and not job.output.json:
        raise unwritten
    _tell_shortcomings(answer, opened, as_json=job.output.json)
    if unwritten is not None:
        note(f"localctx: {unwritten.message}")
        raise typer.Exit(unwritten.exit_code)


def run_logged(job: Job, wording: tuple[str, ...], verb: Verb, choose: Chooser) -> None:
    """Run the verb as run_verb() does, or answer from the log what was asked before."""
    from localctx.session.asked_before import logged

    def answer(
        documents: list[Document], model: Model, settings: Settings, listen: Listener
    ) -> Iterator[Event]:
        history, asked = history_of(job, wording, documents, model, settings)
        return logged(history, asked, lambda: verb(documents, model, settings, listen))

    run_verb(job, answer, choose)


def history_of(
    job: Job,
    wording: tuple[str, ...],
    documents: Sequence[Document],
    model: Model,
    settings: Settings,
    *,
    is_batched: bool = False,
) -> tuple[History, Asked]:
    """The log of past questions, and what this one depends on."""
    from localctx.registry.selectors import chooser_files
    from localctx.session.asked_before import Asked, History

    warn = silent if job.output.quiet else (lambda text: note(f"warning: {text}"))
    choosers = chooser_files(settings) if job.command == "ask" else ()
    asked = Asked(job.command, wording, tuple(documents), model.info, settings, choosers, is_batched)
    return History(settings, warn), asked


def _written(job: Job, path: Path, answer: Answer) -> tuple[Answer, LocalctxError | None]:
    """Write the answer to its file. Where that fails after all, it is printed, or the JSON says so: the work
    is not lost; the error is given back.
    """
    text = text_with_citations(answer)
    try:
        write_whole(path, text)
    except LocalctxError as error:
        if not job.output.json:
            write_as_is(text)
        error = LocalctxError(
            f"{error.message}; the answer was printed instead", "free some space, or -o elsewhere"
        )
        return replace(answer, warnings=(*answer.warnings, error.message)), error
    return answer, None


def check(job: Job) -> None:
    """Refuse what is wrong in the options before a model or document is opened."""
    page_range(job.pages)
    settings = settings_for(job.run.flags(), job.run.config)
    check_strategy(settings.strategy, job.command)
    if job.command in ("ask", "extract"):
        answer_schema(settings)
    else:
        check_free_text(settings, job.command)
    if settings.encoding is not None:
        canonical_encoding(settings.encoding)
    if job.out_path is not None:
        check_writable(job.out_path, job.files)


def with_warnings(answer: Answer, opened: Opened) -> Answer:
    """The answer that also says which files are not in it."""
    return replace(answer, warnings=tuple(dict.fromkeys([*opened.warnings, *answer.warnings])))


def _tell_shortcomings(answer: Answer | None, opened: Opened, *, as_json: bool) -> None:
    """What an answer lacks."""
    was_cancelled = answer is not None and answer.finish_reason == "cancelled"
    tell_shortcomings(opened, was_cancelled=was_cancelled, is_told=as_json and answer is not None)


def tell_shortcomings(
    opened: Opened, *, was_cancelled: bool, is_told: bool, problem: LocalctxError | None = None
) -> None:
    """Raise what kept the work from being whole: it was stopped, `problem`, or files could not be read. Where
    a JSON result is told already, only the exit code still says it.
    """
    if was_cancelled:
        problem = Interrupted("interrupted")
    elif problem is None and opened.n_failed:
        n_files = opened.n_failed + len(opened.documents)
        problem = PartlyDone(f"{opened.n_failed} of {n_files} files could not be read")
    if problem is not None and is_told:
        note(f"localctx: {problem.message}")
        raise typer.Exit(problem.exit_code)
    if problem is not None:
        raise problem


@dataclass(slots=True)
class _Preview:
    """Says what a long document is while it is still being read."""

    reporter: Reporter
    model: Model
    settings: Settings
    choose: Chooser

    def progress(self, done: int, total: int) -> None:
        """How far the conversion is."""
        self.reporter.progress(Progress("opening", done, total, "pages or bytes"))

    def __call__(self, preview: Preview) -> None:
        """The overview, and the plan that its estimate leads to."""
        from localctx.document.language import language_of_sample
        from localctx.values import Section

        n_read = max(1, preview.n_pages_read)
        n_tokens = len(self.model.tokenize(preview.text)) * preview.n_pages // n_read
        overview = Overview(
            source=preview.source,
            format=preview.format,
            n_pages=preview.n_pages,
            n_tokens_estimate=n_tokens,
            language=language_of_sample(preview.text),
            outline=tuple(Section(level, title, 0, 0) for level, title in preview.outline),
        )
        self.reporter.preview(overview, self._plan(n_tokens))

    def _plan(self, n_tokens: int) -> str:
        """What will probably be done; only the exact count decides."""
        try:
            limit = self.model.usable_n_ctx(self.settings.ctx)
            choice = self.choose(self.settings.strategy, n_tokens, limit)
        except LocalctxError as error:
            return f"plan: probably not possible: {error.message} (estimated)"
        return f"plan: probably {choice.strategy} ({choice.why}, estimated)"
