"""What an exact phrase singles out, and where the codes beside it lead."""

from __future__ import annotations

import pytest

from localctx.selection.leads import codes_beside, led, singles_out
from localctx.values import Scores


@pytest.mark.parametrize(
    ("text", "phrase", "codes"),
    [
        ("It rains. Variable PMRX is set to 89411. Variable NJQG is set to QQKT.", "89411", ("PMRX",)),
        ("变量PMRX设为89411。变量NJQG设为变量QQKT。", "89411", ("PMRX",)),
        ("MAX_SIZE = E1234", "e1234", ("MAX_SIZE",)),
        ("The price of 4711 was paid in Oslo in May.", "4711", ()),
        ("NASA paid 4711 " + "and so on " * 20 + "to ESA.", "4711", ()),
        ("PMRX PMRX 4711.", "4711", ("PMRX",)),
        ("", "4711", ()),
    ],
)
def test_codes_stand_in_the_same_short_sentence(text: str, phrase: str, codes: tuple[str, ...]) -> None:
    assert codes_beside(text, phrase) == codes


@pytest.mark.parametrize(
    ("shares", "n_words", "steps", "is_told"),
    [
        ((0.0, 0.12, 0.09), 8, {}, False),  # a word of eight, by chance
        ((0.0, 0.2, 0.0), 8, {}, True),
        ((0.0, 0.31), 3, {}, True),  # of three words one
        ((0.0, 0.2), 3, {}, False),
        ((0.9,), 1, {}, True),
        ((0.0, 0.0), 8, {1: 0}, True),  # a number, a name
        ((0.0, 0.0), 0, {}, False),
        ((), 0, {}, False),
    ],
)
def test_words_single_out_what_holds_more_than_one_of_them(
    shares: tuple[float, ...], n_words: int, steps: dict[int, int], is_told: bool
) -> None:
    assert singles_out(shares, n_words, steps) is is_told


def test_what_is_singled_out_comes_first_and_what_it_leads_to_next() -> None:
    scores = Scores("lexical", (0.0, 9.0, 8.0, 7.0, 0.0))
    assert led(scores, {}) == scores
    values = led(scores, {3: 0, 0: 0, 4: 1}).values
    assert sorted(range(5), key=lambda number: -values[number]) == [3, 0, 1, 4, 2]
    assert led(Scores("x", (0.0, 0.0)), {1: 0}).values[1] > 0  # evidence where there was none
    assert led(Scores("x", ()), {}).values == ()
