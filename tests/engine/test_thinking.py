"""Thinking is kept apart from the answer, however it arrives."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.engine.thinking import DEFAULT_TAGS, ThinkingSplitter, ThinkingTags, detect, starts_open

CHANNELS = detect("{{ '<|channel|>analysis' }}")
BOX = ThinkingTags("[THINK]", "[/THINK]")

# output, opener already in the prompt, answer, thinking, cut inside
CASES = [
    ("plain answer", False, "plain answer", "", False),
    ("<think>a\nb</think>\n\nyes", False, "yes", "a\nb", False),
    ("\n <think>a</think>yes ", False, "yes ", "a", False),
    ("a</think>\nyes", True, "yes", "a", False),
    ("</think>yes", True, "yes", "", False),
    ("never closed", True, "", "never closed", True),
    ("<think>cut </thi", False, "", "cut </thi", True),
    ("", True, "", "", True),
    ("", False, "", "", False),
    ("Line 2 says </think> and <think>", False, "Line 2 says </think> and <think>", "", False),
    ("<think>a</think>it says <think>b</think>", False, "it says <think>b</think>", "a", False),
    ("<think>a</think><think>b</think>yes", False, "yes", "ab", False),
    ("<thin", False, "<thin", "", False),
    ("  indented code", False, "  indented code", "", False),
    ("<think>a</think>\n\n", False, "", "a", False),
]


@pytest.mark.parametrize(("output", "opened", "answer", "thinking", "cut"), CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_output_is_split(output: str, opened: bool, answer: str, thinking: str, cut: bool, size: int) -> None:
    splitter = ThinkingSplitter(starts_open=opened)
    pieces = [splitter.feed(output[i : i + size]) for i in range(0, len(output), size)]
    pieces.append(splitter.finish())
    assert "".join(piece[0] for piece in pieces) == answer
    assert "".join(piece[1] for piece in pieces) == thinking
    assert splitter.cut_inside == cut


def test_channels_frame_the_answer() -> None:
    splitter = ThinkingSplitter(CHANNELS.open, CHANNELS.close, dropped=CHANNELS.dropped)
    output = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>yes <|end|>"
    pieces = [splitter.feed(c) for c in output] + [splitter.finish()]
    assert "".join(piece[0] for piece in pieces) == "yes <|end|>"
    assert "".join(piece[1] for piece in pieces) == "hm"


def test_channels_without_thinking() -> None:
    splitter = ThinkingSplitter(CHANNELS.open, CHANNELS.close, dropped=CHANNELS.dropped)
    assert splitter.feed("<|channel|>final<|message|>yes") == ("yes", "")


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="<think/>a \n", max_size=40), st.booleans(), st.lists(st.integers(0, 40), max_size=8))
def test_the_split_does_not_depend_on_the_cuts(text: str, opened: bool, cuts: list[int]) -> None:
    whole, pieces = ThinkingSplitter(starts_open=opened), ThinkingSplitter(starts_open=opened)
    expected = [whole.feed(text), whole.finish()]
    edges = sorted({0, len(text), *(min(c, len(text)) for c in cuts)})
    got = [pieces.feed(text[a:b]) for a, b in pairwise(edges)] + [pieces.finish()]
    assert ["".join(p[i] for p in got) for i in (0, 1)] == ["".join(p[i] for p in expected) for i in (0, 1)]


@pytest.mark.parametrize(
    ("template", "opener"),
    [
        (None, "<think>"),
        ("{{ messages }}", "<think>"),
        ("...<|end|>...", "<think>"),
        ("{% if '</think>' in content %}", "<think>"),
        ("<|channel|>analysis", "<|channel|>analysis<|message|>"),
        ("[THINK]..[/THINK]", "[THINK]"),
        ("<seed:think></seed:think>", "<seed:think>"),
    ],
)
def test_tags_are_found_in_the_template(template: str | None, opener: str) -> None:
    assert detect(template).open == opener


def test_an_open_block_is_seen_in_the_generation_prompt() -> None:
    assert starts_open("<|im_start|>assistant\n<think>\n", DEFAULT_TAGS)
    assert not starts_open("<|im_start|>assistant\n<think>\n\n</think>\n\n", DEFAULT_TAGS)
    assert not starts_open("<|im_start|>assistant\n", DEFAULT_TAGS)
    assert starts_open("[/INST][THINK]", BOX)
