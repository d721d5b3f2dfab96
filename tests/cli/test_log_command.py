"""`localctx log`, and questions that are answered from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def words(tiny_model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """`ask` on a small file with a store of its own, and the log on."""
    monkeypatch.setenv("LOCALCTX_HISTORY", "true")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    file = tmp_path / "report.txt"
    file.write_text("The harbour of Tannau was built in 1871 by Anna Feld. " * 5)
    return ["ask", str(file), "-m", str(tiny_model_path), "-n", "6", "--store", str(tmp_path / "store")]


def test_a_question_asked_again_says_how_old_its_answer_is(localctx: Run, words: list[str]) -> None:
    first = localctx(*words, "-q", "Who built it?")
    assert first.code == 0, first.err
    again = localctx(*words, "-q", "Who built it?")
    assert (again.code, again.out) == (0, first.out)
    assert "from the log, answered less than a minute ago (--fresh answers anew)" in again.err
    as_json = localctx(*words, "-q", "Who built it?", "--json").json
    assert as_json["history"].keys() == {"asked_at", "age_seconds"}
    assert as_json["tokens"] == {"evaluated": 0, "restored": 0, "generated": 0}
    for option in ("--fresh", "--no-history"):
        anew = localctx(*words, "-q", "Who built it?", option, "--json").json
        assert ("history" not in anew, anew["tokens"]["generated"] > 0) == (True, True)


def test_several_questions_and_summaries_are_logged_too(localctx: Run, words: list[str]) -> None:
    both = [*words, "-q", "Who built it?", "-q", "When was it built?", "--json"]
    first = localctx(*both).json["answers"]
    again = localctx(*both).json["answers"]
    assert [one["answer"] for one in again] == [one["answer"] for one in first]
    assert ["history" in one for one in (*first, *again)] == [False, False, True, True]
    mixed = localctx(*words, "-q", "By whom?", "-q", "When was it built?", "--json").json["answers"]
    assert [(one["question"], "history" in one) for one in mixed] == [
        ("By whom?", False), ("When was it built?", True),
    ]  # fmt: skip
    summary = ["summarize", *words[1:], "--length", "short", "--json"]
    assert localctx(*summary).json["answer"] == localctx(*summary).json["answer"]
    assert "history" in localctx(*summary).json
    assert "history" not in localctx(*summary, "--focus", "Anna").json


def test_the_log_is_listed_searched_and_cleared(localctx: Run, words: list[str], tmp_path: Path) -> None:
    store = words[-2:]
    assert localctx("log", *store).out == "no questions yet\n"
    assert not (tmp_path / "store" / "chats").exists()
    localctx(*words, "-q", "Who built the harbour?")
    localctx(*words, "-q", "When does the train leave?")
    listed = localctx("log", *store).out
    assert listed.index("train leave?") < listed.index("the harbour?")
    assert "report.txt" in listed
    assert "tokens read; support:" in listed
    assert "train" not in localctx("log", "harbours", "--limit", "1", *store).out
    assert localctx("log", "zeppelin", *store).out == "nothing found\n"
    (entry,) = localctx("log", "train", "--json", *store).json["entries"]
    assert entry["question"] == "When does the train leave?"
    assert entry["coverage"]["tokens_total"] > 0
    assert localctx("log", "clear", "--json", *store).json == {"schema": "localctx.log-clear/1", "removed": 2}
    assert localctx("log", *store).out == "no questions yet\n"


def test_with_the_store_off_nothing_is_logged(localctx: Run, words: list[str], tmp_path: Path) -> None:
    for _ in range(2):
        result = localctx(*words[:-2], "--store", "off", "-q", "Who?", "--json")
        assert "history" not in result.json
    assert not (tmp_path / "data").exists()
    refused = localctx("log", "--store", "off")
    assert (refused.code, "there is no log" in refused.err) == (2, True)


def test_what_came_through_a_pipe_is_not_logged(localctx: Run, words: list[str], tmp_path: Path) -> None:
    for _ in range(2):
        piped = localctx("ask", "-", *words[2:], "-q", "Who?", "--json", stdin=b"Anna Feld built it.")
        assert "history" not in piped.json
    assert localctx("log", *words[-2:]).out == "no questions yet\n"


def test_a_damaged_log_is_one_line(localctx: Run, words: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "store" / "chats"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "log.sqlite3").write_bytes(b"no database " * 500)
    result = localctx("log", *words[-2:])
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert "localctx log clear" in result.err
    assert localctx(*words, "-q", "Who built it?").code == 0
    assert localctx("log", "clear", *words[-2:]).code == 0
    assert localctx("log", *words[-2:]).out == "no questions yet\n"
