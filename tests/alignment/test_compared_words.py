"""Marks that bear meaning are words, those that only set a text are none; no two words are taken for one."""

from __future__ import annotations

import pytest

from localctx.alignment import words
from localctx.alignment.clauses import equal_in_order
from localctx.alignment.words import Alphabet, words_of
from localctx.errors import LimitExceeded
from localctx.eval.compare_pairs import compare_texts


def kinds(a: str, b: str) -> list[str]:
    return [difference.kind for difference in compare_texts(a, b)[2].differences]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("-500 euros", "500 euros"),
        ("The balance is −500 euros today.", "The balance is 500 euros today."),
        ("The balance is –500 euros today.", "The balance is 500 euros today."),
        ("The balance is -€500 today.", "The balance is €500 today."),
        ("The balance is EUR -500 today.", "The balance is EUR 500 today."),
        ("The balance is -EUR 500 today.", "The balance is EUR 500 today."),
        ("The balance (-500) is due.", "The balance (500) is due."),
        ("最低温度为-5度。", "最低温度为5度。"),
        ("Between 5% and -10% of it.", "Between 5% and 10% of it."),
    ],
)
def test_a_minus_sign_makes_another_number(a: str, b: str) -> None:
    assert kinds(a, b) == ["number"]
    assert kinds(b, a) == ["number"]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("It is written in C# here.", "It is written in C here."),
        ("See item #5 of it.", "See item 5 of it."),
        ("The area is 5*3 metres.", "The area is 5 3 metres."),
        ("The area is 5 * 3 metres.", "The area is 5 3 metres."),
        ("It holds ~500 litres of it.", "It holds 500 litres of it."),
    ],
)
def test_marks_at_words_and_numbers_are_compared(a: str, b: str) -> None:
    assert kinds(a, b) == ["reworded"]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("The years 2020–2021 count.", "The years 2020 - 2021 count."),
        ("It is 5%–10% of it.", "It is 5% - 10% of it."),
        ("It is 5€-10€ of it.", "It is 5€ - 10€ of it."),
        ("The balance is −500 euros.", "The balance is -500 euros."),
        ("- 500 euros", "500 euros"),
        ("The well-known A-500 of it.", "The well known A 500 of it."),
        ("# Fees\n\n**Bold** and *slanted* ~~struck~~ `words`.", "Fees\n\nBold and slanted struck words."),
        ("* one item\n* another item", "• one item\n• another item"),
        ("Fee ........ 500", "Fee ................ 500"),
        ("Fee . . . . 500", "Fee ……… 500"),
    ],
)
def test_dashes_emphasis_and_leaders_are_no_difference(a: str, b: str) -> None:
    assert kinds(a, b) == []


def test_a_word_stands_where_its_sign_begins() -> None:
    found = words_of("EUR -500", 10)
    assert (found.texts, found.starts, found.ends) == (("eur", "-", "500"), (10, 14, 15), (13, 15, 18))


def test_words_beyond_the_last_character_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_LAST", 0xE105)
    alphabet, room = Alphabet(), words.n_letters()
    spelled = alphabet.spell(tuple(f"w{n}" for n in range(room)))
    assert len(set(spelled)) == room
    assert ord(spelled[-1]) == 0xE105
    assert alphabet.spell(("w0",)) == spelled[0]
    for spell in (alphabet.spell, alphabet.masked):
        with pytest.raises(LimitExceeded, match="different words"):
            spell(("new",))


def test_more_items_than_characters_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_LAST", 0xE100 + 20)
    last = words.n_letters() + 10
    items = [str(n) for n in range(last + 1)]
    found = equal_in_order(items, [items[last], items[last - 4]])
    assert sorted(found) == [(last - 4, 1), (last, 0)]
