"""A verb from options to exit code: model and documents opened, events shown, the output file written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from localctx.api import choose_model, open_document_for, open_model_for
from localctx.document.events import Preview
from localctx.errors import Interrupted, PartlyDone
from localctx.session.events import Event, Finished, Listener, Overview, Progress
from localctx.session.strategy import Choice
from localctx.settings import Settings

from .documents import open_documents, page_range
from .options import OutputOptions, RunOptions
from .output_file import check_writable, write_whole
from .render import Reporter, note, silent

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.values import Model

__all__ = ["Job", "run_verb"]

Verb: TypeAlias = "Callable[[list[Document], Model, Settings, Listener], Iterator[Event]]"
Chooser: TypeAlias = Callable[[str, int, int], Choice]
"""A ladder of session.strategy: (requested, tokens needed, context) to what is chosen."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a command was told. `out` is the output file; None or - is standard output."""

    files: Sequence[str]
    run: RunOptions
    output: OutputOptions
    pages: str | None = None
    out: str | None = None

    @property
    def out_path(self) -> Path | None:
        """The file to write the answer to."""
        return Path(self.out) if self.out not in (None, "-") and self.out else None


def run_verb(job: Job, verb: Verb, choose: Chooser) -> None:
    """Run the verb and show its events.

    Raises what the stages raise; Interrupted when it was cancelled, PartlyDone when files failed.
    """
    pages = page_range(job.pages)
    if job.out_path is not None:
        check_writable(job.out_path)
    settings, chosen = choose_model(job.run.flags(), job.run.config)
    output = job.output
    reporter = Reporter(
        as_json=output.json,
        quiet=output.quiet,
        verbose=output.verbose,
        answer_to=None if output.json or job.out_path is not None else _write,
    )
    model = open_model_for(settings, chosen)
    preview = _Preview(reporter, model, settings, choose)

    def open_one(source: str) -> Document:
        return open_document_for(source, settings, pages, preview.progress, preview)

    warn = silent if output.quiet else (lambda text: note(f"warning: {text}"))
    try:
        with reporter, open_documents(job.files, open_one, warn) as opened:
            answer = None
            for event in verb(opened.documents, model, settings, reporter.progress):
                if isinstance(event, Finished):
                    answer = event.answer
                    if job.out_path is not None:
                        write_whole(job.out_path, answer.text + "\n")
                reporter.event(event)
    finally:
        model.close()
    if answer is not None and answer.finish_reason == "cancelled":
        raise Interrupted("interrupted")
    if opened.n_failed:
        n_files = opened.n_failed + len(opened.documents)
        raise PartlyDone(f"{opened.n_failed} of {n_files} files could not be read")


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
            warnings=(),
        )
        limit = self.model.usable_n_ctx(self.settings.ctx)
        self.reporter.preview(overview, self.choose(self.settings.strategy, n_tokens, limit))


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
