"""Past questions at rest: one SQLite file of this user's, searchable by words. Knows no model, no document.

Raises LogUnusable for all that goes wrong with the file.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localctx.errors import LocalctxError
from localctx.index.query import parse_query
from localctx.index.terms import clean, pair_runs
from localctx.private_files import NotPrivate, check_private
from localctx.session.private_database import PrivateDatabase

__all__ = ["LogUnusable", "LoggedQuestion", "QuestionLog"]

MAX_ENTRIES = 5_000
"""Beyond which the oldest are dropped."""
MAX_TERMS = 100
QUESTION_WEIGHT, ANSWER_WEIGHT, SOURCES_WEIGHT = 4.0, 1.0, 2.0
TABLES = """
CREATE TABLE asked (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, at REAL NOT NULL, command TEXT NOT NULL,
    question TEXT NOT NULL, sources TEXT NOT NULL, model TEXT NOT NULL, record TEXT NOT NULL
);
CREATE INDEX asked_by_key ON asked (key, at);
CREATE VIRTUAL TABLE words USING fts5(
    question, answer, sources, tokenize = 'porter unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc'''
)
"""
SELECT = "SELECT asked.id, asked.key, at, command, asked.question, asked.sources, model, record FROM "


class LogUnusable(LocalctxError):
    """The file of past questions cannot be read or written."""


@dataclass(frozen=True, slots=True)
class LoggedQuestion:
    """A question with its answer. key: "" where it must not be answered from here · at: seconds since 1970 ·
    sources: names of the documents · record: the answer as JSON (`localctx.answer/1`).
    """

    key: str
    command: str
    question: str
    sources: tuple[str, ...]
    model: str
    record: dict[str, Any]
    at: float = 0.0
    id: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The entry as `log --json` lists it."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.at))
        return {"id": self.id, "asked_at": at, "sources": list(self.sources), **self.record}


class QuestionLog(PrivateDatabase):
    """Close it, or use `with`."""

    FILE = "log.sqlite3"
    WHAT = "past questions"
    APPLICATION_ID = 0x4C43514C
    VERSION = 1
    TABLES = TABLES
    ERROR = LogUnusable

    def add(self, entry: LoggedQuestion) -> None:
        """Write an entry, whole or not at all; the oldest beyond the limit go."""
        answer = str(entry.record.get("answer", ""))
        texts = [pair_runs(clean(text)) for text in (entry.question, answer, " ".join(entry.sources))]
        with self._told(), self._transaction() as run:
            row = run.execute(
                "INSERT INTO asked (key, at, command, question, sources, model, record)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    entry.key,
                    entry.at or time.time(),
                    entry.command,
                    clean(entry.question),
                    json.dumps(entry.sources),
                    entry.model,
                    json.dumps(entry.record),
                ),
            )
            run.execute("INSERT INTO words (rowid, question, answer, sources) VALUES (?, ?, ?, ?)",
                        (row.lastrowid, *texts))  # fmt: skip
            old = run.execute(
                "SELECT id FROM asked ORDER BY id DESC LIMIT -1 OFFSET ?", (MAX_ENTRIES,)
            ).fetchall()
            run.executemany("DELETE FROM asked WHERE id = ?", old)
            run.executemany("DELETE FROM words WHERE rowid = ?", old)

    def find(self, key: str) -> LoggedQuestion | None:
        """The last entry of that key."""
        with self._told():
            row = self._connection.execute(
                SELECT + "asked WHERE key = ? AND key <> '' ORDER BY at DESC LIMIT 1",
                (key,),
            ).fetchone()
            return None if row is None else entry_of(row)

    def last(self, limit: int) -> list[LoggedQuestion]:
        """The last entries, the newest first."""
        with self._told():
            rows = self._connection.execute(
                SELECT + "asked ORDER BY at DESC, id DESC LIMIT ?",
                (limit,),
            )
            return [entry_of(row) for row in rows]

    def search(self, text: str, limit: int) -> list[LoggedQuestion]:
        """The entries most like a text by its words, the best first."""
        query = parse_query(text)
        terms = [term.expression for term in (*query.focus, *query.background)][:MAX_TERMS]
        if not terms:
            return []
        with self._told():
            rows = self._connection.execute(
                SELECT + "words JOIN asked ON asked.id = words.rowid WHERE words MATCH ?"
                " ORDER BY bm25(words, ?, ?, ?), at DESC LIMIT ?",
                (" OR ".join(terms), QUESTION_WEIGHT, ANSWER_WEIGHT, SOURCES_WEIGHT, limit),
            )
            return [entry_of(row) for row in rows]

    @classmethod
    def clear(cls, folder: Path) -> int:
        """Remove the file, damaged or not; how many entries it held, 0 where that cannot be told any more."""
        path = folder / cls.FILE
        if not path.is_file():
            return 0
        n_entries = 0
        with contextlib.suppress(LogUnusable), cls(folder) as log, contextlib.suppress(sqlite3.Error):
            (n_entries,) = log._connection.execute("SELECT count(*) FROM asked").fetchone()
        try:
            check_private(folder)
            for name in (cls.FILE, f"{cls.FILE}-journal"):
                (folder / name).unlink(missing_ok=True)
        except (OSError, NotPrivate) as error:
            raise LogUnusable(f"past questions cannot be removed: {error}") from None
        return n_entries


def entry_of(row: Sequence[Any]) -> LoggedQuestion:
    """An entry from its row. Raises ValueError where it is damaged."""
    number, key, at, command, question, sources, model, record = row
    value = json.loads(record)
    if not isinstance(value, dict):
        raise ValueError(f"entry {number} is damaged")
    return LoggedQuestion(key, command, question, tuple(json.loads(sources)), model, value, at, number)
