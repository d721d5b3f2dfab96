"""Records of structured documents that fulfil a schema, read by their parser: fields are properties."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from localctx.document import Document
from localctx.document.records import Record, Records, has_records
from localctx.selection.record_fields import field_names
from localctx.selection.record_schema import RecordSchema
from localctx.session.citing import cite
from localctx.session.events import Listener, Progress
from localctx.session.extraction import FoundRecord, Passed

__all__ = ["is_parsed", "parsed_records"]

SAMPLE_RECORDS = 1000
REPORT_EVERY = 4096


@dataclass(slots=True)
class _Mapping:
    """Which property a field is, found out as fields come."""

    schema: RecordSchema
    names: dict[str, str] = field(init=False)
    known: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        forms = field_names(self.schema.properties)
        self.names = {form: next(iter(names)) for form, names in forms.items() if len(names) == 1}

    def property_of(self, name: str) -> str | None:
        """The property that a field stands for."""
        if name not in self.known:
            forms = field_names([name])
            exact = name if name in self.schema.properties else None
            self.known[name] = exact or next((self.names[form] for form in forms if form in self.names), None)
        return self.known[name]

    def value_of(self, record: Record) -> dict[str, Any]:
        """A record's properties, in the schema's order and types."""
        found: dict[str, Any] = {}
        for name, value in record.fields.items():
            place = self.property_of(name)
            if place is None or (place in found and name != place):
                continue
            found[place] = self.schema.made_fit(value, self.schema.properties[place])
        return {name: found[name] for name in self.schema.properties if name in found}


def is_parsed(document: Document, schema: RecordSchema) -> bool:
    """Whether the document's records have fields for all that the schema requires; without anything required,
    for at least one property.
    """
    if not has_records(document) or not schema.properties:
        return False
    mapping, found = _Mapping(schema), set[str]()
    for record in itertools.islice(Records(document), SAMPLE_RECORDS):
        found.update(place for name in record.fields if (place := mapping.property_of(name)) is not None)
        if found and schema.required <= found:
            return True
    return False


def parsed_records(
    document: Document, schema: RecordSchema, passed: Passed, warn: Callable[[str], None], listen: Listener
) -> Iterator[FoundRecord]:
    """The document's records that fulfil the schema, in order, in bounded memory; what is none is counted."""
    mapping, report = _Mapping(schema), Records(document)
    total = document.text.n_code_points
    for number, record in enumerate(report):
        if number % REPORT_EVERY == 0:
            listen(Progress("reading records", record.start, total, "characters"))
        passed.n_units += 1
        passed.n_read += 1
        value = mapping.value_of(record)
        if not value or not schema.fulfils(value, _closed(schema.record)):
            passed.n_unfit += 1
            continue
        yield FoundRecord(value, (cite(document, record.start, record.end, 1.0),), "parser")
    passed.n_broken += report.n_skipped
    if report.n_skipped:
        lines = "line is no record" if report.n_skipped == 1 else "lines are no records"
        warn(f"{document.source}: {report.n_skipped:,} {lines}")
    if report.damage is not None:
        warn(f"{document.source}: not all records could be read: {report.damage}")


def _closed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**schema, "type": "object"}
