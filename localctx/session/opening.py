"""What every verb does first: say what the documents are, cut and count them, make the context.

Yields events and returns what was made, so that the verbs read as a list of their steps.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from localctx.index import LexicalIndex
from localctx.session.answer import DocumentCoverage, Timings
from localctx.session.events import Event, Notice, Overview, Progress
from localctx.session.reading import Reading
from localctx.session.run import Run
from localctx.values import Block, Coverage

__all__ = ["index_all", "introduce", "read_all", "sum_coverage", "timed"]

BLOCKS_PER_REPORT = 64


@contextmanager
def timed(timings: Timings, field: str) -> Iterator[None]:
    """Add the milliseconds spent inside to one field of the timings, without those that others took there."""
    started, elsewhere_ms = time.perf_counter(), timings.load_ms + timings.prefill_ms
    try:
        yield
    finally:
        elapsed_ms = (time.perf_counter() - started) * 1000
        if field not in ("load_ms", "prefill_ms"):
            elapsed_ms -= timings.load_ms + timings.prefill_ms - elsewhere_ms
        setattr(timings, field, getattr(timings, field) + elapsed_ms)


def introduce(run: Run) -> Iterator[Event]:
    """One Overview a document and its warnings, before it is read whole."""
    for notice in run.model.info.notices:
        yield Notice(notice)
    for reading in run.readings:
        document = reading.document
        yield Overview(
            source=document.source,
            format=document.format,
            n_pages=len(document.pages),
            n_tokens_estimate=reading.estimate_tokens(run.model.tokenize),
            language=document.language,
            outline=document.sections,
        )
        for warning in document.warnings:
            yield run.warn(warning)


def read_all(run: Run) -> None:
    """Cut and count every document."""
    for reading in run.readings:
        for _ in _blocks(run, reading):
            pass
        _note_seams(run, reading)


def index_all(run: Run) -> LexicalIndex:
    """Cut and count every document into one lexical index; block numbers run through all documents."""

    def numbered() -> Iterator[Block]:
        index = 0
        for reading in run.readings:
            for block in _blocks(run, reading):
                yield replace(block, index=index)
                index += 1
            _note_seams(run, reading)

    languages = {reading.document.language for reading in run.readings}
    return LexicalIndex.build(numbered(), language=languages.pop() if len(languages) == 1 else None)


def _blocks(run: Run, reading: Reading) -> Iterator[Block]:
    total = reading.document.text.n_code_points
    for block in reading.read(run.model.tokenize):
        if block.index % BLOCKS_PER_REPORT == 0:
            run.listen(Progress("reading", block.end, total, "characters"))
        yield block


def _note_seams(run: Run, reading: Reading) -> None:
    if reading.seam_warning is not None:
        run.warnings.append(reading.seam_warning)


def sum_coverage(
    readings: Sequence[Reading], coverages: Sequence[Coverage]
) -> tuple[Coverage, tuple[DocumentCoverage, ...]]:
    """The total over all documents, and each document's own."""
    if len(coverages) == 1:
        return coverages[0], ()
    total = Coverage(
        tokens_total=sum(c.tokens_total for c in coverages),
        tokens_read=sum(c.tokens_read for c in coverages),
        tokens_attended=sum(c.tokens_attended for c in coverages),
        tokens_dropped=sum(c.tokens_dropped for c in coverages),
        pages_total=sum(c.pages_total for c in coverages),
        replaced_characters=sum(c.replaced_characters for c in coverages),
    )
    each = tuple(
        DocumentCoverage(reading.document.source, coverage)
        for reading, coverage in zip(readings, coverages, strict=True)
    )
    return total, each
