"""`localctx batch`: a file of jobs to a file of answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, cast

import typer

from localctx.errors import InputError, Interrupted, LocalctxError, PartlyDone, UsageError
from localctx.given_files import open_given
from localctx.names import display_name
from localctx.small_text import reason_of

from ..options import OutputOptions, ParallelOptions, with_options

if TYPE_CHECKING:
    from localctx.batch.run import RowWritten, Started
    from localctx.batch.tasks import Corpus, Task
    from localctx.settings import Settings

    from ..render import Reporter

__all__ = ["register"]

ENGINES = ("local", "ray")
MAX_TOLD = 20
"""Errors that are told one by one."""
MAX_WORKERS = 1024


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("batch")(with_options(batch))


def batch(
    jobs: Annotated[str, typer.Argument(metavar="JOBS.jsonl", help="A job a line; - is standard input.")],
    run: ParallelOptions,
    output: OutputOptions,
    out: Annotated[
        str, typer.Option("--output", "-o", metavar="OUT.jsonl", help="The answers; they are gone on with.")
    ] = "-",
    docs: Annotated[
        str | None, typer.Option("--docs", metavar="DIR", help="Ask every question of every file of DIR.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", help="Processes or actors, with a model each.")
    ] = None,
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="local|ray", help="Where the workers are: here, or a Ray cluster."),
    ] = "local",
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try again what failed before.")
    ] = False,
) -> None:
    """Answer a file of questions, a line each; started again, it goes on where it was."""
    call = _Call(jobs, out, docs, workers, engine, retry_failed, run, output)
    call.check()
    _run(call)


@dataclass(frozen=True, slots=True)
class _Call:
    """What the command was told."""

    jobs: str
    out: str
    docs: str | None
    n_workers: int | None
    engine: str
    retries: bool
    run: ParallelOptions
    output: OutputOptions

    def check(self) -> None:
        """Refuse what is wrong before anything is opened."""
        from localctx.from_settings import settings_for
        from localctx.session.strategy import check_strategy
        from localctx.session.structured import answer_schema

        from ..output_file import check_not_input

        if self.engine not in ENGINES:
            raise UsageError(f"--engine {self.engine!r} is not known", f"one of {', '.join(ENGINES)}")
        if self.n_workers is not None and not 1 <= self.n_workers <= MAX_WORKERS:
            raise UsageError(f"--workers {self.n_workers} is out of range", f"from 1 to {MAX_WORKERS}")
        if self.engine == "ray":
            from localctx.batch.cluster import check_installed

            check_installed()
        settings = settings_for(self.run.flags(), self.run.config)
        check_strategy(settings.strategy, "ask")
        answer_schema(settings)
        check_not_input(Path(self.out), [self.jobs])
        if self.docs is not None and not Path(self.docs).is_dir():
            raise UsageError(f"--docs {display_name(self.docs)} is no folder", "name the documents' folder")


def _run(call: _Call) -> None:
    """Read the jobs, do them, say how it went."""
    from localctx.batch.results import Results, is_stream
    from localctx.batch.run import BatchOptions, RowWritten, run_batch
    from localctx.from_settings import choose_model

    from ..output_file import check_not_input
    from ..render import Reporter

    options = call.output
    reporter = Reporter(as_json=True, quiet=options.quiet, verbose=options.verbose, shows_answer=False)
    settings, _ = choose_model(call.run.flags(), call.run.config)
    tasks = _tasks(call, settings, reporter)
    check_not_input(Path(call.out), [path for task in tasks for path in task.documents])
    how = BatchOptions(call.n_workers, cast(Literal["local", "ray"], call.engine), call.retries)
    tally = _Tally(reporter, len(tasks))
    with Results(Path(call.out), is_stream=is_stream(call.out)) as results, reporter:
        if results.n_torn:
            reporter.line(f"{call.out}: a line that was cut short is taken off")
        try:
            for event in run_batch(tasks, results, settings, how):
                if isinstance(event, RowWritten):
                    tally.row(event)
                    continue
                tally.begin(event)
                if event.plan.groups and call.engine == "local":
                    _tell_of_the_store(settings, reporter)
        except (KeyboardInterrupt, Interrupted):
            done = tally.n_answered + tally.n_failed
            raise Interrupted(
                f"interrupted: {done:,} of {tally.n_total:,} jobs are done", "the same command goes on"
            ) from None
    tally.finish(call)


def _tell_of_the_store(settings: Settings, reporter: Reporter) -> None:
    """Say once that nothing can be kept; the answers' own lines do not."""
    from localctx.store import KVStore, StoreUnusable

    if settings.store_root is None:
        return
    try:
        with KVStore.open(settings.store_root) as store:
            store.check_writable()
    except StoreUnusable as error:
        hint = f" ({error.hint})" if error.hint else ""
        reporter.line(f"warning: {error.message}{hint}; what is computed now is not kept")


