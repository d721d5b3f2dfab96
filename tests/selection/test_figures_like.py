"""What is looked for in a long text by its digits is what reading all of its figures finds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.index.terms import fold
from localctx.selection.numbers import Number, figures, figures_like, numbers

PARTS = [
    *"0123456789",
    " ",
    ",",
    ".",
    "'",
    "-",
    "\n",
    "\u202f",
    " k",
    " million",
    "万",
    " x",
    "v ",
    "三",
    "  ",
]


def values(numbers: list[Number]) -> set[str]:
    return {value for number in numbers for value in (number.key, *number.parts)}


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(PARTS), max_size=80).map("".join))
def test_every_figure_is_found_by_its_value(text: str) -> None:
    every = values(list(figures(text)))
    for key in [*every, "12", "5"]:
        found = values(list(figures_like({key}, text)))
        assert (key in found) == (key in every)
        assert found <= every


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("3000000", "some 3 million"),
        ("300", "12 300"),
        ("1250000", "1.250.000"),
        ("0.05", "0,05"),
        ("12", "１２"),
    ],
)
def test_a_value_is_found_in_another_spelling(key: str, text: str) -> None:
    assert key in values(list(figures_like({key}, f"x 9 {text} y")))


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["A", "e", "\u0301", "ß", "Σ", "’", "가", " ", "ﬁ", "É"]), min_size=5).map(
        "".join
    )
)
def test_a_long_text_folds_as_its_pieces_do(text: str) -> None:
    filler = "Filler " * 200
    assert fold(f"{filler}{text}\n{filler}") == fold(filler) + fold(f"{text}\n") + fold(filler)


@given(st.text("0123456789 .,'\u2019\u202f\u00a0-%xk", max_size=24))
@settings(deadline=None, max_examples=400)
def test_no_figure_ends_a_question(text: str) -> None:
    for number in numbers(text):
        assert text[number.start : number.end]
