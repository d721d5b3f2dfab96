"""Which side of line breaks a tokenizer can be cut at, and what is left of a difference."""

from __future__ import annotations

from collections.abc import Sequence

from blocks.text_cases import GPT2_WORDS, LLAMA3_WORDS, StringText, WordRules, white_space_tokens

from localctx.blocks import seam_difference, split
from localctx.blocks.seams import SeamDifference, line_breaks_lead
from localctx.values import Block


def pairs(text: str, first: bool) -> Sequence[int]:
    """A tokenizer that no cut is sure for: every two characters one id."""
    return [hash(text[at : at + 2]) for at in range(0, len(text), 2)]


def test_the_side_is_asked_from_the_tokenizer() -> None:
    assert line_breaks_lead(WordRules(GPT2_WORDS))
    assert line_breaks_lead(white_space_tokens)
    assert not line_breaks_lead(WordRules(LLAMA3_WORDS))
    assert line_breaks_lead(pairs)


def test_no_difference_where_the_cuts_suit_the_tokenizer() -> None:
    tokenize = WordRules(LLAMA3_WORDS)
    blocks = list(split(StringText("Some words. And a few more.\n\nNext.\n" * 2000), tokenize))
    found = seam_difference(blocks, tokenize)
    assert found.tokens == 0
    assert found.n_blocks == len(blocks)


def test_the_difference_of_a_tokenizer_that_cannot_be_cut_is_counted() -> None:
    text = "abc. " * 20_000
    blocks = list(split(StringText(text), pairs))
    found = seam_difference(blocks, pairs)
    assert found.n_blocks == len(blocks)
    assert found.tokens_whole <= len(text) // 2 + 10
    assert found.tokens == found.tokens_added - found.tokens_whole > 0


def test_long_documents_are_sampled() -> None:
    blocks = list(split(StringText("Some words and no more. " * 8000), white_space_tokens))
    found = seam_difference(blocks, white_space_tokens, max_groups=3)
    assert 0 < found.n_blocks < len(blocks) // 2
    assert found.tokens == 0
    assert seam_difference([], white_space_tokens).n_blocks == 0


def test_the_difference_can_be_counted_on_the_way_part_by_part() -> None:
    text = "abc. " * 20_000
    blocks = list(split(StringText(text), pairs))
    parts: list[SeamDifference] = []
    part: list[Block] = []
    for block in blocks:
        part.append(block)
        if block.end - part[0].start >= 16_384 or block is blocks[-1]:
            parts.append(seam_difference(part, pairs))
            part = []
    whole = seam_difference(blocks, pairs)
    assert sum(found.n_blocks for found in parts) == whole.n_blocks == len(blocks)
    assert sum(found.tokens for found in parts) == whole.tokens > 0


def test_blocks_that_are_not_neighbours_are_not_joined() -> None:
    blocks = list(split(StringText("abc. " * 4000), pairs))
    seen: list[str] = []

    def watched(text: str, first: bool) -> Sequence[int]:
        seen.append(text)
        return pairs(text, first)

    assert seam_difference([*blocks[:2], *blocks[5:7]], watched).n_blocks == 4
    assert seen == [blocks[0].text + blocks[1].text, blocks[5].text + blocks[6].text]
