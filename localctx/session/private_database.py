"""One SQLite file of this user's in a folder that is theirs alone. Knows no table's meaning.

A subclass names its tables and its error; all that goes wrong with the file becomes that error.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Self

from localctx.errors import LocalctxError
from localctx.names import display_name
from localctx.private_files import NotPrivate, make_private
from localctx.settings import Settings

__all__ = ["PrivateDatabase", "folder_of"]

BUSY_SECONDS = 5.0


def folder_of(settings: Settings) -> Path | None:
    """Where conversations and past questions are kept; None with --store off."""
    if settings.store == "off":
        return None
    if settings.store:
        return Path(settings.store).absolute() / "chats"
    import platformdirs

    return Path(platformdirs.user_data_dir("localctx", appauthor=False))


class PrivateDatabase:
    """Close it, or use `with`."""

    FILE: ClassVar[str]
    WHAT: ClassVar[str]
    """What it keeps, in the plural."""
    APPLICATION_ID: ClassVar[int]
    VERSION: ClassVar[int]
    TABLES: ClassVar[str]
    ERROR: ClassVar[type[LocalctxError]]

    def __init__(self, folder: Path) -> None:
        """Make folder and file where there are none. Raises ERROR."""
        self._path = folder / self.FILE
        with self._told():
            folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            make_private(folder)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            self._connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            with self._told():
                self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def _prepare(self) -> None:
        """Make the tables in an empty file; refuse what is of another making."""
        run = self._connection
        run.execute("PRAGMA trusted_schema = OFF")
        run.execute("PRAGMA foreign_keys = ON")
        if self._stamp() == (self.APPLICATION_ID, self.VERSION):
            return
        with self._transaction():
            if self._stamp() == (self.APPLICATION_ID, self.VERSION):  # another process was faster
                return
            if run.execute("SELECT count(*) FROM sqlite_schema").fetchone() != (0,):
                raise self.ERROR(
                    f"{display_name(self._path)} is of another version, or no file of {self.WHAT}",
                    "move it away, or name another folder with --store",
                )
            for statement in filter(str.strip, self.TABLES.split(";")):
                run.execute(statement)
            run.execute(f"PRAGMA application_id = {self.APPLICATION_ID}")
            run.execute(f"PRAGMA user_version = {self.VERSION}")

    def _stamp(self) -> tuple[int, int]:
        """Whose file it is, and in which version."""
        (application,), (version,) = (
            self._connection.execute(f"PRAGMA {name}").fetchone()
            for name in ("application_id", "user_version")
        )
        return application, version

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
        except BaseException:
            if self._connection.in_transaction:  # a full disk rolls back by itself
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what the file, the disk and damaged rows raise into one error."""
        try:
            yield
        except (OSError, sqlite3.Error, NotPrivate, ValueError, TypeError) as error:
            reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
            raise self.ERROR(
                f"{self.WHAT} cannot be kept in {display_name(self._path)}: {reason}",
                "--store DIR keeps them elsewhere, --store off nowhere",
            ) from None
