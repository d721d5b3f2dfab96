"""The arithmetic of dense selection: what stands out, words beside vectors, a second look, variety."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.selection.dense import (
    dense_scores,
    diverse,
    hybrid,
    max_sim,
    max_sim_weight,
    reranked,
    with_max_sims,
)
from localctx.values import Scores

NAN = float("nan")


def likeness(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_blocks_that_stand_out_score_by_deviations() -> None:
    values = dense_scores(likeness(0.1, 0.1, 0.1, 0.7)).values
    assert values[:3] == (0.0, 0.0, 0.0)
    assert values[3] == pytest.approx(3**0.5, rel=1e-4)


def test_a_block_without_a_vector_has_no_evidence_and_moves_no_mean() -> None:
    assert dense_scores(likeness(0.1, NAN, 0.5, NAN)).values[1::2] == (0.0, 0.0)
    with_gaps = dense_scores(likeness(0.1, NAN, 0.5, 0.2, NAN)).values
    assert [with_gaps[n] for n in (0, 2, 3)] == list(dense_scores(likeness(0.1, 0.5, 0.2)).values)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ((), ()),
        ((NAN,), (0.0,)),
        ((0.5,), (0.5,)),
        ((-0.2,), (0.0,)),
        ((0.3, 0.3, 0.3), (0.0, 0.0, 0.0)),
        ((0.3, 0.30001, 0.29999), (0.0, 0.0, 0.0)),
        ((NAN, NAN), (0.0, 0.0)),
    ],
)
def test_degenerate_likeness(values: tuple[float, ...], wanted: tuple[float, ...]) -> None:
    assert dense_scores(likeness(*values)).values == pytest.approx(wanted)


def test_a_block_with_all_rare_words_beats_the_likest_one() -> None:
    words, vectors = Scores("lexical", (9.0, 3.0, 0.0)), Scores("dense", (0.5, 0.2, 4.0))
    both = hybrid(words, (1.0, 0.4, 0.0), vectors)
    assert both.selector == "lexical+dense"
    assert both.values[0] > both.values[2] > both.values[1]


def test_a_block_with_some_words_does_not() -> None:
    words, vectors = Scores("lexical", (9.0, 8.0, 0.0)), Scores("dense", (0.5, 0.2, 4.0))
    assert (
        hybrid(words, (0.3, 0.2, 0.0), vectors).values.index(
            max(hybrid(words, (0.3, 0.2, 0.0), vectors).values)
        )
        == 2
    )


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 1), st.floats(0, 9)), max_size=6))
def test_hybrid_scores_lie_between_nothing_and_one(rows: list[tuple[float, float, float]]) -> None:
    words, shares, vectors = (tuple(column) for column in zip(*rows, strict=True)) if rows else ((), (), ())
    for value in hybrid(Scores("lexical", words), shares, Scores("dense", vectors)).values:
        assert 0 <= value <= 1 + 1e-9


def test_opinions_of_different_documents_are_refused() -> None:
    with pytest.raises(ValueError, match="opinions of 1, 1, 2 blocks"):
        hybrid(Scores("lexical", (1.0,)), (1.0,), Scores("dense", (1.0, 2.0)))


def test_max_sim_is_the_mean_of_the_best() -> None:
    question = np.eye(3, dtype=np.float32)[:2]
    block = np.array([[1, 0, 0], [0, 0.6, 0.8], [0, 0, 1]], np.float32)
    assert max_sim(question, block) == pytest.approx((1 + 0.6) / 2)
    assert max_sim(question[:0], block) == 0.0
    assert max_sim(question, block[:0]) == 0.0


def test_the_second_look_orders_the_best_and_leaves_the_rest_behind() -> None:
    first = Scores("lexical", (4.0, 3.9, 3.8, 1.0, 0.0))
    both = reranked(first, {0: 0.2, 1: 0.9, 2: 0.3})
    assert both.selector == "lexical+maxsim"
    assert both.values[1] > both.values[0] > both.values[3] > both.values[4] == 0.0
    assert both.values[2] > both.values[3]
    assert reranked(first, {}) is first


def test_a_block_that_leads_by_the_words_asked_for_is_not_overruled() -> None:
    first = Scores("lexical+dense", (0.9, 0.8, 0.1))
    sims = {0: 0.4, 1: 0.9, 2: 0.2}
    assert max_sim_weight((1.0, 0.4, 0.4)) == 0.0
    assert max_sim_weight((0.9, 0.9, 0.1)) == max_sim_weight((0.0, 0.0)) == max_sim_weight((1.0,)) == 0.6
    assert 0 < max_sim_weight((0.6, 0.4)) < 0.6
    sure, vague = (reranked(first, sims, weight=max_sim_weight(s)) for s in ((1.0, 0.4), (0.3, 0.3)))
    assert sure.values[0] > sure.values[1]
    assert vague.values[1] > vague.values[0]


def test_a_second_look_that_sees_no_difference_keeps_the_order() -> None:
    both = reranked(Scores("dense", (1.0, 3.0, 2.0)), {0: 0.5, 1: 0.5, 2: 0.5})
    assert both.values[1] > both.values[2] > both.values[0] > 0


def test_variety_puts_a_copy_behind() -> None:
    rows = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    scores = Scores("dense", (1.0, 0.99, 0.8))
    assert diverse(scores, [0, 1, 2], rows, 0.0) == [0, 1, 2]
    assert diverse(scores, [0, 1, 2], rows, 0.3) == [0, 2, 1]
    assert diverse(Scores("dense", (0.0, 0.0)), [0, 1], rows, 0.3) == [0, 1]


def test_words_decide_where_a_few_blocks_hold_more_of_the_question_than_all_others() -> None:
    shares = [0.1] * 20
    sims = likeness(*np.linspace(0.3, 0.7, 20))
    words = Scores("lexical", (1.0,) * 20)
    by_meaning = with_max_sims(words, shares, sims).values
    assert by_meaning.index(max(by_meaning)) == 19
    for few in ([2], [2, 3, 4, 5]):
        led = with_max_sims(words, [0.9 if n in few else 0.3 for n in range(20)], sims)
        assert {n for n in range(20) if led.values[n] > 0.6} == set(few)
        assert led.selector == "lexical+dense+maxsim"
    crowd = with_max_sims(words, [0.9 if n < 12 else 0.3 for n in range(20)], sims).values
    assert crowd.index(max(crowd)) == 19  # where twelve hold it alike, words tell nothing apart


def test_blocks_whose_tokens_are_unknown_are_ranked_by_their_words() -> None:
    sims = likeness(0.5, 0.4, *[NAN] * 10)
    values = with_max_sims(
        Scores("lexical", (0.0, 0.0, 2.0, *[0.0] * 9)), [0.0, 0.0, 1.0, *[0.0] * 9], sims
    ).values
    assert values[2] == max(values)
    assert values[3] == 0.0
    assert with_max_sims(Scores("lexical", ()), (), likeness()).values == ()
