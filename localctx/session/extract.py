"""`extract`: every record of the documents that fulfils a JSON schema, merged, with where it stands.

Records of structured files are read by their parser, those in running text by the model, sentence by
sentence.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

from localctx.document import Document
from localctx.errors import UsageError
from localctx.index.terms import fold
from localctx.selection.record_schema import RecordSchema, record_schema
from localctx.session.answer import TokenCounts
from localctx.session.events import Event, Listener, Planned, ignore_progress
from localctx.session.extract_parsed import is_parsed, parsed_records
from localctx.session.extract_passages import N_SEQ, Passages
from localctx.session.extraction import Extraction, FoundRecord, How, Passed
from localctx.session.opening import introduce, sum_coverage
from localctx.session.provenance import Coverage
from localctx.session.run import Run, start
from localctx.session.strategy import check_strategy
from localctx.settings import Settings
from localctx.values import Model

__all__ = ["Told", "extract", "schema_of_records"]

Told: TypeAlias = Event | FoundRecord | Extraction
EXCHANGED_FROM = 2
"""In how many other records a value has to be that of another property."""
HINT = "--schema S.json, a JSON schema of one record: an object with properties"


def extract(
    documents: Sequence[Document], model: Model, settings: Settings, listen: Listener = ignore_progress
) -> Iterator[Told]:
    """Find all records, telling each; the last event is Extraction.

    Raises UsageError without a schema of an object, OutOfMemory, and what the documents raise.
    """
    check_strategy(settings.strategy, "extract")
    run = start(documents, model, settings, listen, settings.parallel or N_SEQ)
    schema = schema_of_records(run)
    yield from introduce(run)
    passed, size = Passed(), len(run.readings)
    passages = Passages(run, schema, passed, [0] * size, [0] * size)
    found: list[FoundRecord] = []
    how: set[How] = set()
    n_records = 0
    for reading in run.readings:
        if is_parsed(reading.document, schema):
            how.add("parser")
            for record in parsed_records(reading.document, schema, passed, run.note, listen):
                n_records += 1
                yield record
        elif not passages.is_cancelled:
            how.add("model")
            estimate = reading.estimate_tokens(model.tokenize)
            yield Planned("map-reduce", "every sentence that can hold a record is read", estimate, 0)
            found += yield from passages.records(reading)
    merged, passed.n_repeated = merge(exchanged(found, schema))
    yield from merged
    _warn(run, passages)
    yield from run.unheard()
    yield _outcome(run, passages, n_records + len(merged), frozenset(how))


def schema_of_records(run: Run) -> RecordSchema:
    """The schema of one record. Raises UsageError where there is none."""
    if run.schema is None:
        raise UsageError("extract needs the schema of a record", HINT)
    given = json.loads(run.schema.text)
    run.schema = None  # records have grammars of their own
    schema = record_schema(given) if isinstance(given, dict) else RecordSchema({}, {})
    if not schema.properties:
        raise UsageError("the schema has no properties, so that nothing says what a record is", HINT)
    return schema


def exchanged(found: Sequence[FoundRecord], schema: RecordSchema) -> list[FoundRecord]:
    """The records, those with two values the wrong way round put right: where one of them is a value of the
    other one's property in several records, and neither stands where it is in any other.
    """
    names = [name for name in schema.properties if schema.kinds(schema.properties[name]) == {"string"}]
    counts = Counter((name, fold(text)) for one in found for name in names if (text := _text_of(one, name)))
    kept = list(found)
    for n, record in enumerate(found):
        for one, other in combinations(names, 2):
            here, there = fold(_text_of(record, one)), fold(_text_of(record, other))
            is_known = counts[other, here] >= EXCHANGED_FROM or counts[one, there] >= EXCHANGED_FROM
            if here and there and is_known and counts[one, here] == counts[other, there] == 1:
                put_right = {one: record.value[other], other: record.value[one]}
                kept[n] = replace(record, value={**record.value, **put_right})
    return kept


def _text_of(record: FoundRecord, name: str) -> str:
    value = record.value.get(name)
    return value if isinstance(value, str) else ""


def merge(found: Sequence[FoundRecord]) -> tuple[list[FoundRecord], int]:
    """Each record once, with all its places, where the first of them stands: those that say the same, and
    those that say a part of another's values and nothing else; and how many were taken together.
    """
    members: dict[frozenset[tuple[str, str]], list[int]] = {}
    for number, record in enumerate(found):
        members.setdefault(frozenset(_facts(record).items()), []).append(number)
    wholes: dict[frozenset[tuple[str, str]], list[int]] = {}
    holders: dict[tuple[str, str], list[frozenset[tuple[str, str]]]] = defaultdict(list)
    for facts in sorted(members, key=len, reverse=True):
        # Whatever holds all of its values holds the rarest of them.
        rarest = min((holders.get(fact, ()) for fact in facts), key=len, default=())
        whole = next((other for other in rarest if facts < other), facts)
        wholes.setdefault(whole, []).extend(members[facts])
        if whole is facts:
            for fact in facts:
                holders[fact].append(facts)
    kept: list[tuple[int, FoundRecord]] = []
    for whole, numbers in wholes.items():
        places = dict.fromkeys(place for number in sorted(numbers) for place in found[number].citations)
        kept.append((min(numbers), replace(found[members[whole][0]], citations=tuple(places))))
    kept.sort(key=lambda one: one[0])
    return [record for _, record in kept], len(found) - len(kept)


def _facts(record: FoundRecord) -> dict[str, str]:
    """A record's values in comparable form, without those that are missing."""
    return {
        name: fold(json.dumps(value, ensure_ascii=False, sort_keys=True))
        for name, value in record.value.items()
        if value is not None and value not in ("", [])
    }


def _warn(run: Run, passages: Passages) -> None:
    """What the model wrote in vain; rows that are no records were told with their document."""
    if n := passages.passed.n_unheld:
        records = "record was left out: a value" if n == 1 else "records were left out: a value of theirs"
        run.note(f"{n:,} {records} does not stand in the text")
    if n := passages.n_broken:
        answers = "answer was cut or is no record" if n == 1 else "answers were cut or are no records"
        run.note(f"{n:,} {answers} (--max-tokens allows longer ones)")


def _outcome(run: Run, passages: Passages, n_records: int, how: frozenset[How]) -> Extraction:
    coverages = []
    for reading in run.readings:
        total, n_read = passages.n_tokens[reading.ordinal], passages.n_read[reading.ordinal]
        empty = reading.coverage(0, 0)
        coverages.append(
            replace(
                empty,
                tokens_total=total,
                tokens_read=n_read,
                tokens_attended=n_read,
                tokens_dropped=total - n_read,
            )
        )
    coverage: Coverage = sum_coverage(run.readings, coverages)[0]
    return Extraction(
        n_records=n_records,
        passed=replace(passages.passed, n_broken=passages.passed.n_broken + passages.n_broken),
        coverage=coverage,
        finish_reason="cancelled" if passages.is_cancelled else "stop",
        model=run.model.info,
        n_ctx=passages.n_ctx,
        tokens=TokenCounts(run.n_evaluated, run.n_restored, run.n_generated),
        timings=run.timings,
        warnings=tuple(dict.fromkeys(run.warnings)),
        how=how,
    )
