"""What a question's context is filled with under the strategy `condense`: every document's best sentences.

Where retrieve reads a few passages whole, this reads single sentences from all over: questions about the
whole text get more of it for the same tokens. Stretches are led by their section's line where it changes.
"""

from __future__ import annotations

from collections.abc import Generator

from localctx.errors import UsageError
from localctx.index import LexicalIndex
from localctx.selection import header_line
from localctx.session.condense import Condensed, prepare
from localctx.session.condense_embedding import embed_for
from localctx.session.events import Event
from localctx.session.filling import Filling
from localctx.session.opening import tokenizer_of
from localctx.session.reading import Passage, Reading
from localctx.session.run import Run

__all__ = ["CONDENSED_TOKENS", "condensed"]

CONDENSED_TOKENS = 2048
"""Read at most, unless `--kv budget` says otherwise."""
MOST_ROUNDS = 12
CAUTION = 0.95


def condensed(run: Run, index: LexicalIndex, question: str, room: int) -> Generator[Event, None, Filling]:
    """Sentences of all documents within the budget, each document having its share by its tokens.

    Raises UsageError where `room`, in tokens, is too little. The index is of passages, so it is not asked.
    """
    wanted = min(room, run.settings.cache.budget or CONDENSED_TOKENS)
    languages = [reading.document.language for reading in run.readings]
    embeds = [embed_for(run.embedder, question, language) for language in languages]
    for reason in dict.fromkeys(embed for embed in embeds if isinstance(embed, str)):
        yield run.warn(f"sentences are chosen by words alone: {reason}")
    prepared = [
        prepare(
            reading.document.text,
            tokenizer_of(run.model),
            wanted,
            question=question,
            embed=None if isinstance(embed, str) else embed,
            sections=reading.document.sections,
            language=reading.document.language,
        )
        for reading, embed in zip(run.readings, embeds, strict=True)
    ]
    budget = wanted
    for _ in range(MOST_ROUNDS):
        shares = [max(1, budget * reading.n_tokens // max(1, run.n_tokens)) for reading in run.readings]
        kept = [one.within(share) for one, share in zip(prepared, shares, strict=True)]
        passages = [
            _passage(run, reading, *span)
            for reading, one in zip(run.readings, kept, strict=True)
            for span in one.spans
        ]
        filling = Filling(_fragments(passages), tuple(passages))
        n_tokens = sum(len(run.model.tokenize(fragment, False)) for fragment in filling.fragments)
        if n_tokens <= wanted:
            yield run.warn(_told(kept))
            return filling
        budget = min(budget - 1, int(CAUTION * budget * wanted / n_tokens))  # header lines and seams
    raise UsageError("the context is too small for the text's sentences", "raise --ctx or lower --max-tokens")


def _passage(run: Run, reading: Reading, start: int, end: int) -> Passage:
    document = reading.document
    text, page = document.read(start, end), document.page_at(start)
    label = None if page is None else page.label or str(page.number)
    return Passage(
        document=reading.ordinal,
        start=start,
        end=end,
        text=text,
        n_tokens=len(run.model.tokenize(text, start == 0)),
        source=document.source,
        page=None if page is None else page.number,
        page_label=label,
        heading_path=document.heading_path_at(start),
    )


def _fragments(passages: list[Passage]) -> tuple[str, ...]:
    """The stretches, a header line before each that begins another section or document."""
    fragments: list[str] = []
    document, path = -1, tuple[str, ...]()
    for passage in passages:
        if passage.document != document:  # the file is named once
            header = header_line(passage.source, passage.heading_path, passage.page_label)
        else:
            header = header_line(*_innermost(passage), passage.page_label)
        if (passage.document, passage.heading_path) != (document, path):
            fragments += ["\n" if fragments else "", header + "\n"]
        document, path = passage.document, passage.heading_path
        fragments += [passage.text, "\n"]
    return tuple(fragment for fragment in fragments[:-1] if fragment)


def _innermost(passage: Passage) -> tuple[str, tuple[str, ...]]:
    """The last heading in the place of the file's name, or that name."""
    return (passage.heading_path[-1] if passage.heading_path else passage.source), ()


def _told(kept: list[Condensed]) -> str:
    """How much is read."""
    coverages = [one.coverage for one in kept]
    n_kept, n_all = (
        sum(getattr(c, name) for c in coverages) for name in ("sentences_kept", "sentences_total")
    )
    return f"condensed: {n_kept:,} of {n_all:,} sentences are read; the answer may stand in others"
