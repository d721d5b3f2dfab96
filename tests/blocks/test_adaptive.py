"""Adaptive blocks: the same guarantees and tokens as fixed ones, cut where the topic changes."""

from __future__ import annotations

import argparse
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from blocks.text_cases import GPT2_WORDS, LLAMA3_WORDS, StringText, WordRules, texts
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from localctx.blocks import BlockPolicy, profile, segments, split
from localctx.blocks.profile import profiled
from localctx.values import Block, Section, Tokenizer

ADAPTIVE = BlockPolicy("adaptive", "en")
PROSE = Path(argparse.__file__).read_text(encoding="utf-8")
SHIPS = [f"Ship {n} left the harbour under sail, her crew and cargo safe on the calm sea." for n in range(6)]
BREAD = [f"Loaf {n} rose in the oven, its flour, yeast and salt kneaded by the baker." for n in range(6)]
TOPICS = (
    "ship harbour captain", "loaf oven baker", "violin concert soloist", "glacier crevasse climber",
    "verdict court witness", "orchard cider farmer", "telescope comet observer", "loom shuttle weaver",
)  # fmt: skip


def blocks_of(
    text: str, tokenize: Tokenizer, policy: BlockPolicy = ADAPTIVE, target: int = 40, piece: int = 4096
) -> list[Block]:
    return list(split(StringText(text, piece), tokenize, target_tokens=target, policy=policy))


@pytest.fixture(autouse=True)
def small_windows() -> Iterator[None]:
    """Short texts cross many windows."""
    with mock.patch.object(profile, "WINDOW_SEGMENTS", 7):
        yield


@settings(deadline=None, max_examples=120)
@given(
    texts, st.integers(1, 70), st.sampled_from([1, 5, 12, 40]), st.sampled_from([GPT2_WORDS, LLAMA3_WORDS])
)
def test_same_text_tokens_and_limits_as_fixed(text: str, piece: int, target: int, words: str) -> None:
    tokenize = WordRules(words)
    with mock.patch.object(segments, "WINDOW", 80), mock.patch.object(segments, "MARGIN", 24):
        blocks = blocks_of(text, tokenize, ADAPTIVE, target, piece)
        fixed = blocks_of(text, tokenize, BlockPolicy(), target, piece)
        assert blocks == blocks_of(text, tokenize, ADAPTIVE, target, 1 << 20)
    assert "".join(block.text for block in blocks) == text
    assert [t for block in blocks for t in block.tokens] == [t for block in fixed for t in block.tokens]
    assert all(block.n_tokens <= max(16, target * 3 // 2) for block in blocks)


def test_no_block_is_below_the_least_but_at_an_end() -> None:
    for block in blocks_of(PROSE, WordRules(GPT2_WORDS), target=64):
        assert 32 <= block.n_tokens <= 96 or block.cut == "end"


def test_cuts_fall_where_the_topic_changes_and_fixed_ones_do_not() -> None:
    tokenize = WordRules(GPT2_WORDS, word_part=50)
    text, changes = "", []
    for topic, n in zip(TOPICS, (4, 3, 5, 4, 3, 5, 3, 4), strict=True):
        one, other, third = topic.split()
        sentences = [
            f"A {one} with {other} by the {third}.",
            f"The {third} had a {one}.",
            f"No {other} for a {one}.",
        ]
        text += " ".join([*sentences, *sentences][:n]) + " "
        changes.append(len(text) - 1)

    def n_hit(policy: BlockPolicy) -> int:
        return len({block.end for block in blocks_of(text, tokenize, policy, target=28)} & set(changes))

    assert n_hit(ADAPTIVE) >= 6
    assert n_hit(BlockPolicy()) <= 4


def test_dense_text_is_cut_finer_than_sparse_text() -> None:
    tokenize = WordRules(GPT2_WORDS, word_part=50)
    dense = [f"Valve K{n} shut at {n}:45 by Ada Quill{n}." for n in range(90)]
    sparse = ["And so it was with all of them." for _ in range(90)]
    halves = [" ".join(some[at : at + 30]) for at in (0, 30, 60) for some in (dense, sparse)]
    text = " ".join(halves)
    edges = [0, *accumulate(len(half) + 1 for half in halves)]
    sizes: tuple[list[int], list[int]] = ([], [])
    for block in blocks_of(text, tokenize, target=80):
        place = bisect_right(edges, block.start) - 1
        if block.end <= edges[place + 1]:
            sizes[place % 2].append(block.n_tokens)
    assert np.mean(sizes[0]) < 0.9 * np.mean(sizes[1])


def test_sections_end_blocks() -> None:
    text = " ".join(SHIPS + BREAD)
    edge = len(" ".join(SHIPS)) + 1
    sections = [Section(1, "Ships", 0, edge), Section(1, "Bread", edge, len(text))]
    found = split(
        StringText(text), WordRules(GPT2_WORDS), target_tokens=500, sections=sections, policy=ADAPTIVE
    )
    assert [(block.heading_path, block.cut) for block in found] == [
        (("Ships",), "section"),
        (("Bread",), "end"),
    ]


def test_an_embedder_decides_instead_of_words() -> None:
    tokenize = WordRules(GPT2_WORDS, word_part=50)
    text = " ".join(f"Line {n} is like any other line of this even text." for n in range(24))

    def embed(some: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[1, 0] if int(s.split()[1]) < 13 else [0, 1] for s in some], np.float32)

    change = text.index("Line 13") - 1
    policy = BlockPolicy("adaptive", "en", embed)
    assert change in {block.end for block in blocks_of(text, tokenize, policy, target=60)}


def test_segments_are_known_a_window_ahead_at_most() -> None:
    n_read = 0
    reader = segments.SegmentReader(WordRules(GPT2_WORDS), 64, [], False)

    def counted() -> Iterator[segments.Segment]:
        nonlocal n_read
        for segment in reader.segments([PROSE], 0):
            n_read += 1
            yield segment

    for n_out, _ in enumerate(profiled(counted()), 1):
        assert n_read - n_out <= 7 + 2 * profile.CONTEXT_SEGMENTS
    assert n_out == n_read > 500


@pytest.mark.parametrize("text", ["", "x", "same words here. " * 300, "\n" * 500, "a" * 5000, "。" * 300])
def test_degenerate_texts(text: str) -> None:
    assert "".join(block.text for block in blocks_of(text, WordRules(GPT2_WORDS))) == text
