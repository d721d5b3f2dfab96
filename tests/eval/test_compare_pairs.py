"""Generated pairs of contracts: the edits are where they are said to be, and `compare` finds them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localctx.eval.compare_pairs import Counts, Measured, compare_texts, judge, measure
from localctx.eval.contracts import LANGUAGES, pair_of


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_edit_is_where_it_is_said_to_be(language: str) -> None:
    pair = pair_of(3, language, 12, n_copies=2)
    assert len(pair.edits) == 12
    for edit in pair.edits:
        texts = [
            None if span is None else text[slice(*span)]
            for text, span in ((pair.a, edit.a), (pair.b, edit.b))
        ]
        assert (edit.kind == "added") == (texts[0] is None)
        assert (edit.kind == "removed") == (texts[1] is None)
        if edit.kind in ("number", "date", "party", "reworded"):
            assert texts[0] != texts[1]
        assert all(text is None or text.strip() for text in texts)


def test_a_seed_makes_one_pair() -> None:
    assert pair_of(1, "en", 8) == pair_of(1, "en", 8)
    assert pair_of(1, "en", 8) != pair_of(2, "en", 8)


@pytest.mark.parametrize("language", LANGUAGES)
def test_without_edits_only_the_form_differs(language: str) -> None:
    pair = pair_of(4, language, 0, n_copies=2)
    assert compare_texts(pair.a, pair.b, language)[2].differences == ()


def test_edits_are_found_and_little_else_is_reported() -> None:
    counts = measure(120, seed=11).total.to_json()
    assert counts["edits"] == 120
    assert counts["missed_share"] <= 0.019
    assert counts["false_share"] <= 0.03
    assert counts["moved_recognised_share"] >= 0.9
    assert counts["right_kind_share"] >= 0.95


def test_what_is_not_found_is_missed_and_what_nobody_made_is_false() -> None:
    pair, other = pair_of(2, "en", 12), pair_of(9, "en", 12)
    counts = Counts()
    judge(Measured("judge", 2), counts, pair, compare_texts(pair.a, pair.a)[2])
    assert (counts.edits, counts.found, counts.reported) == (12, 0, 0)
    wrong = Measured("judge", 2)
    judge(wrong, counts, replace(pair, edits=()), compare_texts(pair.a, other.b)[2])
    assert counts.false == counts.reported > 12
    assert len(wrong.wrong) == counts.false
