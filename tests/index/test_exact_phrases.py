"""What a question means to the letter, and which blocks hold it."""

from __future__ import annotations

import pytest

from localctx.index import LexicalIndex, exact_phrases
from localctx.values import Block


@pytest.mark.parametrize(
    ("question", "phrases"),
    [
        ("Which variables have the value 16551?", ("16551",)),
        ("What do Yolanda Eversley and Imogen Oakes hold?", ("Yolanda Eversley", "Imogen Oakes")),
        ("Yolanda Eversley lives where?", ()),  # a first word is capitalised anyway
        ("Who Wrote The Long History Of Small Green Things?", ()),
        ("What does E1234 in foo_bar() mean?", ("E1234", "foo_bar")),
        ("Who said “so be it”?", ("so be it",)),
        ("What cost 1,234,567 or 3.1415 in 98?", ("1,234,567",)),
        ("变量16551是什么？", ("16551",)),
        ("", ()),
        ("?" * 1000, ()),
    ],
)
def test_what_is_meant_to_the_letter(question: str, phrases: tuple[str, ...]) -> None:
    assert set(phrases) <= set(exact_phrases(question))
    names = {phrase for phrase in exact_phrases(question) if " " in phrase}
    assert names == {phrase for phrase in phrases if " " in phrase}


def test_blocks_that_hold_a_phrase_unless_many_do() -> None:
    texts = [
        "Yolanda Eversley",
        "Eversley, then Yolanda",
        "it cost 1,234,567",
        "it cost",
        "变量16551",
        "it is",
    ]
    with LexicalIndex.build([Block(i, 0, 1, text, (0,), "end") for i, text in enumerate(texts)]) as index:
        assert index.holding("yolanda eversley", 2) == (0,)
        assert index.holding("1234567", 2) == (2,)
        assert index.holding("16551", 2) == (4,)
        assert index.holding("cost", 2) == (2, 3)
        assert index.holding("cost", 1) == ()
        assert index.holding('"; DROP TABLE', 2) == ()
        assert index.holding("", 2) == ()
