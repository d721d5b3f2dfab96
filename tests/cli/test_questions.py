"""Several questions to `localctx ask`: answers in the order they were asked, errors beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
TEXT = "# Harbour\n\nThe harbour of Tannau was built in 1871 by Anna Feld. It has four gates.\n" * 3
ASKED = ("Who built it?", "When?", "How many gates?")


@pytest.fixture
def words(tmp_path: Path, tiny_model_path: Path) -> list[str]:
    path = tmp_path / "harbour.md"
    path.write_text(TEXT)
    return ["ask", str(path), "-m", str(tiny_model_path), "-n", "4", "--store", str(tmp_path / "store")]


def with_questions(words: list[str], *questions: str) -> list[str]:
    return [*words, *(word for question in questions for word in ("-q", question))]


def test_answers_are_those_of_single_questions_in_order(localctx: Run, words: list[str]) -> None:
    single = [localctx(*with_questions(words, question), "--json").json for question in ASKED]
    result = localctx(*with_questions(words, *ASKED), "-np", "2", "--json")
    assert result.code == 0, result.err
    assert result.json["schema"] == "localctx.answers/1"
    fields = ("schema", "question", "answer", "support", "strategy", "citations", "coverage")
    shown = [{field: one[field] for field in fields} for one in result.json["answers"]]
    assert shown == [{field: one[field] for field in fields} for one in single]


def test_text_names_each_question(localctx: Run, words: list[str]) -> None:
    result = localctx(*with_questions(words, *ASKED), "--parallel", "3")
    assert result.code == 0
    lines = result.out.splitlines()
    assert [line for line in lines if line.startswith("Q: ")] == [f"Q: {question}" for question in ASKED]
    assert lines[0] == f"Q: {ASKED[0]}"
    assert result.err.count("tokens read") == len(ASKED)
    assert result.err.count("about") == 1  # the document is introduced once


def test_a_question_that_fails_is_told_and_the_code_says_partly(localctx: Run, words: list[str]) -> None:
    too_long = "why " * 3000
    result = localctx(*with_questions(words, ASKED[0], too_long, ASKED[1]), "--json")
    assert result.code == 4
    assert "1 of 3 questions could not be answered" in result.err
    first, failed, last = result.json["answers"]
    assert (first["question"], last["question"]) == ASKED[:2]
    assert failed["schema"] == "localctx.error/1"
    assert failed["error"]["type"] == "UsageError"
    assert failed["question"] == too_long.strip()
    none = localctx(*with_questions(words, too_long, too_long))
    assert (none.code, none.out.count("Q: ")) == (2, 2)
    assert json.dumps(failed["error"]["message"])[1:20] in none.err


@pytest.mark.parametrize("number", ["0", "101", "x"])
def test_a_number_of_places_that_cannot_be_is_refused(localctx: Run, words: list[str], number: str) -> None:
    result = localctx(*with_questions(words, *ASKED), "-np", number)
    assert (result.code, result.out) == (2, "")


def test_an_empty_one_is_refused_before_anything_is_opened(localctx: Run) -> None:
    result = localctx("ask", "nowhere.txt", "-q", "?", "-q", " ")
    assert (result.code, result.out) == (2, "")
    assert "question is empty" in result.err
