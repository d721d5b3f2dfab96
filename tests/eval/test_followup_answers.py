"""Scripts put to a conversation: what counts as a right answer, and the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from localctx.errors import UsageError
from localctx.eval.followup_answers import Asked, Wanted, holds, main, measure, table


def test_a_value_is_said_only_as_a_whole() -> None:
    assert holds("It was built in 1871.", "1871")
    assert not holds("It cost 18710 crowns.", "1871")
    assert holds("By Anna Feld, they say.", "Anna Feld")
    assert not holds("By Annabel.", "Anna")
    assert holds("建于1871年。", "1871", joiner="")
    assert not holds("造价18710克朗。", "1871", joiner="")


def test_each_turn_is_asked_in_three_ways(tiny_model_path: Path) -> None:
    wanted = Wanted(
        n_scripts=1,
        n_things=2,
        n_filler=0,
        model=str(tiny_model_path),
        ctx=2048,
        strategy="exact",
        max_tokens=4,
    )
    asked = list(measure(wanted))
    assert asked[0].form == "first"
    assert len(asked) == 6
    assert all(list(one.right) == ["chat", "in full", "alone"] for one in asked)
    assert all(min(one.n_evaluated.values()) > 0 for one in asked)


def test_the_table_counts_later_turns_apart() -> None:
    asked = [
        Asked("en", "first", {"chat": True, "in full": True, "alone": True}, {"chat": 100}),
        Asked("en", "pronoun", {"chat": False, "in full": True, "alone": True}, {"chat": 40}),
        Asked("en", "full", {"chat": True, "in full": True, "alone": False}, {"chat": 20}),
    ]
    lines = [line.split() for line in table(asked)]
    assert lines[1] == ["en", "first", "1", "1.000", "1.000", "1.000", "100"]
    assert lines[3] == ["en", "later", "2", "0.500", "1.000", "0.500", "30"]


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(UsageError, match="'fr'"):
        main(["--languages", "fr"])
