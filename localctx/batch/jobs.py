"""A stream of JSON Lines → jobs and bad rows, each with its line number. Pure; reads no document.

A bad row never ends the reading, and no line is held in memory beyond MAX_LINE_BYTES.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeAlias

import xxhash

from localctx.engine.json_schema import grammar_of
from localctx.errors import InputError, UsageError
from localctx.settings import nearest
from localctx.small_text import finite_number, refuse_constant

__all__ = ["BadRow", "Identifier", "Job", "read_jobs"]

MAX_LINE_BYTES = 1 << 20
MAX_TOKENS = 1 << 24
KEYS = ("id", "documents", "question", "schema", "max_tokens")
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
Identifier: TypeAlias = str | int | None


@dataclass(frozen=True, slots=True)
class Job:
    """One question of documents, by the names written in its row; () where it is asked of every document.

    schema: a JSON schema as compact JSON.
    """

    line: int
    id: Identifier
    documents: tuple[str, ...]
    question: str
    schema: str | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no job, and why; `digest` is of its bytes."""

    line: int
    id: Identifier
    reason: str
    digest: str


def read_jobs(stream: BinaryIO, *, has_documents: bool = False) -> Iterator[Job | BadRow]:
    """The rows; blank lines are passed over. has_documents: a row may leave its documents out.

    Raises InputError for a file in UTF-16, OSError.
    """
    line = 0
    while data := stream.readline(MAX_LINE_BYTES + 1):
        line += 1
        hasher, n_bytes = xxhash.xxh3_128(data), len(data)
        if line == 1:
            if data.startswith(UTF16_MARKS):
                raise InputError("the jobs are in UTF-16", "save them as UTF-8")
            data = data.removeprefix(codecs.BOM_UTF8)
        if n_bytes > MAX_LINE_BYTES:
            while not data.endswith(b"\n") and (data := stream.readline(MAX_LINE_BYTES)):
                hasher.update(data)
                n_bytes += len(data)
            reason = f"a line of {n_bytes:,} bytes; at most {MAX_LINE_BYTES:,} are read"
            yield BadRow(line, None, reason, hasher.hexdigest())
        elif data.strip(b" \t\r\n"):
            yield _row(line, data, hasher.hexdigest(), has_documents)


def _row(line: int, data: bytes, digest: str, has_documents: bool) -> Job | BadRow:
    """The job of a line, or what is wrong with it."""
    try:
        row = json.loads(
            data.decode("utf-8").strip(), parse_constant=refuse_constant, parse_float=finite_number
        )
    except UnicodeDecodeError as error:
        return BadRow(line, None, f"not UTF-8 (byte {error.start + 1} of the line)", digest)
    except json.JSONDecodeError as error:
        return BadRow(line, None, f"not JSON: {error.msg} (column {error.colno})", digest)
    except ValueError as error:
        return BadRow(line, None, f"not JSON: {error}", digest)
    except RecursionError:
        return BadRow(line, None, "nested too deeply", digest)
    if not isinstance(row, dict):
        return BadRow(line, None, f"{_kind(row)}, not an object with a question", digest)
    found = row.get("id")
    identifier = found if isinstance(found, str | int) and not isinstance(found, bool) else None
    reason = _fault(row, has_documents)
    if reason is not None:
        return BadRow(line, identifier, reason, digest)
    documents = row.get("documents", [])
    names = (documents,) if isinstance(documents, str) else tuple(documents)
    schema = row.get("schema")
    text = None if schema is None else json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return Job(line, identifier, names, row["question"].strip(), text, row.get("max_tokens"))


def _fault(row: Mapping[str, Any], has_documents: bool) -> str | None:
    """What keeps an object from being a job."""
    for key in row:
        if key not in KEYS:
            return f"unknown key {key!r}{nearest(key, KEYS)}"
    if isinstance(row.get("id"), bool) or not isinstance(row.get("id"), str | int | None):
        return "id is neither text nor a whole number"
    question = row.get("question")
    if not isinstance(question, str) or not question.strip():
        return "there is no question" if question is None else "question is not a text with something in it"
    if not _is_text(question) or not _is_text(str(row.get("id"))):
        return "holds half of a surrogate pair"
    max_tokens = row.get("max_tokens", 1)
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or not 1 <= max_tokens <= MAX_TOKENS:
        return f"max_tokens is not a whole number from 1 to {MAX_TOKENS}"
    return _document_fault(row.get("documents"), has_documents) or _schema_fault(row.get("schema"))


def _document_fault(documents: object, has_documents: bool) -> str | None:
    if documents is None:
        return None if has_documents else "there are no documents"
    names = [documents] if isinstance(documents, str) else documents
    if not isinstance(names, list) or not names or not all(isinstance(one, str) and one for one in names):
        return "documents is not a list of file names"
    if not all(map(_is_text, names)):
        return "documents holds half of a surrogate pair"
    if "-" in names:
        return "standard input (-) cannot be a job's document"
    return None


def _schema_fault(schema: object) -> str | None:
    if schema is None:
        return None
    try:
        grammar_of(schema)
    except UsageError as error:
        return error.message
    return None


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    kinds = {list: "an array", str: "a text", bool: "a truth value", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")
