"""Which sentences stay: anchors, scores, coverage, what says next to nothing; never over the budget."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from localctx.errors import UsageError
from localctx.index.terms import content_words
from localctx.selection.coverage import TERM_BUCKETS, CoveredTerms, cover, term_weights
from localctx.selection.truncation import Shares, TextUnits, choose_units, ranking_of
from localctx.selection.truncation_gate import LOW_INFORMATION, information
from localctx.selection.truncation_scores import QuestionWords, fused, with_neighbours

NO_ANCHORS = Shares(0, 0)


def units_of(n_tokens: list[int], keys: list[int] | None = None, poor: tuple[int, ...] = ()) -> TextUnits:
    n = len(n_tokens)
    says = np.array([row not in poor for row in range(n)], np.bool_)
    return TextUnits(
        starts=np.arange(n, dtype=np.int64),
        ends=np.arange(1, n + 1, dtype=np.int64),
        n_tokens=np.array(n_tokens, np.int32),
        keys=np.array(keys or range(n), np.uint64),
        breaks=np.zeros(n, np.bool_),
        information=says.astype(np.float32),
        says_something=says,
    )


def order(*rows: int) -> NDArray[np.int64]:
    return np.array(rows, np.int64)


def test_the_best_that_fit_stay_in_their_order() -> None:
    kept = choose_units(units_of([5, 5, 5, 5]), [order(3, 0, 1, 2)], 10, NO_ANCHORS)
    assert kept.tolist() == [0, 3]


def test_a_sentence_too_large_is_passed_over_for_the_next() -> None:
    assert choose_units(units_of([5, 90, 4]), [order(1, 0, 2)], 10, NO_ANCHORS).tolist() == [0, 2]


def test_head_and_tail_come_first_and_skip_what_says_nothing() -> None:
    units = units_of([2] * 10, poor=(0, 9))
    assert choose_units(units, [order(4)], 8, Shares(0.25, 0.5)).tolist() == [1, 4, 7, 8]


def test_copies_stay_once() -> None:
    units = units_of([5, 5, 5, 5], keys=[7, 7, 7, 8])
    assert choose_units(units, [order(1, 0, 2, 3)], 20, NO_ANCHORS).tolist() == [1, 3]


def test_a_later_ranking_fills_what_is_left() -> None:
    units = units_of([5, 5, 5])
    assert choose_units(units, [order(2), order(1, 0)], 10, NO_ANCHORS).tolist() == [1, 2]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 200), st.floats(0, 0.4), st.floats(0, 0.4))
def test_the_budget_is_never_exceeded(n_tokens: list[int], budget: int, head: float, tail: float) -> None:
    units = units_of(n_tokens)
    kept = choose_units(units, [np.arange(len(units), dtype=np.int64)[::-1]], budget, Shares(head, tail))
    assert units.n_tokens[kept].sum() <= budget
    assert kept.tolist() == sorted(set(kept.tolist()))
    left = set(range(len(units))) - set(kept.tolist())
    assert all(units.n_tokens[row] > budget - units.n_tokens[kept].sum() for row in left)


@pytest.mark.parametrize(("head", "tail"), [(-0.1, 0), (0, 1.1), (0.5, 0.5), (float("nan"), 0)])
def test_anchors_that_leave_no_room_are_refused(head: float, tail: float) -> None:
    with pytest.raises(UsageError, match="out of range"):
        Shares(head, tail)


# --- scores -----------------------------------------------------------------------------------------

SENTENCES = [
    "The harbour was rebuilt after the storm.",
    "Its lighthouse burns olive oil.",
    "Ships wait outside until morning.",
    "The error code E-4711 means that the valve is shut.",
    "Nobody has counted the gulls.",
]


def lexical(question: str) -> NDArray[np.float32]:
    asked = QuestionWords(question)
    for sentence in SENTENCES:
        asked.add(sentence, content_words(sentence))
    return asked.scores()


@pytest.mark.parametrize(
    ("question", "best"),
    [("What do the lighthouses burn?", 1), ("E-4711?", 3), ("which valve is shut", 3), ("gull counting", 4)],
)
def test_the_sentence_with_the_words_scores_best(question: str, best: int) -> None:
    scores = lexical(question)
    assert scores.argmax() == best
    assert 0 < scores[best] <= 1


def test_a_question_without_any_word_of_the_text_scores_nothing() -> None:
    assert not lexical("Quanto costa?").any()
    assert not lexical("?!").any()
    assert len(ranking_of(lexical("?!"))) == 0


def test_chinese_questions_are_compared_by_pairs() -> None:
    asked = QuestionWords("灯塔烧什么油？")
    for sentence in ("船在外面等。", "灯塔烧橄榄油。"):
        asked.add(sentence, content_words(sentence))
    assert asked.scores().argmax() == 1


def test_meaning_finds_what_words_do_not_and_words_decide_among_equals() -> None:
    words = np.array([0, 0, 0, 0.9], np.float32)
    assert fused(words, np.array([0.1, 0.8, 0.1, 0.1], np.float32)).argmax() == 1
    assert fused(words, np.array([0.5, 0.5, 0.5, 0.5], np.float32)).argmax() == 3
    assert fused(words, None).tolist() == words.tolist()


def test_neighbours_of_a_good_sentence_come_before_distant_ones() -> None:
    scores = with_neighbours(np.array([0, 0, 1, 0, 0, 0], np.float32))
    assert ranking_of(scores).tolist() == [2, 1, 3]


# --- coverage ---------------------------------------------------------------------------------------


def weights_of(terms: list[list[int]]) -> NDArray[np.float32]:
    counts = np.zeros(TERM_BUCKETS, np.int32)
    for some in terms:
        counts[some] += 1
    return term_weights(counts, len(terms))


def test_what_repeats_is_taken_after_what_is_new() -> None:
    terms = [[1, 2, 3], [1, 2, 3], [4, 5], [6]]
    covered = CoveredTerms(weights_of(terms))
    chosen = cover(terms, np.full(4, 5, np.int32), np.ones(4, np.float32), covered, 15)
    assert chosen[:3] == [0, 2, 3]
    assert covered.share() == pytest.approx(1.0)


def test_what_an_earlier_stretch_said_counts_in_a_later_one() -> None:
    terms = [[1, 2, 3], [1, 2], [4, 5]]
    covered = CoveredTerms(weights_of(terms))
    cost, quality = np.full(1, 5, np.int32), np.ones(1, np.float32)
    assert cover(terms[:1], cost, quality, covered, 5) == [0]
    assert cover(terms[1:2], cost, quality, covered, 5) == []
    assert cover(terms[2:], cost, quality, covered, 5) == [0]


def test_words_of_every_sentence_weigh_less_than_those_of_some() -> None:
    weights = weights_of([[1, 2], [1, 2], [1, 3], [1]])
    assert weights[2] > weights[1] / np.sqrt(2)
    assert weights[9] == 0


# --- the gate ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("The lighthouse at Skagen burns 40 litres of olive oil each night.", True),
        ("Total revenue: $4,120 in 2021", True),
        ("see foo_bar.baz and utf8_decode", True),
        ("灯塔每晚要烧四十升橄榄油。", True),
        ("17", False),
        ("ii", False),
        ("- - - - -", False),
        ("Contents .............. 12", False),
        ("", False),
        ("and so it was", False),
    ],
)
def test_what_says_next_to_nothing(text: str, says: bool) -> None:
    assert (information(text, content_words(text)) >= LOW_INFORMATION) is says
