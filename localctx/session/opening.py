"""What every verb does first: say what the documents are, cut and count them, make the context.

Yields events and returns what was made, so that the verbs read as a list of their steps.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from localctx.blocks import SpellingTokenizer
from localctx.index import Indexable, LexicalIndex
from localctx.session.answer import DocumentCoverage, Timings
from localctx.session.events import Event, Notice, Overview, Progress
from localctx.session.provenance import Coverage
from localctx.session.reading import Reading
from localctx.session.run import Run
from localctx.session.shelf import Shelf
from localctx.values import Block, Model, Tokenizer

__all__ = ["index_all", "introduce", "read_all", "sum_coverage", "timed", "tokenizer_of"]

BLOCKS_PER_REPORT = 64
INNER = ("load_ms", "prefill_ms", "read_ms")
"""Parts that are timed within others."""


class _Pieces(Protocol):
    def piece(self, token: int) -> bytes:
        """The token's text, or the part of a character that it stands for."""


@runtime_checkable
class _Spelling(Protocol):
    """A model that tells the text of a token."""

    @property
    def vocab(self) -> _Pieces:
        """Its vocabulary."""


@contextmanager
def timed(timings: Timings, field: str) -> Iterator[None]:
    """Add the milliseconds spent inside to one field of the timings, without those that others took there."""
    started, elsewhere_ms = time.perf_counter(), _inner_ms(timings)
    try:
        yield
    finally:
        elapsed_ms = (time.perf_counter() - started) * 1000
        if field not in INNER:
            elapsed_ms -= _inner_ms(timings) - elsewhere_ms
        setattr(timings, field, getattr(timings, field) + elapsed_ms)


def _inner_ms(timings: Timings) -> float:
    return float(sum(getattr(timings, name) for name in INNER))


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
    """Cut and count every document, or find it so from an earlier run."""
    _read_all(run, Shelf.of(run))


def _read_all(run: Run, shelf: Shelf) -> None:
    for reading in run.readings:
        is_restored, index = shelf.restore(reading)
        if index is not None:
            index.close()
        if not is_restored:
            for _ in _blocks(run, reading):
                pass
            shelf.keep(reading, None)
        _note_seams(run, reading)


def index_all(run: Run) -> LexicalIndex:
    """The same, and one lexical index of all documents; block numbers run through them."""
    shelf = Shelf.of(run)
    if len(run.readings) > 1:
        return _joint_index(run, shelf)
    (reading,) = run.readings
    is_restored, index = shelf.restore(reading)
    if index is None:
        blocks: Iterable[Indexable] = _blocks(run, reading)
        if is_restored:
            blocks = map(reading.passage, range(reading.n_blocks))
        index = LexicalIndex.build(blocks, language=reading.document.language)
        shelf.keep(reading, index)
    _note_seams(run, reading)
    return index


def _joint_index(run: Run, shelf: Shelf) -> LexicalIndex:
    """That of several documents, found again where the same ones were searched before."""
    _read_all(run, shelf)
    index = shelf.restore_joint(run.readings)
    if index is None:
        languages = {reading.document.language for reading in run.readings}
        language = languages.pop() if len(languages) == 1 else None
        passages = (reading.passage(n) for reading in run.readings for n in range(reading.n_blocks))
        index = LexicalIndex.build(passages, language=language)
        shelf.keep_joint(run.readings, index)
    return index


def tokenizer_of(model: Model) -> Tokenizer:
    """The model's tokenizer, which tells what its tokens spell where the model can."""
    return (
        SpellingTokenizer(model.tokenize, model.vocab.piece)
        if isinstance(model, _Spelling)
        else model.tokenize
    )


def _blocks(run: Run, reading: Reading) -> Iterator[Block]:
    total = reading.document.text.n_code_points
    for block in reading.read(tokenizer_of(run.model)):
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
        pulled_in_by_reference=tuple(one for c in coverages for one in c.pulled_in_by_reference),
    )
    each = tuple(
        DocumentCoverage(reading.document.source, coverage)
        for reading, coverage in zip(readings, coverages, strict=True)
    )
    return total, each
