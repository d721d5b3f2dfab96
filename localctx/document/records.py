"""The records of a structured document, one by one in bounded memory: its rows, array members or elements.

A record's fields are flat: what is nested has the names on its way, joined by points. Knows no questions.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from localctx.document.document import Document

__all__ = ["MAX_RECORD", "DamagedRecords", "Record", "Records", "flat_fields", "has_records"]

MAX_RECORD = 16 << 20
"""Characters of one record."""
_READERS = {"json": "records_json", "jsonl": "records_json", "csv": "records_csv", "xml": "records_xml"}


@dataclass(frozen=True, slots=True)
class Record:
    """Code points [start, end) of a document, what the document calls it, and its fields: strings, numbers,
    booleans, None, or lists of them.
    """

    start: int
    end: int
    kind: str
    fields: Mapping[str, Any]


class DamagedRecords(Exception):
    """The text is not well-formed, or a record too large; the reason is a phrase."""


@dataclass(slots=True)
class Records:
    """Read a document's records by iterating, once. n_skipped: rows that are none, so far; damage: why not
    all could be read, None where they could.
    """

    document: Document
    n_records: int = 0
    n_skipped: int = 0
    damage: str | None = None
    kinds: dict[str, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Record]:
        if not has_records(self.document):
            return
        module = importlib.import_module(f"localctx.document.{_READERS[self.document.format]}")
        try:
            for record in cast(_Reader, module).records(self.document, self):
                self.n_records += 1
                self.kinds[record.kind] = self.kinds.get(record.kind, 0) + 1
                yield record
        except DamagedRecords as error:
            self.damage = str(error)


class _Reader(Protocol):
    def records(self, document: Document, report: Records) -> Iterator[Record]:
        """The records in order, counting in `report` what is skipped. Raises DamagedRecords."""


def has_records(document: Document) -> bool:
    """Whether the document's format is one whose records are read."""
    return document.format in _READERS


def flat_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a JSON object: members of members by their joined names, lists of objects as lists."""
    if not any(isinstance(one, (dict, list)) for one in value.values()):
        return dict(value)
    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [(str(key), one) for key, one in reversed(list(value.items()))]
    while waiting:
        name, one = waiting.pop()
        if isinstance(one, dict):
            waiting += [(f"{name}.{key}", inner) for key, inner in reversed(list(one.items()))]
        elif isinstance(one, list) and any(isinstance(item, (dict, list)) for item in one):
            for item in reversed(one):
                waiting.append((name, item))
        elif name in found:
            before = found[name] if isinstance(found[name], list) else [found[name]]
            found[name] = [*before, *(one if isinstance(one, list) else [one])]
        else:
            found[name] = one
    return found
