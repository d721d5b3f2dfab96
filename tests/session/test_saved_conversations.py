"""Conversations on disk: what is kept comes back, and a file that cannot be used is one error."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from localctx.session.conversation import Turn
from localctx.session.private_database import folder_of
from localctx.session.saved_conversations import (
    ConversationsUnusable,
    SavedConversation,
    SavedConversations,
)
from localctx.settings import Settings

TURNS = (
    Turn(
        "How long is the Orle?", "How long is the Orle?", "212 km.", "stop", {"answer": "212 km.", "n": [1]}
    ),
    Turn("And the Lom?", "And the Lom (long)?", "", "cancelled"),
)
BOOK = (("/books/rivers.md", "ab12"),)


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    with SavedConversations(tmp_path / "chats") as saved:
        one = SavedConversation("tiny", BOOK, TURNS)
        saved.save(one)
        assert one.id is not None
    with SavedConversations(tmp_path / "chats") as saved:
        again = saved.latest()
        assert again is not None
        assert (again.model, again.documents, again.turns, again.id) == ("tiny", BOOK, TURNS, one.id)
        assert saved.first_question(one.id) == "How long is the Orle?"


def test_turns_are_added_taken_back_and_replaced(tmp_path: Path) -> None:
    with SavedConversations(tmp_path / "chats") as saved:
        one = SavedConversation("tiny", BOOK, TURNS)
        saved.save(one)
        for turns in (TURNS[:1], (TURNS[0], Turn("x?", "x?", "y", "stop")), (), TURNS[::-1]):
            one.turns = turns
            saved.save(one)
            found = saved.latest()
            assert found is not None
            assert found.turns == turns


def test_the_last_one_on_the_same_files(tmp_path: Path) -> None:
    other = (("/books/mines.md", "cd34"),)
    with SavedConversations(tmp_path / "chats") as saved:
        for documents in (BOOK, other, (*BOOK, *other)):
            saved.save(SavedConversation("tiny", documents, TURNS))
        found = saved.latest([path for path, _ in BOOK])
        assert found is not None
        assert found.documents == BOOK
        assert saved.latest(["/books/none.md"]) is None
        assert [len(one.documents) for one in saved.all()] == [2, 1, 1]


def test_by_name_or_number(tmp_path: Path) -> None:
    with SavedConversations(tmp_path / "chats") as saved:
        saved.save(one := SavedConversation("tiny", BOOK, TURNS, name="rivers"))
        for name in ("rivers", str(one.id)):
            found = saved.named(name)
            assert found is not None
            assert found.turns == TURNS
        assert saved.named("mines") is None
        with pytest.raises(ConversationsUnusable):
            saved.save(SavedConversation("tiny", BOOK, TURNS, name="rivers"))
        assert len(saved.all()) == 1


def test_the_file_is_this_users_alone(tmp_path: Path) -> None:
    with SavedConversations(tmp_path / "chats") as saved:
        assert stat.S_IMODE(saved.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(saved.path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be read" * 20, b"\x00" * 4096])
def test_a_file_of_another_kind_is_refused_and_left(content: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "chats"
    folder.mkdir(mode=0o700)
    (folder / "chats.sqlite3").write_bytes(content)
    with pytest.raises(ConversationsUnusable, match=r"chats\.sqlite3"):
        SavedConversations(folder)
    assert (folder / "chats.sqlite3").read_bytes() == content


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    with SavedConversations(tmp_path / "chats") as saved:
        saved.save(SavedConversation("tiny", BOOK, TURNS))
        path = saved.path
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ConversationsUnusable, match="another version"):
        SavedConversations(tmp_path / "chats")


def test_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chats").mkdir()
    (tmp_path / "chats").chmod(0o777)
    with pytest.raises(ConversationsUnusable, match="others may write"):
        SavedConversations(tmp_path / "chats")


def test_where_they_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder_of(Settings(store="off")) is None
    assert folder_of(Settings(store=str(tmp_path))) == tmp_path / "chats"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    default = folder_of(Settings())
    assert default is not None
    assert default.name == "localctx"
