"""Blocks → a BM25 index in SQLite FTS5 → scores of a question. Does not know how scores are used.

One contentless table per document (SQLite 3.40 cannot delete rows from one), dropped whole. Each row is a
block: its header (heading path, page) and its text, as two columns with weights of their own.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from localctx.errors import LocalctxError
from localctx.index.query import Term, parse_query, variants
from localctx.index.terms import clean, content_words, pair_runs
from localctx.values import Block, Scores

__all__ = ["Hits", "LexicalIndex"]

HEADER_WEIGHT = 0.25
BODY_WEIGHT = 1.0
BACKGROUND_SHARE = 0.3
MAX_TERMS = 48
APPLICATION_ID = 0x4C435458  # "LCTX"
FORMAT_VERSION = 1
CACHE_KIB = 32 * 1024
ROWS_PER_INSERT = 256


@dataclass(frozen=True, slots=True)
class Hits:
    """The blocks that hold some of the question's terms, as (block index, BM25 score > 0), best first."""

    n_blocks: int
    ranking: tuple[tuple[int, float], ...]

    def scores(self, selector: str = "lexical") -> Scores:
        """The same for every block of the document; 0 where no term was found."""
        values = [0.0] * self.n_blocks
        for index, score in self.ranking:
            values[index] = score
        return Scores(selector, tuple(values))


