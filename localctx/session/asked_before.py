"""A question that was asked before → its answer, where nothing differs that the answer depends on.

The key of a question is a hash of all of that: the program's and llama.cpp's version, the documents' text,
names, pages and sections, the model, the settings, the models that choose passages, and what the store holds.
Knows no terminal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import xxhash

from localctx import __version__
from localctx.document import Document
from localctx.package_version import package_version
from localctx.selection import Statement
from localctx.session.answer import Answer, DocumentCoverage, RecordCounts
from localctx.session.events import Event, Finished, Notice, Text
from localctx.session.landmarks import HEADS_FACT
from localctx.session.private_database import folder_of
from localctx.session.provenance import Citation, Coverage, Pulled
from localctx.session.question_log import LoggedQuestion, LogUnusable, QuestionLog
from localctx.session.verdicts import VERDICT_FACT
from localctx.settings import Settings
from localctx.store import KVStore, StoreUnusable
from localctx.values import ModelInfo

__all__ = ["Asked", "History", "answered_before", "logged"]

NO_MATTER = frozenset(
    {"store", "store_limit", "password_file", "encoding", "ocr", "offline", "history", "fresh", "parallel"}
)
"""Settings that no answer depends on, or that show in the documents' text."""
HASH_LENGTH = 32
STREAMS = ("-", "/dev/", "/proc/")


@dataclass(frozen=True, slots=True)
class Asked:
    """A command with everything that its answer depends on. wording: the question, or what a summary is told
    · choosers: files of the models that choose passages · is_batched: answered beside other questions.
    """

    command: str
    wording: tuple[str, ...]
    documents: tuple[Document, ...]
    model: ModelInfo
    settings: Settings
    choosers: tuple[Path, ...] = ()
    is_batched: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether it may be written down: not what a password opened, nor what came through a pipe."""
        return (
            self.settings.history
            and self.settings.password_file is None
            and not any(document.source.startswith(STREAMS) for document in self.documents)
        )

    def key(self) -> str:
        """Two hashes, of all else and of the store; "" where no answer can be relied on: another server may
        have changed.
        """
        if self.settings.backend != "llama":
            return ""
        settings = {
            field.name: getattr(self.settings, field.name)
            for field in fields(Settings)
            if field.name not in NO_MATTER
        }
        facts = {
            "versions": [__version__, package_version("llama-cpp-python")],
            "asked": [self.command, *self.wording, self.is_batched],
            "documents": [facts_of(document) for document in self.documents],
            "model": [
                self.model.name,
                self.model.fingerprint,
                self.model.n_ctx_train,
                asdict(self.model.rope),
            ],
            "settings": settings,
            "files": [state_of(path) for path in self._files()],
        }
        store = store_state(self.settings, self.model.fingerprint, self.documents)
        return "".join(
            xxhash.xxh3_128_hexdigest(json.dumps(part, sort_keys=True).encode()) for part in (facts, store)
        )

    def _files(self) -> tuple[Path, ...]:
        """Files besides the documents and the model that shape the answer."""
        schema = self.settings.schema
        return (*self.choosers, *([] if schema is None else [Path(schema)]))


def facts_of(document: Document) -> list[object]:
    """What of a document an answer depends on; pages and sections as one hash."""
    layout = [[asdict(page) for page in document.pages], [asdict(one) for one in document.sections]]
    shape = xxhash.xxh3_128_hexdigest(json.dumps(layout).encode())
    return [document.source, document.content_hash, document.format, shape, list(document.warnings)]


def state_of(path: Path) -> list[object]:
    """A file by name, size and time of change."""
    try:
        status = path.stat()
    except OSError:
        return [str(path)]
    return [str(path.absolute()), status.st_size, status.st_mtime_ns, status.st_ino]


def store_state(settings: Settings, fingerprint: str, documents: Sequence[Document]) -> list[object]:
    """What in the store decides how a question is answered: whole documents, and the model's verdict."""
    root = settings.store_root
    if root is None or not (root / "kv" / "catalogue.sqlite3").is_file():
        return []
    hashes = {document.content_hash for document in documents}
    try:
        with KVStore.open(root, 1 << 62, create=False) as store:
            whole = sorted(
                json.dumps([one.identity.text_hash, asdict(one.identity.policy), sorted(one.codecs)])
                for one in store.documents()
                if one.identity.text_hash in hashes
                and one.identity.policy.kind != "lazy"
                and one.n_tokens_stored >= one.identity.n_tokens
            )
            facts = store.model_facts(fingerprint)
    except StoreUnusable as error:
        return ["unusable", error.message]
    return [whole, facts.get(VERDICT_FACT), facts.get(HEADS_FACT)]


