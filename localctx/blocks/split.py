"""The way from text to blocks: reads, cuts, packs and locates. Knows no models and no files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from localctx.blocks.adaptive import AdaptivePacker
from localctx.blocks.boundaries import Rank
from localctx.blocks.locate import Locator
from localctx.blocks.packing import Packer, Sizes
from localctx.blocks.profile import Embed, Profile, profiled
from localctx.blocks.seams import line_breaks_lead
from localctx.blocks.segments import Segment, SegmentReader
from localctx.errors import UsageError
from localctx.values import Block, BlockKind, CutReason, Page, Section, TextSource, Tokenizer

__all__ = ["FIXED", "BlockPolicy", "split"]

SMALLEST_MAX_TOKENS = 16
LONGEST_HEADING = 300
"""Code points; a section with more text of its own than this is no mere heading."""


@dataclass(frozen=True, slots=True)
class BlockPolicy:
    """Which of the possible cuts are taken. `language` and `embed` (texts to unit vectors; default: TF-IDF)
    are looked at by the adaptive policy. is_table: every line is a row, as in CSV.
    """

    kind: BlockKind = "fixed"
    language: str | None = None
    embed: Embed | None = None
    is_table: bool = False


FIXED = BlockPolicy()

_REASONS: dict[Rank, CutReason] = {
    Rank.LIMIT: "limit",
    Rank.WHITESPACE: "whitespace",
    Rank.LINE: "whitespace",
    Rank.SENTENCE: "sentence",
    Rank.ROW: "row",
    Rank.PARAGRAPH: "paragraph",
    Rank.SECTION: "section",
}


def split(  # two inputs; the options are named
    text: TextSource,
    tokenize: Tokenizer,
    *,
    target_tokens: int = 128,
    min_tokens: int | None = None,
    max_tokens: int | None = None,
    pages: Sequence[Page] = (),
    sections: Sequence[Section] = (),
    span: tuple[int, int] | None = None,
    policy: BlockPolicy = FIXED,
) -> Iterator[Block]:
    """Blocks of the text (of [start, end) with `span`) in order: of about `target_tokens`, never more than
    `max_tokens` (default 3/2 of the target), fewer than `min_tokens` (default half of it) only at the end of
    a section or of the text. `policy` chooses among the cuts within these limits.

    A block ends with its section; a heading without text of its own leads the section inside it. `cut` says
    what ended the block. Page and heading path are those of the first character that is not white space.
    Raises UsageError for sizes out of order.
    """
    sizes = _sizes(target_tokens, min_tokens, max_tokens)
    locator = Locator(pages, sections)
    after = not line_breaks_lead(tokenize)
    reader = SegmentReader(
        tokenize, sizes.segment_limit, locator.section_edges(), after, is_table=policy.is_table
    )
    start, end = span or (0, None)
    segments = reader.segments(text.stream(start, end), start)
    if policy.kind == "fixed":
        return _blocks(((segment, None) for segment in segments), Packer(sizes), locator)
    profiles = profiled(segments, policy.language, policy.embed)
    return _blocks(profiles, AdaptivePacker(sizes), locator)


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


def _blocks(
    segments: Iterator[tuple[Segment, Profile | None]], packer: Packer, locator: Locator
) -> Iterator[Block]:
    builder = _Builder(locator)
    section_start = 0
    for segment, profile in segments:
        if segment.rank is Rank.SECTION:
            here = segment.start + _indent(segment.text)
            if _is_heading_above(packer.waiting, section_start, here, locator):
                builder.locate_at = here
            else:
                for group, rank in packer.flush(Rank.SECTION):
                    yield builder.block(group, rank)
            section_start = segment.start
        if profile is not None and isinstance(packer, AdaptivePacker):
            packer.profile(profile)
        for group, rank in packer.add(segment):
            yield builder.block(group, rank)
    for group, rank in packer.flush(None):
        yield builder.block(group, rank)


def _is_heading_above(waiting: Sequence[Segment], section_start: int, here: int, locator: Locator) -> bool:
    """Whether all that the section has before `here` is its heading line, and `here` begins a part of it."""
    if not waiting or waiting[0].start > section_start:
        return False
    own = "".join(segment.text for segment in waiting if segment.start >= section_start)
    heading = own.strip()
    # A line without letters underlines the heading.
    n_lines = sum(any(map(str.isalnum, line)) for line in heading.splitlines())
    if len(own) > LONGEST_HEADING or n_lines != 1:
        return False
    outer = locator.heading_path(section_start + _indent(own))
    inner = locator.heading_path(here)
    return bool(outer) and len(inner) > len(outer) and inner[: len(outer)] == outer


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


class _Builder:
    """Turns groups of segments into numbered blocks with page and heading path."""

    def __init__(self, locator: Locator) -> None:
        self._locator = locator
        self._index = 0
        self.locate_at: int | None = None  # where the next block's text stands, when headings lead it

    def block(self, group: Sequence[Segment], rank: Rank | None) -> Block:
        text = "".join(segment.text for segment in group)
        start = group[0].start
        indent = _indent(text)
        anchor = start + indent if indent < len(text) else start
        titled = (
            self.locate_at if self.locate_at is not None and self.locate_at < start + len(text) else anchor
        )
        page = self._locator.page(anchor)
        built = Block(
            index=self._index,
            start=start,
            end=start + len(text),
            text=text,
            tokens=tuple(chain.from_iterable(segment.tokens for segment in group)),
            cut="end" if rank is None else _REASONS[rank],
            page=page.number if page else None,
            page_label=page.label if page else None,
            heading_path=self._locator.heading_path(titled),
        )
        self._index += 1
        self.locate_at = None
        return built
