"""Blocks → a BM25 index in SQLite FTS5 → scores of a question. Does not know how scores are used.

One contentless table in a database of its own, made once and never changed. Each row is a block: its header
(heading path, page) and its text, as two columns with weights of their own. kept.py brings it to disk.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from localctx.errors import LocalctxError
from localctx.index.query import Term, parse_query, variants
from localctx.index.terms import clean, content_words, pair_runs
from localctx.values import Scores

__all__ = ["CACHE_KIB", "Hits", "Indexable", "LexicalIndex"]

HEADER_WEIGHT = 0.25
BODY_WEIGHT = 1.0
BACKGROUND_SHARE = 0.3
MAX_TERMS = 48
CACHE_KIB = 32 * 1024
HASH_BYTES = 16 << 20
"""Words that FTS5 collects before it writes them: fewer parts to merge, 30% less time than its default."""


class Indexable(Protocol):
    """What is indexed of a block, and of a passage."""

    @property
    def text(self) -> str:
        """Its text."""

    @property
    def heading_path(self) -> tuple[str, ...]:
        """Titles of the sections it is in."""

    @property
    def page(self) -> int | None:
        """Its page, from 1; None without pages."""

    @property
    def page_label(self) -> str | None:
        """The page's printed label."""


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
    """BM25 over blocks. A selector: `name` and `scores(question)`. Close it, or use `with`.

    Used by the thread that made it.
    """

    name = "lexical"

    def __init__(self, connection: sqlite3.Connection, n_blocks: int) -> None:
        """Over a table that build() made; the connection is closed with this."""
        self._connection = connection
        self._n_blocks = n_blocks

    @classmethod
    def build(cls, blocks: Iterable[Indexable], *, language: str | None = None) -> Self:
        """Index `blocks` (streamed; numbered from 0) in a temporary database that SQLite spills to disk and
        deletes.

        English stemming is on unless `language` names another language. Raises LocalctxError when the disk
        refuses.
        """
        connection = sqlite3.connect("", isolation_level=None)
        try:
            for setting in (f"cache_size = -{CACHE_KIB}", "journal_mode = OFF", "synchronous = OFF"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute("BEGIN")
            columns = f"header, body, content='', tokenize={_tokenizer(language)}"
            connection.execute(f"CREATE VIRTUAL TABLE lexical USING fts5({columns})")
            connection.execute("INSERT INTO lexical(lexical, rank) VALUES ('hashsize', ?)", [HASH_BYTES])
            n_blocks = _insert(connection, blocks)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            connection.close()
            raise LocalctxError(f"temporary lexical index: {error}", "free some disk space") from error
        except BaseException:
            connection.close()
            raise
        return cls(connection, n_blocks)

    def copy_to(self, connection: sqlite3.Connection) -> None:
        """Fill an empty database with this one. Raises sqlite3.Error."""
        self._connection.backup(connection)

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

    def shares(self, question: str) -> tuple[float, ...]:
        """How much of the question each block holds: of its terms, weighed by rarity, a share in [0, 1].

        A term that no block holds counts as the rarest: of a question in other words than the document's no
        block holds much.
        """
        query = parse_query(question)
        terms = self._rarest(query.focus) if len(query.focus) > MAX_TERMS else list(query.focus)
        held, total = [0.0] * self._n_blocks, 0.0
        for term in terms:
            rows = self._connection.execute(
                "SELECT rowid FROM lexical WHERE lexical MATCH ?", (term.expression,)
            ).fetchall()
            weight = term.weight * math.log(1 + (self._n_blocks - len(rows) + 0.5) / (len(rows) + 0.5))
            total += weight
            for (index,) in rows:
                held[index] += weight
        return tuple(value / total if total else 0.0 for value in held)

    def holders(self, question: str) -> list[tuple[float, tuple[int, ...]]]:
        """Of each term of the question how much it counts and the blocks that hold it. The terms, at most
        MAX_TERMS, are the same in every index.
        """
        return [
            (
                term.weight,
                tuple(
                    index
                    for (index,) in self._connection.execute(
                        "SELECT rowid FROM lexical WHERE lexical MATCH ? ORDER BY rowid", (term.expression,)
                    )
                ),
            )
            for term in parse_query(question).focus[:MAX_TERMS]
        ]

    def holding(self, phrase: str, most: int) -> tuple[int, ...]:
        """The blocks whose text holds the phrase, in any spelling of its numbers; none where more than `most`
        do.
        """
        expression = " OR ".join(term.expression for term in variants(phrase))
        if not expression:
            return ()
        rows = self._connection.execute(
            "SELECT rowid FROM lexical WHERE lexical MATCH ? ORDER BY rowid LIMIT ?",
            (f"body : ({expression})", most + 1),
        ).fetchall()
        return tuple(number for (number,) in rows) if len(rows) <= most else ()

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
            "SELECT rowid, bm25(lexical, ?, ?) FROM lexical WHERE lexical MATCH ?",
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
            "SELECT count(*) FROM lexical WHERE lexical MATCH ?", (term.expression,)
        ).fetchone()
        return int(row[0])


def _tokenizer(language: str | None) -> str:
    """FTS5's tokenizer as an SQL string. Marks are parts of words: without them Hindi falls apart."""
    words = "unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc''"
    english = language is None or language.lower().startswith("en")
    return f"'porter {words}'" if english else f"'{words}'"


def _insert(connection: sqlite3.Connection, blocks: Iterable[Indexable]) -> int:
    """Add the blocks' rows; returns their number."""
    n_blocks = 0

    def rows() -> Iterator[tuple[int, str, str]]:
        nonlocal n_blocks
        for block in blocks:
            yield n_blocks, pair_runs(clean(_header(block))), pair_runs(clean(block.text))
            n_blocks += 1

    connection.executemany("INSERT INTO lexical(rowid, header, body) VALUES (?, ?, ?)", rows())
    return n_blocks


def _header(block: Indexable) -> str:
    """What the header column holds: headings and page."""
    page = block.page_label or (str(block.page) if block.page is not None else "")
    return "\n".join([*block.heading_path, f"page {page}" if page else ""])
