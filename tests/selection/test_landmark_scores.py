"""What stands out for heads, and both opinions together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localctx.selection.fuse import fuse
from localctx.selection.landmarks import head_scores, landmark_scores, shared_lead
from localctx.values import Scores


def noise(n_queries: int, seed: int, n_heads: int = 3, n_blocks: int = 40) -> np.ndarray:
    """Matches of nothing in particular."""
    return np.random.default_rng(seed).standard_normal((n_queries, n_heads, n_blocks)).astype(np.float32)


def test_a_block_that_one_query_finds_stands_out() -> None:
    found, neutral = noise(8, 1), [noise(5, 2), noise(4, 3)]
    found[3, :, 17] += 8
    values = landmark_scores(found, neutral).values
    assert int(np.argmax(values)) == 17
    assert min(values) == 0.0


def test_what_every_question_finds_does_not() -> None:
    found, neutral = noise(8, 1), [noise(5, 2), noise(4, 3)]
    for matches in (found, *neutral):
        matches[:, :, 5] += 8
    found[3, :, 17] += 8
    assert int(np.argmax(landmark_scores(found, neutral).values)) == 17


def test_heads_count_alike_whatever_their_size() -> None:
    found, neutral = noise(8, 1), [noise(5, 2)]
    found[:, 0, 7] += 5
    louder = [matches * np.array([1, 100, 1], np.float32)[:, None] for matches in (found, *neutral)]
    np.testing.assert_allclose(head_scores(found, neutral), head_scores(louder[0], louder[1:]), atol=1e-3)


@pytest.mark.parametrize("fill", [0.0, -np.inf])
def test_blocks_that_are_all_alike_have_no_evidence(fill: float) -> None:
    same = np.zeros((4, 2, 6), np.float32)
    same[:, :, 2:] = fill if np.isfinite(fill) else 0.0
    same[:, :, 1] = fill
    assert landmark_scores(same, [same]).values == (0.0,) * 6


def test_one_block_alone() -> None:
    assert landmark_scores(noise(3, 1, n_blocks=1), [noise(2, 2, n_blocks=1)]).values == (0.0,)


@pytest.mark.parametrize(
    ("questions", "lead"),
    [([[1, 2, 3], [1, 2, 4]], 2), ([[1, 2], [1, 2, 3]], 1), ([[5], [6]], 0), ([[1, 2], [1, 2]], 1)],
)
def test_the_lead_of_questions(questions: list[list[int]], lead: int) -> None:
    assert shared_lead(questions) == lead


def test_fused_scores_keep_distances() -> None:
    words, landmarks = Scores("lexical", (0.0, 10.0, 5.0)), Scores("landmarks", (2.0, 0.0, 2.0))
    assert fuse([words, landmarks]).values == (0.5, 0.5, 0.75)
    assert fuse([words, landmarks]).selector == "lexical+landmarks"
    assert fuse([words, Scores("landmarks", (0.0,) * 3)]).values == (0.0, 0.5, 0.25)
    for wrong in ([], [words, Scores("x", (1.0,))]):
        with pytest.raises(ValueError, match="one document"):
            fuse(wrong)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8))
def test_fused_scores_lie_between_nothing_and_one(values: list[float]) -> None:
    got = fuse([Scores("a", tuple(values)), Scores("b", tuple(reversed(values)))]).values
    assert all(0.0 <= value <= 1.0 + 1e-9 for value in got)
