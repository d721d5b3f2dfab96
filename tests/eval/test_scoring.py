"""Answers beside what a right one holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.eval.documents import Question
from localctx.eval.scoring import Score, mean, normalised, score


def question(*gold: str, wrong: tuple[str, ...] = ()) -> Question:
    return Question("multivalue", "en", "Which numbers?", gold, (), wrong)


@pytest.mark.parametrize(
    ("gold", "wrong", "answer", "recall", "is_match"),
    [
        (("4821",), (), "It is 4821.", 1.0, True),
        (("4821",), (), "It is 4,821 crowns.", 1.0, True),
        (("4821",), (), "It is 4 821 crowns.", 1.0, True),
        (("4821",), (), "It is ４８２１.", 1.0, True),
        (("4821",), (), "It is 48219 or 14821.", 0.0, False),
        (("4821",), ("9999",), "4821 or 9999", 1.0, False),
        (("12345", "67890"), (), "12345 and others", 0.5, False),
        (("12345", "67890"), (), "67890, 12345", 1.0, True),
        (("oven",), (), "OVEN", 1.0, True),
        (("oven",), (), "a woven thing", 0.0, False),
        (("Hollinleigh",), (), "in **hollinleigh**.", 1.0, True),
        (("松岗渡",), (), "他出生在松岗渡。", 1.0, True),
        (("29",), (), "Call 1,029 or 29.", 1.0, True),
        (("29",), (), "1,029", 0.0, False),
    ],
)
def test_recall_and_match(
    gold: tuple[str, ...], wrong: tuple[str, ...], answer: str, recall: float, is_match: bool
) -> None:
    assert score(question(*gold, wrong=wrong), answer, "supported") == Score(recall, is_match, False)


@pytest.mark.parametrize(
    ("answer", "support", "is_declined"),
    [
        ("The document does not answer this question.", "none", True),
        ("The text does not mention it.", "partial", True),
        ("It is 4821.", "none", True),
        ("It is 4821.", "partial", False),
        ("文中没有提到。", "partial", True),
        ("", "partial", True),
    ],
)
def test_declining(answer: str, support: str, is_declined: bool) -> None:
    found = score(question(), answer, support)  # type: ignore[arg-type]  # one of the three
    assert found == Score(None, None, is_declined)
    assert found.is_false is not is_declined
    assert score(question("1"), answer, support).is_false is None  # type: ignore[arg-type]  # likewise


@settings(deadline=None)
@given(st.lists(st.integers(10_000, 99_999), min_size=1, max_size=6, unique=True), st.integers(0, 6))
def test_recall_is_the_share_that_is_said(numbers: list[int], n: int) -> None:
    gold = tuple(map(str, numbers))
    said = gold[:n]
    found = score(question(*gold), f"They are {', '.join(said)}.", "supported")
    assert found.recall == len(said) / len(gold)
    assert found.is_match is (len(said) == len(gold))


def test_text_is_normalised() -> None:
    assert normalised(" A\u00a0B\n1,234,567  ") == "a b 1234567"
    assert normalised("1, 234") == "1, 234"


def test_a_mean_of_what_is_there() -> None:
    assert mean([1.0, None, 0.0, True]) == pytest.approx(2 / 3)
    assert mean([None]) is None
