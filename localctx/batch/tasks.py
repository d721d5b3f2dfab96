"""Jobs → tasks: where their documents lie, and a key that changes with the job and its documents' content."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import xxhash

from localctx.batch.jobs import BadRow, Identifier, Job
from localctx.document.source import open_path
from localctx.errors import InputError, LocalctxError

__all__ = ["Corpus", "Found", "Task", "error_json", "tasks_of"]

CHUNK_BYTES = 1 << 20
HINT_BAD_ROW = 'a row is {"id": …, "documents": ["FILE", …], "question": "…"}'


@dataclass(frozen=True, slots=True)
class Found:
    """A document of the folder that questions are asked of; `problem`: why it cannot be read."""

    name: str
    path: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """The folder that documents' names are relative to ("" for the current one), and what lies in it."""

    folder: str = ""
    found: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A job as it is worked on: one line of the results.

    key: hash of the job with its id and its documents' content · content: the same without the id ·
    documents: paths · place: hash of the documents alone: tasks of one place share a prefill ·
    problem: (type, message, hint) of what is known to keep it from being answered · blocks: running numbers
    of the blocks to answer from, where they are chosen already.
    """

    line: int
    id: Identifier
    key: str
    content: str
    question: str
    documents: tuple[str, ...] = ()
    place: str = ""
    schema: str | None = None
    max_tokens: int | None = None
    problem: tuple[str, str, str] | None = None
    blocks: tuple[int, ...] | None = None

    @property
    def is_job(self) -> bool:
        """False for a line that cannot be read as one: it is the same line as long as its key is the same."""
        return bool(self.place)

    def to_json(self) -> dict[str, Any]:
        """As a value that from_json() takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """What to_json() gave, after JSON."""
        lists = {name: item for name, item in value.items() if isinstance(item, list)}
        return cls(**{**value, **{name: tuple(item) for name, item in lists.items()}})


@dataclass(slots=True)
class _Digests:
    """Hashes of documents' bytes, each file read once."""

    known: dict[str, str | LocalctxError] = field(default_factory=dict)

    def of(self, path: str) -> str | LocalctxError:
        """The hash, or why the file cannot be read."""
        if path not in self.known:
            self.known[path] = _digest(path)
        return self.known[path]


def _digest(path: str) -> str | LocalctxError:
    try:
        source = open_path(path)
    except LocalctxError as error:
        return error
    hasher = xxhash.xxh3_128()
    try:
        with open(source.file.fileno(), "rb", closefd=False) as file:  # it is open already
            while chunk := file.read(CHUNK_BYTES):
                hasher.update(chunk)
    except OSError as error:
        return InputError(f"{source.name}: {(error.strerror or str(error)).lower()}")
    finally:
        source.close()
    return hasher.hexdigest()


def tasks_of(
    rows: Iterable[Job | BadRow], corpus: Corpus, default_schema: str | None = None
) -> Iterator[Task]:
    """The tasks of the rows, in order: one a row, or one a document of the corpus for a row without any.

    default_schema: what answers of rows without a schema of their own fulfil.
    """
    digests = _Digests()
    for row in rows:
        if isinstance(row, BadRow):
            key = _hash(["bad", row.id, row.digest])
            problem = ("BadRow", f"line {row.line}: {row.reason}", HINT_BAD_ROW)
            yield Task(row.line, row.id, key, key, "", problem=problem)
        elif row.documents:
            places = [Found(name, os.path.join(corpus.folder, name)) for name in row.documents]  # noqa: PTH118  # any name
            yield _task(row, row.id, places, digests, default_schema)
        else:
            for found in corpus.found:
                identifier = found.name if row.id is None else f"{row.id}:{found.name}"
                yield _task(row, identifier, [found], digests, default_schema)


def _task(
    job: Job, identifier: Identifier, places: Sequence[Found], digests: _Digests, default_schema: str | None
) -> Task:
    """One question of documents, with its keys."""
    problem: tuple[str, str, str] | None = None
    contents = []
    for place in places:
        digest = InputError(place.problem) if place.problem else digests.of(place.path)
        if isinstance(digest, LocalctxError):
            problem = problem or (digest.kind, digest.message, digest.hint)
            digest = f"unread: {digest.message}"
        contents.append([place.name, digest])
    schema = job.schema or default_schema
    said = [job.question, schema, job.max_tokens, contents]
    return Task(
        line=job.line,
        id=identifier,
        key=_hash([identifier, *said]),
        content=_hash(said),
        question=job.question,
        documents=tuple(place.path for place in places),
        place=_hash(contents),
        schema=schema,
        max_tokens=job.max_tokens,
        problem=problem,
    )


def _hash(value: object) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(value).encode())


def error_json(kind: str, message: str, hint: str = "") -> dict[str, Any]:
    """The row of a task that failed, without what all rows have."""
    return {"schema": "localctx.error/1", "error": {"type": kind, "message": message, "hint": hint}}
