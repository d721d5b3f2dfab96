"""Conversations at rest: one SQLite file of this user's, turns written as they come. Knows no model.

Beside a store that was named, else in the platform's folder for a user's data: unlike what can be computed
again, conversations are not a cache. Raises ConversationsUnusable for all that goes wrong with the file.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from localctx.errors import LocalctxError
from localctx.session.conversation import Turn
from localctx.session.private_database import PrivateDatabase

__all__ = ["ConversationsUnusable", "SavedConversation", "SavedConversations"]

TABLES = """
CREATE TABLE conversation (
    id INTEGER PRIMARY KEY, name TEXT UNIQUE, model TEXT NOT NULL, documents TEXT NOT NULL,
    created REAL NOT NULL, updated REAL NOT NULL
);
CREATE TABLE turn (
    conversation INTEGER NOT NULL REFERENCES conversation(id) ON DELETE CASCADE, number INTEGER NOT NULL,
    question TEXT NOT NULL, sought TEXT NOT NULL, answer TEXT NOT NULL, finish_reason TEXT NOT NULL,
    record TEXT NOT NULL, PRIMARY KEY (conversation, number)
) WITHOUT ROWID;
"""


class ConversationsUnusable(LocalctxError):
    """The file of conversations cannot be read or written."""


@dataclass(slots=True)
class SavedConversation:
    """One conversation. documents: (path, content hash) of each · updated: seconds since 1970 · id: None
    until it is written first.
    """

    model: str
    documents: tuple[tuple[str, str], ...]
    turns: tuple[Turn, ...] = ()
    name: str | None = None
    id: int | None = None
    updated: float = field(default_factory=time.time)


class SavedConversations(PrivateDatabase):
    """Close it, or use `with`."""

    FILE = "chats.sqlite3"
    WHAT = "conversations"
    APPLICATION_ID = 0x4C435443
    VERSION = 1
    TABLES = TABLES
    ERROR = ConversationsUnusable

    def save(self, conversation: SavedConversation) -> None:
        """Write the conversation, whole or not at all; turns that stand there already stay."""
        now = time.time()
        documents = json.dumps(conversation.documents)
        with self._told(), self._transaction() as run:
            if conversation.id is None:
                found = run.execute(
                    "INSERT INTO conversation (name, model, documents, created, updated)"
                    " VALUES (?, ?, ?, ?, ?)",
                    (conversation.name, conversation.model, documents, now, now),
                )
                number = found.lastrowid
            else:
                number = conversation.id
                run.execute(
                    "INSERT INTO conversation (id, name, model, documents, created, updated)"
                    " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name,"
                    " model = excluded.model, documents = excluded.documents, updated = excluded.updated",
                    (number, conversation.name, conversation.model, documents, now, now),
                )
            self._save_turns(run, number, conversation.turns)
        conversation.id, conversation.updated = number, now

    def latest(self, paths: Sequence[str] | None = None) -> SavedConversation | None:
        """The conversation that was used last, on just these files where some are given."""
        for one in self.all():
            if paths is None or sorted(path for path, _ in one.documents) == sorted(paths):
                return self._with_turns(one)
        return None

    def named(self, name: str) -> SavedConversation | None:
        """The conversation of that name, or with that number."""
        found = next((one for one in self.all() if name in (one.name, str(one.id))), None)
        return None if found is None else self._with_turns(found)

    def all(self) -> list[SavedConversation]:
        """All conversations, without their turns, the one used last first."""
        with self._told():
            rows = self._connection.execute(
                "SELECT id, name, model, documents, updated FROM conversation ORDER BY updated DESC, id DESC"
            ).fetchall()
            return [
                SavedConversation(
                    model, tuple((path, text) for path, text in json.loads(documents)), (), name, number, at
                )
                for number, name, model, documents, at in rows
            ]

    def first_question(self, number: int) -> str:
        """What a conversation began with."""
        with self._told():
            row = self._connection.execute(
                "SELECT question FROM turn WHERE conversation = ? ORDER BY number LIMIT 1", (number,)
            ).fetchone()
        return row[0] if row else ""

    # --- inside ---------------------------------------------------------------------------------------

    def _with_turns(self, one: SavedConversation) -> SavedConversation:
        with self._told():
            rows = self._connection.execute(
                "SELECT question, sought, answer, finish_reason, record FROM turn WHERE conversation = ?"
                " ORDER BY number",
                (one.id,),
            ).fetchall()
            one.turns = tuple(
                Turn(asked, sought, text, end, json.loads(record))
                for asked, sought, text, end, record in rows
            )
        return one

    @staticmethod
    def _save_turns(run: sqlite3.Connection, number: int | None, turns: Sequence[Turn]) -> None:
        """Leave the turns that are there, take away what is not among them any more, add the new ones."""
        rows = run.execute(
            "SELECT question, answer FROM turn WHERE conversation = ? ORDER BY number", (number,)
        ).fetchall()
        n_same = 0
        for row, turn in zip(rows, turns, strict=False):
            if tuple(row) != (turn.question, turn.answer):
                break
            n_same += 1
        run.execute("DELETE FROM turn WHERE conversation = ? AND number >= ?", (number, n_same))
        run.executemany(
            "INSERT INTO turn VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    number,
                    at,
                    turn.question,
                    turn.sought,
                    turn.answer,
                    turn.finish_reason,
                    json.dumps(turn.record),
                )
                for at, turn in enumerate(turns)
                if at >= n_same
            ],
        )
