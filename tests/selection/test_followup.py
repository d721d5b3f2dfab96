"""Questions that lean on earlier ones, put alone; by words that stand in the earlier ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.selection.followup import Exchange, kept_turns, standalone
from localctx.selection.followup_unspaced import is_unspaced


def asked(*turns: tuple[str, str]) -> list[str]:
    """Each question as it stands alone, after those before it."""
    earlier: list[Exchange] = []
    found = []
    for question, answer in turns:
        found.append(standalone(question, earlier).text)
        earlier.append(Exchange(found[-1], answer))
    return found


@pytest.mark.parametrize(
    ("first", "second", "wanted", "unwanted"),
    [
        ("How long is the river Orle?", "What is carried on it?", "river Orle", "long"),
        ("How long is the river Orle?", "And where does it rise?", "river Orle", "long"),
        ("What was net revenue in 2019?", "And in 2020?", "net revenue", "2019"),
        ("What was net revenue in 2019?", "And operating costs?", "2019", "revenue"),
        ("How high is the rent of the mill at Denby?", "And of the mill at Ashford?", "rent", "Denby"),
        ("What is the first rule of the club?", "and the second one?", "rule club", "first"),
        ("What is the code of gate 7?", "And of gate 12?", "code", "7"),
        ("When was the mine of Quarz opened?", "By whom?", "mine Quarz opened", ""),
        ("Wie lang ist die Brücke von Falkenau?", "Wann wurde sie gebaut?", "Brücke Falkenau", "lang"),
        ("Wie lang ist die Brücke von Falkenau?", "Und die von Quarz?", "lang Brücke", "Falkenau"),
    ],
)
def test_what_is_left_out_comes_from_the_question_before(
    first: str, second: str, wanted: str, unwanted: str
) -> None:
    text = asked((first, ""), (second, ""))[1]
    assert text.startswith(second.rstrip("?"))
    assert all(word in text for word in wanted.split()), text
    assert not unwanted or unwanted not in text, text


@pytest.mark.parametrize(
    "question",
    [
        "When was the railway from Tannau to Quarz finished?",
        "Is there a bridge over the river Lom?",
        "What does this document say about timber prices?",
        "Which bridges cross the river that rises near Tannau?",
        "What did Anna Feld do with her silver mine?",
        "Gibt es eine Brücke in Tannau?",
    ],
)
def test_a_question_that_stands_alone_is_left_as_it_is(question: str) -> None:
    assert asked(("How long is the harbour wall of Orle?", "212 km"), (question, ""))[1] == question


def test_a_person_is_looked_for_in_the_answers() -> None:
    third = asked(("Who opened the mine of Quarz?", "Anna Feld opened it."), ("Was it flooded?", "No."),
                  ("When was she born?", ""))[2]  # fmt: skip
    assert "Anna Feld" in third


def test_the_topic_goes_on_over_several_turns() -> None:
    later = ("What is carried on it?", "And where does it rise?", "Who owns it?")
    found = asked(("How long is the river Orle?", ""), *((question, "") for question in later))
    assert all("Orle" in text for text in found)


def test_chinese_puts_the_subject_where_the_pronoun_stands() -> None:
    found = asked(
        ("图书馆什么时候建成？", ""), ("它有多少本书？", ""), ("博物馆呢？", ""), ("门票多少钱？", "")
    )
    assert found[1:3] == ["图书馆有多少本书？", "博物馆有多少本书？"]


@given(st.lists(st.text(max_size=60), min_size=1, max_size=5))
@settings(deadline=None)
def test_any_text_is_taken_and_kept(texts: list[str]) -> None:
    earlier: list[Exchange] = []
    for text in texts:
        found = standalone(text, earlier)
        if not found.carried and not is_unspaced(text):
            assert found.text == text
        earlier.append(Exchange(found.text, text))


def test_the_last_turns_are_kept_then_those_that_share_words() -> None:
    texts = ["the mine of Quarz", "the railway", "the weather", "the river"]
    assert kept_turns([10] * 4, texts, "who opened the mine?", 30) == [0, 2, 3]
    assert kept_turns([10] * 4, texts, "who opened the mine?", 40) == [0, 1, 2, 3]
    assert kept_turns([10, 10, 10, 99], texts, "who opened the mine?", 20) == [0, 2]
    assert kept_turns([10] * 4, texts, "x", 0) == []
