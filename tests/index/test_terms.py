"""Text → comparable words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.index.query import exact_terms, parse_query, quoted_phrases
from localctx.index.terms import clean, content_words, fold, pair_runs, stem, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Lincoln's O'Brien don't", ["lincoln", "s", "o", "brien", "don", "t"]),
        ("ÉTÉ Straße ﬁne １２", ["ete", "strasse", "fine", "12"]),
        ("恐龙蛋 egg", ["恐龙", "龙蛋", "egg"]),
        ("龙", ["龙"]),
        ("第3章", ["第", "3", "章"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("who died in the war", ["died", "war"]),
        ("wer starb in dem Krieg und war die Stadt groß", ["starb", "krieg", "stadt", "gross"]),
        ("quel est le son de la cloche", ["cloche"]),
    ],
)
def test_stop_words_follow_the_language_of_the_text(text: str, expected: list[str]) -> None:
    assert content_words(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("settlers", "settler"),
        ("cities", "city"),
        ("dredging", "dredged"),
        ("stopped", "stop"),
        ("quickly", "quick"),
    ],
)
def test_stems_agree(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_stems_do_not_merge_short_words() -> None:
    assert len({stem(word) for word in ["sing", "king", "bus", "this", "less", "red"]}) == 6


def test_pairs_keep_the_last_character() -> None:
    assert pair_runs("恐龙蛋").split() == ["恐龙", "龙蛋", "蛋"]
    assert pair_runs("plain ascii") == "plain ascii"


def test_clean_removes_what_sqlite_refuses() -> None:
    assert clean("a\x00b\ud800c?") == "a b c?"


def test_identifiers_and_quotes() -> None:
    question = 'Is QX-417, foo_bar or getValue in "the main part" of a.txt at 1999? „so nicht“ 「核心」'
    assert {"QX-417", "foo_bar", "getValue", "a.txt"} <= set(exact_terms(question))
    assert "1999" not in exact_terms(question)
    assert quoted_phrases(question) == ("the main part", "so nicht", "核心")


def test_terms_are_quoted_for_the_index() -> None:
    for term in parse_query('a "b c" NEAR(x) "" AND*').focus:
        assert term.expression.count('"') == 2


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=120))
def test_folding_is_idempotent_and_words_are_folded(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert all(word and not word.isspace() for word in words(text))
