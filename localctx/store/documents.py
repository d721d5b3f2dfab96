"""The catalogue's documents: which runs make up which document, when it was used, what it takes. No files."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from localctx.kv import RUN_TOKENS, KVSpace, PrefillPolicy
from localctx.store.catalogue import Catalogue
from localctx.store.records import HASH_SEPARATOR, DocumentIdentity, StoredDocument

__all__ = [
    "enter_document",
    "forget_document",
    "held_bytes",
    "known_texts",
    "list_documents",
    "mark_used",
    "remove_unreferenced",
]

UNREFERENCED = "NOT EXISTS (SELECT 1 FROM document_runs WHERE document_runs.id = runs.id)"
DOCUMENTS = """
SELECT key, name, path, text_hash, n_bytes, n_tokens, model, space, policy, created, last_used,
    (SELECT coalesce(sum(tokens), 0) FROM (
        SELECT max(runs.n_tokens) AS tokens, CASE json_extract(documents.policy, '$.kind')
            WHEN 'lazy' THEN ordinal % max(1, (documents.n_tokens + :run - 1) / :run)
            ELSE ordinal END AS place
        FROM document_runs JOIN runs USING (id)
        WHERE document_runs.document = documents.document GROUP BY place)),
    (SELECT count(DISTINCT ordinal) FROM document_runs JOIN runs USING (id)
        WHERE document_runs.document = documents.document),
    (SELECT coalesce(sum(size_bytes), 0) FROM runs WHERE id IN (
        SELECT id FROM document_runs WHERE document_runs.document = documents.document)) +
    (SELECT coalesce(sum(size_bytes), 0) FROM artifacts WHERE artifacts.document = documents.document),
    (SELECT group_concat(DISTINCT codec) FROM document_runs JOIN runs USING (id)
        WHERE document_runs.document = documents.document)
FROM documents
""".replace(":run", str(RUN_TOKENS))
"""Each grid of a lazy document has ordinals of its own for the same tokens."""
HELD = """
SELECT coalesce((SELECT sum(size_bytes) FROM runs WHERE id IN (
        SELECT id FROM document_runs WHERE document IN (SELECT document FROM held))), 0) +
    coalesce((SELECT sum(size_bytes) FROM artifacts
        WHERE document IS NULL OR document IN (SELECT document FROM held)), 0)
"""


def enter_document(
    connection: sqlite3.Connection, document: DocumentIdentity, run_ids: Iterable[tuple[int, bytes]]
) -> int:
    """Enter or refresh a document and the (ordinal, run id) given, in a transaction; its row number."""
    now = time.time()
    connection.execute(
        "INSERT INTO documents (key, name, path, text_hash, n_bytes, n_tokens, model, space, policy, state,"
        " created, last_used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'partial', ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET name = excluded.name, path = excluded.path, model = excluded.model,"
        " n_tokens = excluded.n_tokens, last_used = excluded.last_used",
        (
            document.key,
            document.name,
            document.path,
            document.text_hash,
            document.n_bytes,
            document.n_tokens,
            document.model,
            json.dumps(asdict(document.space)),
            json.dumps(asdict(document.policy)),
            now,
            now,
        ),
    )
    (number,) = connection.execute("SELECT document FROM documents WHERE key = ?", [document.key]).fetchone()
    connection.executemany(
        "INSERT OR REPLACE INTO document_runs VALUES (?, ?, ?)",
        [(number, ordinal, run_id) for ordinal, run_id in run_ids],
    )
    return int(number)


def has_document(connection: sqlite3.Connection, key: str) -> bool:
    """Whether the document has its row, seen from inside a transaction."""
    return connection.execute("SELECT 1 FROM documents WHERE key = ?", [key]).fetchone() is not None


def mark_state(connection: sqlite3.Connection, number: int) -> None:
    """Note whether all the document's runs are kept."""
    connection.execute(
        "UPDATE documents SET state = CASE WHEN EXISTS (SELECT 1 FROM document_runs WHERE document = ?1"
        " AND id NOT IN (SELECT id FROM runs)) THEN 'partial' ELSE 'complete' END WHERE document = ?1",
        [number],
    )


def list_documents(catalogue: Catalogue, key: str | None = None) -> list[StoredDocument]:
    """Every document, the last used first; or the one of the key."""
    where, values = (" WHERE key = ?", [key]) if key is not None else ("", [])
    rows = catalogue.query(f"{DOCUMENTS}{where} ORDER BY last_used DESC", values)
    return [_document(row) for row in rows]


