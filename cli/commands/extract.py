"""`localctx extract`: every record of the files that fulfils a JSON schema, with where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from localctx.errors import UsageError

from ..options import Files, OutputOptions, Pages, ParallelOptions, with_options

if TYPE_CHECKING:
    from collections.abc import Collection

    from localctx.session.extraction import Extraction

    from ..records import Form
    from ..running import Job

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("extract")(with_options(extract))


def extract(
    files: Files,
    run: ParallelOptions,
    output: OutputOptions,
    lines: Annotated[bool, typer.Option("--jsonl", help="A line of JSON a record, as it is found.")] = False,
    out: Annotated[
        str | None, typer.Option("--output", "-o", metavar="OUT", help="Write the records to a file.")
    ] = None,
    pages: Pages = None,
) -> None:
    """Extract records: all that fulfil a schema, merged, with their places, and what was read."""
    from ..running import Job

    if lines and output.json:
        raise UsageError("--jsonl and --json are two forms", "--jsonl: a line a record; --json: one object")
    _extract(Job("extract", files, run, output, pages, out), lines=lines)


def _extract(job: Job, *, lines: bool) -> None:
    """Find the records and write them."""
    from localctx.api import closing_events
    from localctx.session.events import Notice
    from localctx.session.extract import extract as verb
    from localctx.session.extraction import Extraction, FoundRecord
    from localctx.session.strategy import Choice

    from ..records import opened_sink
    from ..running import prepared, tell_shortcomings

    done: Extraction | None = None
    told: set[str] = set()
    output = job.output
    form: Form = "json" if output.json else "jsonl" if lines else "text"
    with (
        prepared(job, lambda requested, n, limit: Choice("map-reduce", "every sentence is read")) as ready,
        opened_sink(form, job.out_path) as sink,
    ):
        opened, reporter = ready.opened, ready.reporter
        with closing_events(verb(opened.documents, ready.model, ready.settings, reporter.progress)) as events:
            for event in events:
                if isinstance(event, FoundRecord):
                    sink.add(event)
                elif isinstance(event, Extraction):
                    done = event
                else:
                    reporter.event(event)
                    if isinstance(event, Notice):
                        told.add(event.text)
        reporter.stop()
        if done is not None:
            sink.finish(done, opened.warnings)
            for line in _footer(done, told, verbose=output.verbose):
                reporter.line(line)
    was_cancelled = done is None or done.finish_reason == "cancelled"
    tell_shortcomings(opened, was_cancelled=was_cancelled, is_told=output.json and done is not None)


def _footer(done: Extraction, told: Collection[str], *, verbose: bool) -> list[str]:
    """What was found, and what was read; warnings that were told while it was are not told again."""
    from ..answer_lines import counted

    passed, coverage = done.passed, done.coverage
    unit = "record" if done.how == {"parser"} else "sentence"
    lines = [f"warning: {text}" for text in done.warnings if text not in told]
    readers = {"parser": "read by their parser", "model": "read by the model"}
    how = " and ".join(readers[one] for one in sorted(done.how))
    line = (
        f"— extract: {counted(done.n_records, 'record')} ({how}); "
        f"{passed.n_read:,} of {counted(passed.n_units, unit)} read"
    )
    if n_passed_over := passed.n_units - passed.n_read:
        line += f", {n_passed_over:,} {'holds' if n_passed_over == 1 else 'hold'} no values for one"
    lines.append(line)
    more = (
        (passed.n_repeated, "found again elsewhere"),
        (passed.n_unfit, "do not fulfil the schema"),
        (passed.n_unheld, "left out, a value does not stand in the text"),
    )
    if told := [f"{n:,} {what}" for n, what in more if n]:
        lines.append(f"  {'; '.join(told)}")
    if coverage.tokens_total:
        lines.append(f"  {coverage.tokens_read:,} of {coverage.tokens_total:,} tokens went through the model")
    if verbose:
        tokens, times = done.tokens, done.timings
        lines.append(
            f"  tokens: {tokens.evaluated:,} evaluated, {tokens.generated:,} generated; "
            f"{times.decode_ms / 1000:.1f} s"
        )
    return lines
