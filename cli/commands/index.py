"""`localctx index`: prefill documents into the store now, or in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from localctx.errors import UsageError

from ..options import Files, OutputOptions, Pages, RunOptions, as_words, with_options

if TYPE_CHECKING:
    from localctx.session.indexed import Indexed

    from ..running import Job

__all__ = ["register"]

Background = Annotated[
    bool, typer.Option("--background", help="Go on without the terminal; localctx store ls shows how far.")
]
Summaries = Annotated[
    bool, typer.Option("--summaries", help="Summarise each section on the way, for summarize.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("index")(with_options(index))


def index(
    files: Files,
    run: RunOptions,
    output: OutputOptions,
    background: Background = False,
    summaries: Summaries = False,
    pages: Pages = None,
) -> None:
    """Prefill documents into the store, so that questions restore what they need."""
    from ..running import Job, check

    job = Job("index", files, run, output, pages)
    check(job)
    if background:
        _detach(job, summaries=summaries)
    else:
        _index(job, summaries=summaries)


def _index(job: Job, *, summaries: bool) -> None:
    """Prefill, and say what was done."""
    from localctx.api import closing_events
    from localctx.registry.selectors import opened_embedder
    from localctx.session.indexed import Indexed
    from localctx.session.indexing import index_documents
    from localctx.session.strategy import Choice

    from ..gating import check_once
    from ..running import prepared, tell_shortcomings
    from ..terminal import print_json

    done: Indexed | None = None
    with prepared(job, lambda requested, n_tokens, limit: Choice("stream", "into the store")) as ready:
        check_once(ready.model, ready.settings, ready.reporter.line, ready.reporter.progress)
        with (
            opened_embedder(ready.settings) as embedder,
            closing_events(
                index_documents(
                    ready.opened.documents,
                    ready.model,
                    ready.settings,
                    ready.reporter.progress,
                    embedder=embedder,
                    summaries=summaries,
                )
            ) as events,
        ):
            for event in events:
                if isinstance(event, Indexed):
                    done = event
                else:
                    ready.reporter.event(event)
    if done is not None and job.output.json:
        print_json(done.to_json(ready.opened.warnings))
    elif done is not None:
        _print(done, verbose=job.output.verbose)
    was_cancelled = done is None or done.was_cancelled
    tell_shortcomings(ready.opened, was_cancelled=was_cancelled, is_told=job.output.json and done is not None)


def _print(done: Indexed, *, verbose: bool) -> None:
    """A line a document, and with -v what lies on which device."""
    from localctx.byte_sizes import format_bytes

    from ..answer_lines import device_line
    from ..terminal import print_line

    for row in done.documents:
        rate = f", {row.tokens_per_s:,.0f} tokens/s" if row.tokens_evaluated else ""
        print_line(
            f"{row.source}: {row.tokens_stored:,} of {row.tokens_total:,} tokens stored "
            f"({row.tokens_stored_before:,} before, {row.tokens_evaluated:,} evaluated{rate}), "
            f"{format_bytes(row.size_bytes)} as {row.codec}, policy {row.policy}"
        )
    if verbose and done.model.devices:
        print_line(device_line(done.model))


def _detach(job: Job, *, summaries: bool) -> None:
    """Start the same command as a process of its own."""
    from localctx.from_settings import choose_model

    from ..background import start
    from ..terminal import print_json, print_line

    if "-" in job.files:
        raise UsageError("--background cannot read standard input", "name a file")
    settings, _ = choose_model(job.run.flags(), job.run.config)
    root = settings.store_root
    if root is None:
        raise UsageError("--background with --store off keeps nothing", "leave one of them out")
    pages = ["--pages", job.pages] if job.pages else []
    more = ["--summaries"] if summaries else []
    words = ["index", *as_words(job.run), *as_words(job.output), *more, *pages, "--", *job.files]
    pid, log = start(words, root / "jobs")
    if job.output.json:
        print_json({"schema": "localctx.job/1", "pid": pid, "log": str(log)})
    else:
        print_line(f"indexing in the background, process {pid}; log: {log}")
        print_line("localctx store ls shows how far it is; kill stops it, what is stored stays")
