"""A text as a stream of its sentences, each with its token ids: what is kept or left out by truncation.

White space stays with the sentence behind it (or before it, where the tokenizer wants that), so the units
join back to the text and their tokens add up. Knows no scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from localctx.blocks.locate import Locator
from localctx.blocks.seams import line_breaks_lead
from localctx.blocks.segments import Segment, SegmentReader
from localctx.errors import UsageError
from localctx.values import Section, TextSource, Tokenizer

__all__ = ["sentence_units"]


def sentence_units(
    text: TextSource,
    tokenize: Tokenizer,
    *,
    max_tokens: int = 128,
    sections: Sequence[Section] = (),
    start: int = 0,
    end: int | None = None,
) -> Iterator[Segment]:
    """The sentences of [start, end) in order, none of more than `max_tokens`: longer ones are cut at lines or
    words. Memory: two windows of text. Raises UsageError for max_tokens < 1.
    """
    if max_tokens < 1:
        raise UsageError(f"sentences of at most {max_tokens} tokens cannot be", "1 or more")
    edges = Locator((), sections).section_edges()
    reader = SegmentReader(tokenize, max_tokens, edges, not line_breaks_lead(tokenize))
    return reader.segments(text.stream(start, end), start)
