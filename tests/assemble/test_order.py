"""The order of passages before a question."""

from __future__ import annotations

from localctx.assemble import BEST_LAST_FROM, best_last


def test_of_many_passages_the_best_is_the_last() -> None:
    many = list(range(BEST_LAST_FROM))
    assert best_last(many, 2) == [*many[:2], *many[3:], 2]
    assert best_last(many, many[-1]) == many
    assert best_last(many[1:], 2) == many[1:]