def _tasks(call: _Call, settings: Settings, reporter: Reporter) -> list[Task]:
    """All tasks. Raises InputError when there is none, UsageError for jobs that cannot be read."""
    from localctx.batch.jobs import read_jobs
    from localctx.batch.tasks import tasks_of
    from localctx.session.structured import answer_schema

    schema = answer_schema(settings)
    corpus = _corpus(call, reporter)
    with _opened(call.jobs) as stream:
        rows = read_jobs(stream, has_documents=call.docs is not None)
        tasks = list(tasks_of(rows, corpus, None if schema is None else schema.text))
    if not tasks:
        raise InputError(
            f"{display_name(call.jobs)}: holds no jobs", "a line holds a question and its documents"
        )
    return tasks


@contextmanager
def _opened(jobs: str) -> Iterator[BinaryIO]:
    """The file of jobs, or standard input."""
    if jobs == "-":
        yield sys.stdin.buffer
        return
    try:
        with open_given(jobs) as stream:
            yield stream
    except (OSError, ValueError) as error:
        raise InputError(
            f"{display_name(jobs)}: {reason_of(error)}", "name a file of jobs, one JSON object a line"
        ) from None


def _corpus(call: _Call, reporter: Reporter) -> Corpus:
    """What lies in --docs; jobs and answers that lie there too are no documents."""
    from localctx.batch.tasks import Corpus, Found
    from localctx.document import SkippedEntry, walk

    from ..documents import could_not_be_read

    if call.docs is None:
        return Corpus()
    found = []
    for entry in walk(call.docs):
        path = os.fspath(entry.path if isinstance(entry, SkippedEntry) else entry)
        name = os.path.relpath(path, call.docs)
        if any(_is_same(path, own) for own in (call.jobs, call.out)):
            continue
        if not isinstance(entry, SkippedEntry):
            found.append(Found(name, path))
        elif could_not_be_read(entry):
            found.append(Found(name, path, f"{display_name(path)}: {entry.reason}"))
        else:
            reporter.line(f"skipped: {display_name(path)}: {entry.reason}")
    if not found:
        raise InputError(f"{display_name(call.docs)}: holds no documents", "name the documents' folder")
    return Corpus(call.docs, tuple(found))


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121  # any name
    except (OSError, ValueError):
        return False


@dataclass(slots=True)
class _Tally:
    """How far the batch is."""

    reporter: Reporter
    n_total: int
    n_before: int = 0
    n_answered: int = 0
    n_failed: int = 0
    n_told: int = 0

    def begin(self, started: Started) -> None:
        """Say what is there, and what is to be done."""
        from ..answer_lines import counted

        plan = started.plan
        self.n_answered, self.n_failed = plan.n_answered, plan.n_failed
        self.n_before = plan.n_answered + plan.n_failed
        places = f" of {counted(len(plan.groups), 'set')} of documents" if plan.groups else ""
        there = f", {self.n_before:,} are done already" if self.n_before else ""
        self.reporter.line(f"{counted(self.n_total, 'job')}{there}; {plan.n_open:,} to do{places}")
        if plan.n_strange:
            self.reporter.line(f"{counted(plan.n_strange, 'line')} of the output without a job: left there")
        self._show()

    def row(self, written: RowWritten) -> None:
        """Count a row; the first errors are told."""
        if written.error is None:
            self.n_answered += 1
        else:
            self.n_failed += 1
            self.n_told += 1
            if self.n_told <= MAX_TOLD:
                self.reporter.line(_told(written))
            elif self.n_told == MAX_TOLD + 1:
                self.reporter.line("more jobs failed; the output holds each with its reason")
        self._show()

    def _show(self) -> None:
        from localctx.session.events import Progress

        done = self.n_answered + self.n_failed - self.n_before
        self.reporter.progress(Progress("jobs", done, self.n_total - self.n_before, "jobs"))

    def finish(self, call: _Call) -> None:
        """Say how it went. Raises PartlyDone when jobs failed."""
        from ..answer_lines import counted
        from ..terminal import note, print_json

        n_new = self.n_answered + self.n_failed - self.n_before
        if call.output.json and call.out != "-":
            print_json({
                "schema": "localctx.batch/1",
                "jobs": self.n_total,
                "answered": self.n_answered,
                "failed": self.n_failed,
                "done_before": self.n_before,
                "output": call.out,
            })  # fmt: skip
        elif not call.output.quiet:
            jobs = counted(self.n_total, "job")
            counts = f"{self.n_answered:,} of {jobs} answered, {self.n_failed:,} failed"
            note(f"{counts}; {n_new:,} done now")
        if self.n_failed:
            problem: LocalctxError = PartlyDone(
                f"{self.n_failed:,} of {counted(self.n_total, 'job')} failed",
                "--retry-failed tries them again",
            )
            if call.output.json:
                note(f"localctx: {problem.message}")
                raise typer.Exit(problem.exit_code)
            raise problem


def _told(written: RowWritten) -> str:
    """An error in one line, with the line of its job."""
    message = (written.error or "").removeprefix(f"line {written.task.line}: ")
    return f"line {written.task.line}: {message}"
