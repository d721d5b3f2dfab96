"""Do the blocks' tokens add up to those of the whole text? Asks the tokenizer; knows no particular one.

Byte-pair tokenizers first cut text into words. Most attach white space to the word that follows (GPT-2,
SmolLM2, SentencePiece models): cuts before white space keep the tokens. Many recent ones (Llama 3, Qwen)
attach line breaks to the mark that precedes them, so there the cut must follow the last line break. Which of
the two holds is asked once per text with a few words. Cuts inside a run without spaces (some Chinese, hard
limits) can change a few tokens; seam_difference() counts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localctx.values import Block, Tokenizer

__all__ = ["SeamDifference", "line_breaks_lead", "seam_difference"]

GROUP_CODE_POINTS = 16_384
_PROBES = (("one two.", "\n\n", "Three four"), ("one two", "\n", "three"), ("f(x);", "\r\n\r\n", "g(y)"))


@dataclass(frozen=True, slots=True)
class SeamDifference:
    """Tokens of the compared blocks, added up and tokenised in one go per group of blocks."""

    n_blocks: int
    tokens_added: int
    tokens_whole: int

    @property
    def tokens(self) -> int:
        """How many more tokens the blocks have than the text; negative when they have fewer."""
        return self.tokens_added - self.tokens_whole


def line_breaks_lead(tokenize: Tokenizer) -> bool:
    """Whether this tokenizer keeps its tokens when cut before line breaks; False: cut after them.

    True also where neither holds.
    """
    cut_before = cut_after = True
    for left, breaks, right in _PROBES:
        whole = list(tokenize(left + breaks + right, True))
        cut_before &= [*tokenize(left, True), *tokenize(breaks + right, False)] == whole
        cut_after &= [*tokenize(left + breaks, True), *tokenize(right, False)] == whole
    return cut_before or not cut_after


def seam_difference(blocks: Sequence[Block], tokenize: Tokenizer, max_groups: int = 64) -> SeamDifference:
    """Compare the blocks' tokens with those of their joined text, in at most `max_groups` groups of
    neighbouring blocks spread evenly over `blocks`, each of about 16,384 code points.

    Short documents are compared whole but for the cuts between groups. It may be called again and again on
    consecutive parts of a document as they are made: nothing is remembered, and the figures add up. At most
    about 16,384 code points and one block are tokenised at a time. A gap between two blocks (passages left
    out) ends a group, so that only what is neighbouring in the text is compared.
    """
    n_blocks = tokens_added = tokens_whole = 0
    groups = list(_groups(blocks))
    step = max(1, -(-len(groups) // max_groups))
    for first, last in groups[::step]:
        members = blocks[first:last]
        text = "".join(block.text for block in members)
        n_blocks += len(members)
        tokens_added += sum(block.n_tokens for block in members)
        tokens_whole += len(tokenize(text, members[0].start == 0))
    return SeamDifference(n_blocks, tokens_added, tokens_whole)


def _groups(blocks: Sequence[Block]) -> Iterator[tuple[int, int]]:
    first = 0
    for index, block in enumerate(blocks):
        is_last = index == len(blocks) - 1 or blocks[index + 1].start != block.end
        if is_last or block.end - blocks[first].start >= GROUP_CODE_POINTS:
            yield first, index + 1
            first = index + 1
