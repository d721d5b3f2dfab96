"""What stands between the passages of an answer from stored KV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from localctx.session.header_lines import SEPARATOR, groups_of
from localctx.session.reading import Passage

TOKENS = 10


def passage(number: int, heading: str, first_token: int, text: str = "words") -> Passage:
    return Passage(0, number, number + 1, text, TOKENS, "a.md", None, None, (heading,), first_token)


def said(
    *passages: Passage, unnamed: Sequence[Passage] = (), are_many: bool = False, are_widened: bool = False
) -> list[tuple[str, int]]:
    """Text before each group, of tokens that are its bytes, and the group's passages."""
    model = SimpleNamespace(tokenize=lambda text, first: list(text.encode()))
    cache: Any = SimpleNamespace(model=model, run=SimpleNamespace(readings=[None]))
    return [
        (bytes(group.header).decode(), len(group.passages))
        for group in groups_of(cache, passages, unnamed, are_many=are_many, are_widened=are_widened)
    ]


def test_each_section_is_named_once_in_a_row() -> None:
    found = said(
        passage(0, "One", 0),
        passage(1, "One", 50),
        passage(2, "Two", 100),
        passage(3, "Two", 100 + TOKENS),
        passage(4, "Two", 200, "\nwords"),
        passage(5, "One", 300),
    )
    assert found == [
        ("[One]\n", 1),
        (SEPARATOR, 1),
        (f"{SEPARATOR}[Two]\n", 2),
        ("", 1),
        (f"{SEPARATOR}[One]\n", 1),
    ]


def test_a_long_passage_goes_on_under_the_next_heading() -> None:
    passages = passage(0, "One", 0), passage(1, "Two", TOKENS), passage(2, "One", 50), passage(3, "One", 90)
    assert said(*passages) == [
        ("[One]\n", 1),
        (f"{SEPARATOR}[Two]\n", 1),
        (f"{SEPARATOR}[One]\n", 1),
        (SEPARATOR, 1),
    ]
    assert said(*passages, are_many=True, are_widened=True) == [
        ("[One]\n", 2),  # what follows stood under Two: One is said again
        (f"{SEPARATOR}[One]\n", 1),
        ("\n", 1),
    ]
    assert said(*passages, are_many=True)[-1] == ("\n", 1)


def test_some_passages_are_led_by_none() -> None:
    passages = [
        replace(passage(0, "One", 0), table_header="| Gate |"),
        passage(1, "Two", 50),
        passage(2, "Two", 50 + TOKENS),
        replace(passage(3, "Two", 100), table_header="| Gate |"),
    ]
    found = said(*passages, unnamed=passages[:3], are_many=True)
    assert found == [("", 1), ("\n", 2), (f"{SEPARATOR}[Two]\n| Gate |\n", 1)]
    goes_on = passage(4, "Three", 100 + TOKENS)  # begins with its heading
    assert said(*passages, goes_on, unnamed=[*passages[:3], goes_on], are_many=True)[-1][1] == 2
    assert [header for header, _ in said(*passages, are_many=True)] == [
        "[One]\n| Gate |\n",
        f"{SEPARATOR}[Two]\n",
        f"{SEPARATOR}| Gate |\n",
    ]


def test_of_many_passages_no_two_words_become_one() -> None:
    texts = ["brass lamp nu", "rden of gate", " keeps it. ", "Gate 7", "\t1 of it", "1,0\n", "00"]
    passages = [passage(number, "", 50 * number, text) for number, text in enumerate(texts)]
    unheaded = [replace(one, heading_path=()) for one in passages]
    for are_widened in (False, True):
        found = said(*unheaded, are_many=True, are_widened=are_widened)
        assert [header for header, _ in found] == ["", "\n", "", "", "", "\n", ""]
