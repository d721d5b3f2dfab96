"""Past questions on disk: found again, searched, and never worth an answer."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localctx.document import open_document
from localctx.engine.echo import EchoModel
from localctx.session.answer import Answer
from localctx.session.ask import ask
from localctx.session.asked_before import Asked, History, logged
from localctx.session.events import Finished, Notice, Text
from localctx.session.question_log import MAX_ENTRIES, LoggedQuestion, LogUnusable, QuestionLog
from localctx.settings import Settings


def entry(question: str, answer: str = "", key: str = "k", at: float = 0.0) -> LoggedQuestion:
    return LoggedQuestion(key, "ask", question, ("report.pdf",), "m", {"answer": answer}, at)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "chats"


def test_entries_are_found_by_key_by_time_and_by_words(folder: Path) -> None:
    with QuestionLog(folder) as log:
        for number, question in enumerate(
            (
                "How long is the Orle?",
                "Who built the harbour of Tannau?",
                "大桥是什么时候建成的？",
                "Who paid?",
            )
        ):
            log.add(entry(question, "Anna Feld" if number == 1 else "", f"k{number}", 100.0 + number))
        log.add(entry("Who paid?", "later", "k3", 200.0))
        found = log.find("k3")
        assert found is not None
        assert (found.question, found.record["answer"], found.at) == ("Who paid?", "later", 200.0)
        assert log.find("other") is None
        assert [one.at for one in log.last(2)] == [200.0, 103.0]
        for text, place in (
            ("harbours", 1),
            ("feld", 1),
            ("大桥建成", 2),
            ("how long was that Orle river", 0),
        ):
            assert log.search(text, 5)[0].key == f"k{place}", text
        assert log.search('NEAR( " OR *', 5) == []
        assert len(log.search("report", 50)) == 5
    assert stat.S_IMODE((folder / "log.sqlite3").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_entry_without_a_key_is_never_an_answer(folder: Path) -> None:
    with QuestionLog(folder) as log:
        log.add(entry("Remote?", key=""))
        assert log.find("") is None
        assert len(log.last(5)) == 1


def test_the_oldest_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_ENTRIES >= 1000
    monkeypatch.setattr("localctx.session.question_log.MAX_ENTRIES", 3)
    with QuestionLog(folder) as log:
        for number in range(5):
            log.add(entry(f"question{number}", key=f"k{number}"))
        assert [one.question for one in log.last(9)] == ["question4", "question3", "question2"]
        assert log.search("question0", 9) == []


def test_processes_write_side_by_side(folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from localctx.session.question_log import *\n"
        "for n in range(20):\n"
        "    with QuestionLog(Path(sys.argv[1])) as log:\n"
        "        log.add(LoggedQuestion('', 'ask', f'{sys.argv[2]} {n}', (), 'm', {'answer': 'x'}))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(folder), name]) for name in ("a", "b")]
    assert [writer.wait() for writer in writers] == [0, 0]
    with QuestionLog(folder) as log:
        assert len(log.last(100)) == 40


@pytest.mark.parametrize("content", [b"no database at all " * 80, b"SQLite format 3\0" + bytes(3000)])
def test_a_damaged_file_is_told_and_can_be_cleared(folder: Path, content: bytes) -> None:
    folder.mkdir(mode=0o700)
    (folder / "log.sqlite3").write_bytes(content)
    with pytest.raises(LogUnusable, match="past questions cannot be kept"):
        QuestionLog(folder)
    assert QuestionLog.clear(folder) == 0
    with QuestionLog(folder) as log:
        log.add(entry("again"))
    assert QuestionLog.clear(folder) == 1
    assert not (folder / "log.sqlite3").exists()


# --- answers from the log ---------------------------------------------------------------------------


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "doc.txt"
    path.write_text("The harbour of Tannau was built in 1871 by Anna Feld.\n")
    return path


def run(
    text: Path, settings: Settings, question: str = "Who built it?", model: EchoModel | None = None
) -> tuple[Answer, list[str], bool]:
    """(answer, what was warned of, whether the model was asked)."""
    told: list[str] = []
    was_asked = []
    model = model or EchoModel()
    with open_document(text, cache_dir=None) as document:

        def answer() -> Any:
            was_asked.append(1)
            return ask([document], model, question, settings)

        asked = Asked("ask", (question,), (document,), model.info, settings)
        events = list(logged(History(settings, told.append), asked, answer))
    assert isinstance(events[-1], Finished)
    if not was_asked:
        assert all(isinstance(event, Text | Notice) for event in events[:-1])
    return events[-1].answer, told, bool(was_asked)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(store=str(tmp_path / "store"), embedder="off", max_tokens=20)


def test_the_same_question_is_answered_once(text: Path, settings: Settings) -> None:
    first, told, was_asked = run(text, settings)
    assert (told, was_asked, first.asked_at) == ([], True, None)
    again, told, was_asked = run(text, settings)
    assert (told, was_asked) == ([], False)
    assert again.asked_at is not None
    facts = again.to_json()
    assert facts.pop("history")["age_seconds"] >= 0
    before = first.to_json()
    assert facts.pop("tokens") == {"evaluated": 0, "restored": 0, "generated": 0}
    for value in (before, facts):
        value.pop("timings")
    before.pop("tokens")
    assert facts == before


def test_nothing_that_matters_may_differ(text: Path, settings: Settings, tmp_path: Path) -> None:
    run(text, settings)
    assert not run(text, settings)[2]
    assert run(text, replace(settings, fresh=True))[2]
    assert run(text, replace(settings, history=False))[2]
    for change in ({"max_tokens": 21}, {"temp": 0.5}, {"seed": 4}, {"strategy": "retrieve"}, {"ctx": 2048},
                   {"kv": "refresh=0"}, {"threads": 1}, {"latency": 9.0}):  # fmt: skip
        assert run(text, replace(settings, **change))[2], change  # type: ignore[arg-type]  # any field
    assert run(text, settings, "Who built it then?")[2]
    other = EchoModel()
    other.info = replace(other.info, fingerprint="other")
    assert run(text, settings, model=other)[2]
    copy = tmp_path / "copy.txt"
    copy.write_bytes(text.read_bytes())
    assert run(copy, settings)[2]
    assert not run(text, settings)[2]
    text.write_text(text.read_text() + "It burned down in 1902.\n")
    assert run(text, settings)[2]


def test_a_counted_answer_is_found_again_with_its_counts(tmp_path: Path, settings: Settings) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("customer,city\nAnn,Paris\nBob,Lyon\nCy,Paris\n")
    first, _, was_asked = run(path, settings, "How many rows have the city Paris?")
    assert was_asked
    again, told, was_asked = run(path, settings, "How many rows have the city Paris?")
    assert (told, was_asked, again.strategy) == ([], False, "count")
    assert again.to_json()["records"] == first.to_json()["records"] == {"read": 3, "matched": 2}


@pytest.mark.parametrize("strategy", ["exact", "stream", "retrieve"])
def test_a_file_that_changed_while_it_was_answered_finds_no_answer(
    text: Path, tmp_path: Path, settings: Settings, strategy: Any
) -> None:
    """The answer rests on the file as it was; asked again, it is as it is now."""
    schema = tmp_path / "schema.json"
    schema.write_text("{}")
    with open_document(text, cache_dir=None) as document:
        settings = replace(settings, schema=str(schema))
        asked = Asked("ask", ("Who?",), (document,), EchoModel().info, settings)
        history = History(settings, pytest.fail)
        answer = replace(run(text, replace(settings, schema=None, history=False))[0], strategy=strategy)
        key, found = history.find(asked)
        assert found is None
        schema.write_text('{"type": "object"}')
        history.add(asked, key, answer)
        assert history.find(asked)[1] is None
        with QuestionLog(tmp_path / "store" / "chats") as log:
            assert log.find(key) is None
        history.add(asked, asked.key(), answer)
        assert history.find(asked)[1] is not None


def test_what_is_private_is_not_written_down(text: Path, settings: Settings, tmp_path: Path) -> None:
    for private in (replace(settings, password_file="p"), replace(settings, history=False)):
        assert run(text, private)[2]
        assert run(text, private)[2]
    assert not (tmp_path / "store" / "chats").exists()


def test_answers_of_another_server_are_written_but_not_repeated(text: Path, settings: Settings) -> None:
    remote = replace(settings, backend="openai:http://127.0.0.1:9")
    assert [run(text, remote)[2], run(text, remote)[2]] == [True, True]


def test_a_log_that_cannot_be_used_costs_a_warning(text: Path, settings: Settings, tmp_path: Path) -> None:
    first, _, _ = run(text, settings)
    path = tmp_path / "store" / "chats" / "log.sqlite3"
    path.write_bytes(b"no database " * 500)
    answer, told, was_asked = run(text, settings)
    assert (answer.text, was_asked) == (first.text, True)
    assert "localctx log clear" in told[0]
    assert "the answer was not written to the log" in told[1]


def test_a_full_disk_costs_a_warning(text: Path, settings: Settings, tmp_path: Path) -> None:
    first, _, _ = run(text, settings)

    def full(run: sqlite3.Connection) -> None:
        run.execute("PRAGMA max_page_count = 1")

    prepare = QuestionLog._prepare
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QuestionLog, "_prepare", lambda log: (prepare(log), full(log._connection))[0])
        answer, told, was_asked = run(text, settings, "Another question " * 900)
        assert was_asked
        assert "database or disk is full" in told[0]
    assert not run(text, settings)[2]
    assert answer.finish_reason == first.finish_reason


def test_a_damaged_entry_is_answered_anew(text: Path, settings: Settings, tmp_path: Path) -> None:
    run(text, settings)
    with sqlite3.connect(tmp_path / "store" / "chats" / "log.sqlite3") as connection:
        connection.execute("""UPDATE asked SET record = '{"command": "ask"}'""")
    connection.close()
    answer, told, was_asked = run(text, settings)
    assert was_asked
    assert told == ["an entry of the log of questions is damaged: answered anew"]
    assert answer.asked_at is None
    assert not run(text, settings)[2]


def test_a_folder_of_others_is_not_used(text: Path, settings: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "store" / "chats"
    folder.mkdir(parents=True)
    os.chmod(folder, 0o777)  # noqa: PTH101  # as a shell does
    _, told, was_asked = run(text, settings)
    assert was_asked
    assert "others may write" in told[0]
