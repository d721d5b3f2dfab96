"""Which blocks enter the context, and in which order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.index import LexicalIndex
from localctx.selection import choose, header_line, text_key
from localctx.values import Block, Scores


def scores(*values: float) -> Scores:
    return Scores("test", values)


def test_the_best_blocks_in_document_order() -> None:
    chosen = choose(scores(1, 9, 0, 8, 7), [100] * 5, budget_tokens=1000, max_blocks=2)
    assert chosen.indices == (1, 3)
    assert [block.score for block in chosen.blocks] == [9, 8]
    assert chosen.n_tokens == 200 and chosen.outcome == "chosen"


def test_what_is_too_large_is_passed_over() -> None:
    chosen = choose(scores(9, 8, 7), [520, 110, 110], budget_tokens=230)
    assert chosen.indices == (1, 2)
    assert chosen.n_tokens == 220
    assert choose(scores(9, 8, 7), [520, 110, 110], budget_tokens=219).indices == (1,)


def test_what_another_block_brought_whole_costs_nothing() -> None:
    """Blocks of 100 tokens in runs of 128: the third of them by score lies in runs that are there."""

    def units(block: int) -> dict[int, int]:
        return dict.fromkeys(range(100 * block // 128, (100 * block + 99) // 128 + 1), 128)

    found = choose(scores(9, 7, 8, 6, 0, 5), [20] * 6, budget_tokens=4 * 128 + 40, units=units)
    assert found.indices == (0, 1, 2, 3)  # block 3 adds the run behind those of 0, 1 and 2
    assert found.n_tokens == 4 * 128 + 40  # two of them began a stretch of their own
    assert choose(scores(9, 7, 8, 6), [20] * 4, budget_tokens=4 * 128, units=units).indices == (0, 1, 2)
    assert choose(scores(9, 0, 8), [20] * 3, budget_tokens=3 * 128 + 20, units=units).indices == (0,)


def test_blocks_far_below_the_best_are_left_out() -> None:
    assert choose(scores(10, 0, 2.9, 0, 3.1), [9] * 5, budget_tokens=99, short_tokens=0).indices == (0, 4)


def test_equal_text_enters_once() -> None:
    """Copies do not crowd the selection."""
    texts = ["the answer is  42", "The answer is 42", "other words", "the answer is 42\n"]
    chosen = choose(
        scores(5, 5, 4, 5),
        [9] * 4,
        budget_tokens=99,
        max_blocks=3,
        short_tokens=0,
        text_keys=list(map(text_key, texts)),
    )
    assert chosen.indices == (0, 2)
    assert chosen.duplicates == ((1, 0), (3, 0))


def test_duplicates_in_a_real_index_leave_room_for_others() -> None:
    texts = ["zebras eat grass"] * 10 + ["zebras drink water"] + [f"filler {i}" for i in range(20)]
    with LexicalIndex.build([Block(i, 0, 1, text, (0,), "end") for i, text in enumerate(texts)]) as index:
        found = index.scores("what do zebras eat?")
    keys = list(map(text_key, texts))
    assert choose(found, [50] * len(texts), budget_tokens=500, max_blocks=4, text_keys=keys).indices == (
        0,
        10,
    )


def test_a_neighbour_enters_only_when_it_scores() -> None:
    assert choose(scores(0, 2, 10, 0, 0), [50] * 5, budget_tokens=999).indices == (1, 2)
    chosen = choose(scores(0, 2, 10, 0, 0), [50] * 5, budget_tokens=999)
    assert [block.why for block in chosen.blocks] == ["neighbour", "score"]


def test_a_very_short_block_brings_the_next_along() -> None:
    chosen = choose(scores(0, 10, 0, 0), [50, 5, 50, 50], budget_tokens=999)
    assert [(block.index, block.why) for block in chosen.blocks] == [(1, "score"), (2, "completes")]
    assert choose(scores(0, 10), [50, 5], budget_tokens=999).indices == (1,)


def test_without_evidence_or_room_it_says_so() -> None:
    assert choose(scores(0, 0), [9, 9], budget_tokens=99).outcome == "no evidence"
    assert choose(scores(), [], budget_tokens=99).outcome == "no evidence"
    assert choose(scores(1, 2), [9, 9], budget_tokens=5).outcome == "nothing fits"


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="2 scores for 1 blocks"):
        choose(scores(1, 2), [9], budget_tokens=5)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(st.floats(0, 100), st.integers(1, 200), st.integers(0, 5)), max_size=30),
    st.integers(0, 600),
    st.integers(0, 8),
)
def test_never_over_budget_never_twice_always_in_order(
    blocks: list[tuple[float, int, int]], budget: int, most: int
) -> None:
    values, costs, keys = ([block[k] for block in blocks] for k in range(3))
    chosen = choose(scores(*values), costs, budget_tokens=budget, max_blocks=most, text_keys=keys)
    assert chosen.n_tokens == sum(costs[i] for i in chosen.indices) <= budget
    assert len(chosen.indices) <= most
    assert list(chosen.indices) == sorted(set(chosen.indices))
    assert len({keys[i] for i in chosen.indices}) == len(chosen.indices)
    assert (chosen.outcome == "chosen") == bool(chosen.blocks)


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        (("report.pdf", ["Chapter 2"], "14"), "[report.pdf › Chapter 2 › p. 14]"),
        (("a\nb\t.txt", [], None), "[a b .txt]"),
        (("x", ["", " A \n B "], ""), "[x › A B]"),
        (("x", list("abcdef"), "iv"), "[x › a › … › d › e › f › p. iv]"),
        (("x", ["<|im_end|>\x00\u2028]"], None), "[x › <|im_end|> ]]"),
        (("", [], None), "[]"),
    ],
)
def test_header_lines(parts: tuple[str, list[str], str | None], line: str) -> None:
    assert header_line(*parts) == line


def test_long_headings_are_cut() -> None:
    line = header_line("x", ["word " * 100])
    assert len(line) < 100 and "…" in line and "\n" not in line


def test_a_long_path_keeps_its_file_name() -> None:
    line = header_line(f"/home/{'folder/' * 30}report.pdf", ["Mines"])
    assert line.startswith("[…") and line.endswith("folder/report.pdf › Mines]")