def is_listed(catalogue: Catalogue, key: str) -> bool:
    """Whether there is a document of the key: known at once, where listing it counts all its runs."""
    return bool(catalogue.query("SELECT 1 FROM documents WHERE key = ?", [key]))


def held_bytes(catalogue: Catalogue, keys: Sequence[str]) -> int:
    """Bytes that stay when all documents go but those of `keys`, without headers."""
    held = "WITH held AS (SELECT document FROM documents WHERE key IN (SELECT value FROM json_each(?)))"
    return int(catalogue.query(held + HELD, [json.dumps(list(keys))])[0][0])


def document_runs(catalogue: Catalogue, key: str) -> list[tuple[int, bytes]]:
    """(ordinal, run id) of a document, in order, kept or not."""
    return catalogue.query(
        "SELECT ordinal, id FROM document_runs JOIN documents USING (document)"
        " WHERE key = ? ORDER BY ordinal",
        [key],
    )


def keys_with_run(catalogue: Catalogue, run_id: bytes) -> list[str]:
    """The documents that a run is part of."""
    rows = catalogue.query(
        "SELECT DISTINCT key FROM document_runs JOIN documents USING (document) WHERE id = ?", [run_id]
    )
    return [key for (key,) in rows]


def mark_used(catalogue: Catalogue, keys: Iterable[str]) -> None:
    """Note that the documents were used now."""
    now = time.time()
    with catalogue.transaction() as connection:
        connection.executemany(
            "UPDATE documents SET last_used = ? WHERE key = ?", [(now, key) for key in keys]
        )


def known_texts(catalogue: Catalogue) -> set[str]:
    """Hashes of the texts of all documents."""
    rows = catalogue.query("SELECT DISTINCT text_hash FROM documents")
    return {text_hash for (joined,) in rows for text_hash in joined.split(HASH_SEPARATOR)}


def forget_document(connection: sqlite3.Connection, key: str) -> tuple[str, ...]:
    """Remove a document's row, its runs that no other document has, and what was derived from it; the hashes
    of its texts.
    """
    found = connection.execute("SELECT document, text_hash FROM documents WHERE key = ?", [key]).fetchone()
    if found is None:
        return ()
    row, text_hashes = found[:1], tuple(found[1].split(HASH_SEPARATOR))
    ids = connection.execute("SELECT DISTINCT id FROM document_runs WHERE document = ?", row).fetchall()
    connection.execute("DELETE FROM documents WHERE document = ?", row)
    connection.executemany(f"DELETE FROM runs WHERE id = ? AND {UNREFERENCED}", ids)  # noqa: S608  # a constant
    return text_hashes


def remove_unreferenced(connection: sqlite3.Connection) -> int:
    """Remove runs that no document has; how many."""
    return connection.execute(f"DELETE FROM runs WHERE {UNREFERENCED}").rowcount  # noqa: S608  # a constant


def remove_empty_segments(connection: sqlite3.Connection) -> list[str]:
    """Remove the rows of segments in which nothing lies any more; their names."""
    names = connection.execute(
        "SELECT name FROM segments WHERE NOT EXISTS"
        " (SELECT 1 FROM runs WHERE runs.segment = segments.segment) AND NOT EXISTS"
        " (SELECT 1 FROM artifacts WHERE artifacts.segment = segments.segment)"
    ).fetchall()
    connection.executemany("DELETE FROM segments WHERE name = ?", names)
    return [name for (name,) in names]


def _document(row: tuple[Any, ...]) -> StoredDocument:
    key_to_space = json.loads(row[7])
    identity = DocumentIdentity(
        space=KVSpace(key_to_space["model"], key_to_space["rope"], tuple(key_to_space["prefix"])),
        policy=PrefillPolicy(**json.loads(row[8])),
        name=row[1],
        path=row[2],
        text_hash=row[3],
        n_bytes=row[4],
        n_tokens=row[5],
        model=row[6],
    )
    return StoredDocument(
        identity=identity,
        created=row[9],
        last_used=row[10],
        n_tokens_stored=row[11],
        n_runs=row[12],
        size_bytes=row[13],
        codecs=tuple(sorted((row[14] or "").split(","))) if row[14] else (),
    )
