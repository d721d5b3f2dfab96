"""`localctx chat` without a terminal: a question a line, answers on standard output, the rest elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
BOOK = (
    "# Rivers\n\nThe river Orle rises near Tannau and is 212 kilometres long.\n\n"
    "# Mines\n\nThe mine was opened in 1742.\n"
)


@pytest.fixture
def chat(localctx: Run, tmp_path: Path, tiny_model_path: Path) -> Run:
    """The chat on a short book with the tiny model; lines are piped in."""
    (tmp_path / "book.md").write_text(BOOK, "utf-8")

    def call(lines: str | bytes, *words: str, files: tuple[str, ...] = ("book.md",)) -> Any:
        data = lines.encode() if isinstance(lines, str) else lines
        given = [str(tmp_path / name) for name in files]
        model = ["--model", str(tiny_model_path), "--store", str(tmp_path / "store"), "--max-tokens", "8"]
        return localctx("chat", *given, *model, *words, stdin=data)

    return call


def test_each_line_is_answered_plainly(chat: Run) -> None:
    result = chat("How long is the river Orle?\n\nWhen was the mine opened?\n", "--json")
    answers = [json.loads(line) for line in result.out.splitlines()]
    assert result.code == 0
    assert [answer["question"] for answer in answers] == [
        "How long is the river Orle?",
        "When was the mine opened?",
    ]
    plain = chat("How long is the river Orle?\n")
    assert plain.code == 0
    assert "\x1b" not in plain.out + plain.err
    assert "\r" not in plain.out + plain.err
    assert "> " not in plain.out


def test_each_question_stands_above_its_answer(chat: Run) -> None:
    lines = "How long is the river Orle?\n/docs\n//when was the mine opened?\n"
    told = chat(lines).out
    first, second = (
        told.index("## How long is the river Orle?\n\n"),
        told.index("## /when was the mine opened?"),
    )
    assert 0 == first < told.index("book.md (markdown") < second
    for option in ("--json", "--quiet"):
        assert "##" not in chat(lines, option).out


def test_no_questions_are_no_error(chat: Run) -> None:
    assert (chat("").code, chat("").out) == (0, "")


def test_commands_work_there_too_and_errors_do_not_end_it(chat: Run) -> None:
    result = chat("/docs\n/frobnicate\n/helpp\n/edit\n/cite\n/quit\nnever asked\n")
    assert result.code == 4
    assert result.out.count("\n") == 1
    assert "book.md (markdown" in result.out
    assert "there is no /frobnicate" in result.err
    assert "did you mean 'help'" in result.err
    assert "never asked" not in result.err


def test_settings_are_typed_in_several_ways(chat: Run) -> None:
    result = chat(
        "/set temp=0.5\n/set --top-k 3\n/set kv window=128,codec=int8\n/set kv\n/set max-tokens many\n"
    )
    assert result.out.splitlines() == ["temp = 0.5", "top_k = 3", "kv = window=128,codec=int8", "kv = "]
    assert "max_tokens = 'many'" in result.err


def test_a_question_that_cannot_be_asked_again_stands(chat: Run) -> None:
    result = chat("How long is the river Orle?\n/set ctx 64\n/retry\n/stats\n")
    assert "1 question;" in result.out
    assert result.code == 4


def test_where_nothing_could_be_answered_the_code_is_the_errors(chat: Run) -> None:
    assert chat("What?\n", files=()).code == 2
    assert "no document is open" in chat("What?\n", files=()).err


def test_a_line_in_an_old_encoding_is_understood(chat: Run) -> None:
    result = chat("Wie lang ist die Brücke über den Fluß?\n".encode("cp1252"), "--json")
    assert json.loads(result.out)["question"] == "Wie lang ist die Brücke über den Fluß?"


def test_standard_input_cannot_be_document_and_questions(localctx: Run, tiny_model_path: Path) -> None:
    result = localctx("chat", "-", "--model", str(tiny_model_path), stdin=b"text")
    assert result.code == 2
    assert "standard input is the document" in result.err


def test_it_goes_on_where_it_was(chat: Run, tmp_path: Path) -> None:
    chat("How long is the river Orle?\n")
    result = chat("/stats\nAnd where does it rise?\n", "--continue")
    assert result.code == 0
    assert "going on after 1 question" in result.err
    assert "1 question" in result.out
    (tmp_path / "other.md").write_text("Nothing.", "utf-8")
    nowhere = chat("/stats\n", "--continue", files=("other.md",))
    assert nowhere.code == 2
    assert "no conversation on these files" in nowhere.err


def test_without_files_it_opens_those_of_the_conversation(chat: Run, tmp_path: Path) -> None:
    chat("How long is the river Orle?\n")
    assert "book.md" in chat("/docs\n", "--continue", files=()).out
    (tmp_path / "book.md").write_text(BOOK + "More.\n", "utf-8")
    assert "has changed since" in chat("/docs\n", "--continue", files=()).err
    (tmp_path / "book.md").unlink()
    assert "no document is open" in chat("/docs\n", "--continue", files=()).out


def test_ten_long_turns_in_a_small_window(chat: Run) -> None:
    """FC19: no shift, no abort; the conversation is rebuilt from the turns that are kept."""
    question = " ".join(f"word{n}" for n in range(25))
    lines = "".join(f"Number {n}: {question}?\n" for n in range(10))
    result = chat(lines, "--ctx", "1024", "--kv", "block=32", "--json")
    assert result.code == 0
    assert len(result.out.splitlines()) == 10
    assert all(json.loads(line)["model"]["n_ctx"] <= 1024 for line in result.out.splitlines())


def test_a_reader_that_leaves_is_no_error(tmp_path: Path, tiny_model_path: Path) -> None:
    (tmp_path / "book.md").write_text(BOOK, "utf-8")
    words = [
        "chat",
        str(tmp_path / "book.md"),
        "--model",
        str(tiny_model_path),
        "--store",
        "off",
        "--max-tokens",
        "8",
    ]
    program = [sys.executable, "-c", "from localctx.cli.entry import run; run()", *words]
    environment = {**os.environ, "HOME": str(tmp_path)}
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        child.stdin.write(b"How long is the river Orle?\n" * 3)
        child.stdin.close()
        errors = child.stderr.read().decode()
    assert child.returncode == 0, errors
    assert "Traceback" not in errors