class LexicalIndex:
    """BM25 over one document's blocks. A selector: `name` and `scores(question)`. Close it, or use `with`.

    Used by the thread that made it.
    """

    name = "lexical"

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self._connection = connection
        self._table = table
        row = connection.execute("SELECT n_blocks FROM lexical_documents WHERE name = ?", (table,)).fetchone()
        self._n_blocks: int = row[0]

    @classmethod
    def build(
        cls,
        blocks: Iterable[Block],
        path: Path | None = None,
        *,
        document: str = "",
        language: str | None = None,
    ) -> LexicalIndex:
        """Index `blocks` (streamed; their `index` counts from 0) under the key `document`, replacing it.

        path None is a temporary database that SQLite spills to disk and deletes. English stemming is on
        unless `language` names another language. Raises LocalctxError when `path` is not such an index or
        the disk refuses; nothing half-built stays.
        """
        connection = _connect(path)
        table = _table_name(document)
        try:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                _drop(connection, table)
                columns = f"header, body, content='', tokenize={_tokenizer(language)}"
                connection.execute(f"CREATE VIRTUAL TABLE {table} USING fts5({columns})")
                n_blocks = _insert(connection, table, blocks)
                connection.execute("INSERT INTO lexical_documents VALUES (?, ?)", (table, n_blocks))
        except sqlite3.Error as error:
            connection.close()
            raise _index_error(path, error) from error
        except BaseException:
            connection.close()
            raise
        return cls(connection, table)

    @classmethod
    def open(cls, path: Path, *, document: str = "") -> LexicalIndex | None:
        """The index of `document` built into `path` before; None when there is none."""
        if not path.is_file():
            return None
        connection = _connect(path)
        table = _table_name(document)
        if connection.execute("SELECT 1 FROM lexical_documents WHERE name = ?", (table,)).fetchone() is None:
            connection.close()
            return None
        return cls(connection, table)

    @property
    def n_blocks(self) -> int:
        """Blocks of the document."""
        return self._n_blocks

    def search(self, question: str, limit: int | None = None) -> Hits:
        """BM25 scores of the blocks that hold any of the question's terms, at most `limit`, best first.

        Equal scores keep document order. A question without a word that the document holds has no hits.
        """
        query = parse_query(question)
        found = dict(self._match(query.focus))
        background = self._match(query.background) if query.background else {}
        if background:
            best, most = max(found.values(), default=0.0), max(background.values())
            share = BACKGROUND_SHARE * best / most if best else 1.0
            for index, score in background.items():
                found[index] = found.get(index, 0.0) + share * score
        ranking = sorted(found.items(), key=lambda hit: (-hit[1], hit[0]))
        return Hits(self._n_blocks, tuple(ranking[:limit]))

    def scores(self, question: str) -> Scores:
        """search() for every block: the selector's face."""
        return self.search(question).scores(self.name)

    def absent(self, question: str) -> tuple[str, ...]:
        """The question's content words that occur nowhere in the document, folded, in question order."""
        asked = dict.fromkeys(content_words(clean(question)))
        return tuple(
            word for word in list(asked)[:MAX_TERMS] if not any(map(self._n_holding, variants(word)))
        )

    def close(self) -> None:
        """Close the database; a temporary one is gone."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _match(self, terms: Sequence[Term]) -> dict[int, float]:
        """BM25 of `terms`, each as often as its weight says: FTS5 adds up repeated phrases."""
        if len(terms) > MAX_TERMS:
            terms = self._rarest(terms)
        expression = " OR ".join(term.expression for term in terms for _ in range(term.weight))
        if not expression:
            return {}
        rows = self._connection.execute(
            f"SELECT rowid, bm25({self._table}, ?, ?) FROM {self._table} WHERE {self._table} MATCH ?",  # noqa: S608  # the name is a hash
            (HEADER_WEIGHT, BODY_WEIGHT, expression),
        )
        return {index: -score for index, score in rows}

    def _rarest(self, terms: Sequence[Term]) -> list[Term]:
        """The terms of which the fewest blocks speak, in question order; those nobody holds are left out."""
        counted = [(self._n_holding(term), place, term) for place, term in enumerate(terms)]
        kept = sorted(item for item in counted if item[0])[:MAX_TERMS]
        return [term for _, _, term in sorted(kept, key=lambda item: item[1])]

    def _n_holding(self, term: Term) -> int:
        """Blocks that hold the term."""
        row = self._connection.execute(
            f"SELECT count(*) FROM {self._table} WHERE {self._table} MATCH ?",  # noqa: S608  # the name is a hash
            (term.expression,),
        ).fetchone()
        return int(row[0])


def _connect(path: Path | None) -> sqlite3.Connection:
    """Open or make the database, bounded in memory. Raises LocalctxError when the file is something else."""
    connection = sqlite3.connect("" if path is None else path, isolation_level=None, timeout=30)
    try:
        application, version = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        is_new = connection.execute("PRAGMA schema_version").fetchone()[0] == 0
        if not is_new and (application, version) != (APPLICATION_ID, FORMAT_VERSION):
            raise sqlite3.DatabaseError("not a lexical index of this version")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        if path is None:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
        if is_new:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS lexical_documents (name PRIMARY KEY, n_blocks INTEGER)"
        )
    except sqlite3.Error as error:
        connection.close()
        raise _index_error(path, error) from error
    return connection


def _index_error(path: Path | None, error: sqlite3.Error) -> LocalctxError:
    place = "temporary lexical index" if path is None else f"lexical index {str(path)!r}"
    return LocalctxError(f"{place}: {error}", "remove the file to have it built again, or free disk space")


def _table_name(document: str) -> str:
    """A table name for any key."""
    return "lexical_" + hashlib.sha256(document.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _tokenizer(language: str | None) -> str:
    """FTS5's tokenizer as an SQL string. Marks are parts of words: without them Hindi falls apart."""
    words = "unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc''"
    english = language is None or language.lower().startswith("en")
    return f"'porter {words}'" if english else f"'{words}'"


def _drop(connection: sqlite3.Connection, table: str) -> None:
    """Forget a document's table, if there is one."""
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute("DELETE FROM lexical_documents WHERE name = ?", (table,))


def _insert(connection: sqlite3.Connection, table: str, blocks: Iterable[Block]) -> int:
    """Add the blocks' rows; returns their number."""
    n_blocks = 0

    def rows() -> Iterator[tuple[int, str, str]]:
        nonlocal n_blocks
        for block in blocks:
            n_blocks = max(n_blocks, block.index + 1)
            yield block.index, pair_runs(clean(_header(block))), pair_runs(clean(block.text))

    connection.executemany(f"INSERT INTO {table}(rowid, header, body) VALUES (?, ?, ?)", rows())  # noqa: S608  # the name is a hash
    return n_blocks


def _header(block: Block) -> str:
    """What the header column holds: headings and page."""
    page = block.page_label or (str(block.page) if block.page is not None else "")
    return "\n".join([*block.heading_path, f"page {page}" if page else ""])
