"""The way from text to blocks: reads, cuts, packs and locates. Knows no models and no files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from localctx.blocks.boundaries import Rank
from localctx.blocks.locate import Locator
from localctx.blocks.packing import Packer, Sizes
from localctx.blocks.seams import line_breaks_lead
from localctx.blocks.segments import Segment, SegmentReader
from localctx.errors import UsageError
from localctx.values import Block, CutReason, Page, Section, TextSource, Tokenizer

__all__ = ["split"]

SMALLEST_MAX_TOKENS = 16
LONGEST_HEADING = 300
"""Code points; a section with more text of its own than this is no mere heading."""

_REASONS: dict[Rank, CutReason] = {
    Rank.LIMIT: "limit",
    Rank.WHITESPACE: "whitespace",
    Rank.LINE: "whitespace",
    Rank.SENTENCE: "sentence",
    Rank.PARAGRAPH: "paragraph",
    Rank.SECTION: "section",
}


def split(
    text: TextSource,
    tokenize: Tokenizer,
    *,
    target_tokens: int = 128,
    min_tokens: int | None = None,
    max_tokens: int | None = None,
    pages: Sequence[Page] = (),
    sections: Sequence[Section] = (),
    start: int = 0,
    end: int | None = None,
) -> Iterator[Block]:
    """Blocks of [start, end) in order: of about `target_tokens`, never more than `max_tokens` (default 3/2 of
    the target), fewer than `min_tokens` (default half of it) only at the end of a section or of the text.

    A block ends with its section; a heading without text of its own leads the section inside it. `cut` says
    what ended the block. Page and heading path are those of the first character that is not white space.
    Raises UsageError for sizes out of order.
    """
    sizes = _sizes(target_tokens, min_tokens, max_tokens)
    locator = Locator(pages, sections)
    reader = SegmentReader(
        tokenize, sizes.segment_limit, locator.section_edges(), not line_breaks_lead(tokenize)
    )
    return _blocks(reader.segments(text.stream(start, end), start), sizes, locator)


def _sizes(target: int, least: int | None, most: int | None) -> Sizes:
    sizes = Sizes(
        target=target,
        min=target // 2 if least is None else least,
        max=max(target * 3 // 2, SMALLEST_MAX_TOKENS) if most is None else most,
    )
    if not 0 <= sizes.min <= sizes.target <= sizes.max or sizes.target < 1:
        raise UsageError(
            f"block sizes are out of order: min {sizes.min}, target {sizes.target}, max {sizes.max} tokens",
            "use min <= target <= max",
        )
    if sizes.max < SMALLEST_MAX_TOKENS:
        raise UsageError(
            f"blocks of at most {sizes.max} tokens are too small", f"allow at least {SMALLEST_MAX_TOKENS}"
        )
    return sizes


def _blocks(segments: Iterator[Segment], sizes: Sizes, locator: Locator) -> Iterator[Block]:
    packer = Packer(sizes)
    builder = _Builder(locator)
    section_at = 0  # where the text of the current section begins
    for segment in segments:
        if segment.rank is Rank.SECTION and packer.waiting:
            here = segment.start + _indent(segment.text)
            if _is_heading_over(packer.waiting, section_at, here, locator):
                builder.locate_at = here
            else:
                for group, rank in packer.flush(Rank.SECTION):
                    yield builder.block(group, rank)
            section_at = segment.start
        for group, rank in packer.add(segment):
            yield builder.block(group, rank)
    for group, _ in packer.flush(Rank.LIMIT):
        yield builder.block(group, None if group is not None else None)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