class History:
    """The log of a run, opened when it is needed; what goes wrong with it `warn` tells, it is no error."""

    def __init__(self, settings: Settings, warn: Callable[[str], None]) -> None:
        self._folder = folder_of(settings) if settings.history else None
        self._is_fresh = settings.fresh
        self._warn = warn

    def find(self, asked: Asked) -> tuple[str, Answer | None]:
        """The question's key, and its answer from the log, if it is there."""
        if self._folder is None or not asked.is_kept:
            return "", None
        key = asked.key()
        if not key or self._is_fresh or not (self._folder / QuestionLog.FILE).exists():
            return key, None
        try:
            with QuestionLog(self._folder) as log:
                entry = log.find(key)
            return key, None if entry is None else answer_of(entry, asked.model)
        except LogUnusable as error:
            self._warn(f"{error.message}; localctx log clear removes them")
        except (KeyError, TypeError, ValueError):
            self._warn("an entry of the log of questions is damaged: answered anew")
        return key, None

    def add(self, asked: Asked, key: str, answer: Answer) -> None:
        """Write an answer down. `key`: as it was before the question was answered."""
        if self._folder is None or not asked.is_kept or answer.finish_reason == "cancelled":
            return
        now = asked.key()
        is_of_store = answer.strategy in ("exact", "stream") and now[:HASH_LENGTH] == key[:HASH_LENGTH]
        if now != key and not is_of_store:
            now = ""  # something changed meanwhile, and not by this answer
        sources = tuple(document.source for document in asked.documents)
        wording = asked.wording[0] if asked.wording else ""
        entry = LoggedQuestion(now, asked.command, wording, sources, asked.model.name, answer.to_json())
        try:
            with QuestionLog(self._folder) as log:
                log.add(entry)
        except LogUnusable as error:
            self._warn(f"the answer was not written to the log: {error.message}")


def logged(history: History, asked: Asked, answer: Callable[[], Iterator[Event]]) -> Iterator[Event]:
    """The answer from the log where it is there, else the events of `answer`, which are written down."""
    key, found = history.find(asked)
    if found is not None:
        yield from answered_before(found)
        return
    for event in answer():
        yield event
        if isinstance(event, Finished):
            history.add(asked, key, event.answer)


def answered_before(answer: Answer) -> Iterator[Event]:
    """The events of an answer that is there already."""
    yield from map(Notice, answer.warnings)
    yield Text(answer.text)
    yield Finished(answer)


def answer_of(entry: LoggedQuestion, model: ModelInfo) -> Answer:
    """The answer of an entry; nothing was evaluated for it. Raises KeyError, TypeError, ValueError."""
    value = entry.record
    return Answer(
        command=value["command"],
        text=str(value["answer"]),
        strategy=value["strategy"],
        support=value["support"],
        finish_reason=value["finish_reason"],
        model=replace(model, devices=()),
        n_ctx=int(value["model"]["n_ctx"]),
        coverage=coverage_of(value["coverage"]),
        question=value["question"],
        requested=dict(value["model"]["requested"]),
        citations=tuple(citation_of(one) for one in value["citations"]),
        statements=tuple(Statement(one["start"], one["end"], one["support"]) for one in value["statements"]),
        documents=tuple(
            DocumentCoverage(one["source"], coverage_of(one["coverage"]))
            for one in value.get("documents", ())
        ),
        warnings=tuple(value["warnings"]),
        selection=value.get("selection"),
        records=RecordCounts(**value["records"]) if "records" in value else None,
        asked_at=entry.at,
    )


def coverage_of(value: dict[str, Any]) -> Coverage:
    """A coverage from its JSON."""
    named = {name: tuple(value[name]) for name in ("pages_without_text", "pages_by_ocr")}
    pulled = tuple(Pulled(**one) for one in value["pulled_in_by_reference"])
    return Coverage(**{**value, **named, "pulled_in_by_reference": pulled})


def citation_of(value: dict[str, Any]) -> Citation:
    """A citation from its JSON."""
    return Citation(**{**value, "heading_path": tuple(value["heading_path"])})
