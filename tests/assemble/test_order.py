"""The order of passages before a question."""

from __future__ import annotations

from localctx.assemble import BEST_LAST_FROM, best_last

MANY = list(range(BEST_LAST_FROM))
ALONE = [(passage,) for passage in MANY]


def test_of_many_passages_the_best_is_the_last() -> None:
    assert best_last(ALONE, 2) == [*MANY[:2], *MANY[3:], 2]
    assert best_last(ALONE, MANY[-1]) == MANY
    assert best_last(ALONE[1:], 2) == MANY[1:]


def test_what_follows_each_other_moves_together() -> None:
    stretches = [(0,), (1, 2, 3), tuple(MANY[4:])]
    assert best_last(stretches, 1) == [0, *MANY[4:], 1, 2, 3]
    assert best_last([(1, 2, 3), tuple(MANY[4:])], 0) == MANY[1:]
    assert best_last([tuple(MANY)], 0) == MANY


def test_what_comes_first_stays_in_order_before_the_others() -> None:
    assert best_last(ALONE, 2, {1, 4}) == [1, 4, 0, 3, *MANY[5:], 2]
    assert best_last(ALONE[:4], 2, {1, 3}) == [1, 3, 0, 2]  # few: the best is not moved
