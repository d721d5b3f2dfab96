"""Questions about all records of structured documents, answered by reading every record, without the model.

Two passes: which fields and values the question names, then what fulfils it. What is not understood is not
counted, and the reason told. Memory does not grow with the documents.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import xxhash

from localctx.document import Document
from localctx.document.records import Record, Records, has_records
from localctx.index.terms import fold
from localctx.selection.counting import (
    Condition,
    NotCounted,
    Query,
    Vocabulary,
    asks_for_all,
    parse,
    value_keys,
)
from localctx.selection.record_rules import Rule, looks_like_number, may_mean_none
from localctx.selection.record_values import Wanted, is_number, key
from localctx.session.citing import cite
from localctx.session.events import Listener, Progress, ignore_progress
from localctx.session.provenance import Citation

__all__ = ["Counted", "count"]

MAX_FIELDS = 2_000
MAX_SHOWN = 50
"""Records or values that an answer lists."""
MAX_CITED = 32
MAX_DISTINCT = 1_000_000
REPORT_EVERY = 4_096
SHOWN_CHARACTERS = 200


@dataclass(slots=True)
class Counted:
    """The outcome: what was asked, of how many records, what was found. groups: the values of the field asked
    for, as they are first written, and how often each · shown: the first records that fulfil it.
    """

    query: Query
    n_read: int = 0
    n_matched: int = 0
    n_skipped: int = 0
    groups: dict[str, tuple[str, int]] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)
    read_ms: float = 0.0

    @property
    def conditions(self) -> str:
        """The conditions in words; empty without any."""
        return " and ".join(map(_in_words, self.query.conditions))

    @property
    def text(self) -> str:
        """The answer."""
        what = self._what()
        where = f" where {self.conditions}" if self.conditions else ""
        if self.query.intent == "distinct":
            (name, *_) = self.query.targets
            lead = f"{len(self.groups):,} different values of {name} in {self.n_matched:,} {what}{where}"
            if self.n_matched == self.n_read and len(self.groups) > MAX_SHOWN:
                return f"{lead}."
            return _with_lines(f"{lead}", [f"{one}: {n:,}" for one, n in self._common()], len(self.groups))
        lead = f"{self.n_matched:,} {what}{where}"
        if self.n_matched != self.n_read or self.conditions:
            lead += f", of {self.n_read:,}"
        if self.query.intent == "count":
            return f"{lead}."
        return _with_lines(lead, self.shown, self.n_matched)

    def _what(self) -> str:
        kinds = sorted(self.query.kinds)
        if len(kinds) == 1:
            return f"`{kinds[0]}` records"
        return "records"

    def _common(self) -> list[tuple[str, int]]:
        return sorted(self.groups.values(), key=lambda pair: (-pair[1], pair[0]))[:MAX_SHOWN]


def count(documents: Sequence[Document], question: str, listen: Listener = ignore_progress) -> Counted | str:
    """The answer to a question about all records of the documents, or why it is not counted; empty where it
    is no such question, or the documents have no records.
    """
    if not asks_for_all(question) or not documents or not all(map(has_records, documents)):
        return ""
    started = time.perf_counter()
    try:
        vocabulary = _vocabulary(documents, question, listen)
        query = parse(question, vocabulary)
        rules = [Rule(condition, vocabulary) for condition in query.conditions]
        counted = _counted(documents, query, rules, listen)
    except NotCounted as error:
        return str(error)
    counted.read_ms = (time.perf_counter() - started) * 1000
    return counted


def _read(documents: Sequence[Document], listen: Listener) -> Iterator[tuple[Document, Record, Records]]:
    """Every record. Raises NotCounted where not all can be read."""
    for document in documents:
        report, total = Records(document), document.text.n_code_points
        for number, record in enumerate(report):
            if number % REPORT_EVERY == 0:
                listen(Progress("reading records", record.start, total, "characters"))
            yield document, record, report
        if report.damage is not None:
            raise NotCounted(f"not all records of {document.source} can be read: {report.damage}")
        if report.n_skipped:
            raise NotCounted(f"{report.n_skipped:,} lines of {document.source} are no records")


def _vocabulary(documents: Sequence[Document], question: str, listen: Listener) -> Vocabulary:
    """The fields, kinds and those values that the question may name."""
    wanted = Wanted(value_keys(question))
    vocabulary = Vocabulary(
        names={PurePath(document.source).name.partition(".")[0] for document in documents}
    )
    not_flags: set[str] = set()
    fields, values = vocabulary.fields, vocabulary.values
    for _, record, _ in _read(documents, listen):
        vocabulary.kinds.add(record.kind)
        fields.update(dict.fromkeys(record.fields))
        for name, value in record.fields.items():
            for one in value if isinstance(value, list) else (value,):
                if one is None:
                    continue
                if isinstance(value, list):
                    vocabulary.lists.add(name)
                if name not in vocabulary.numeric and looks_like_number(one):
                    vocabulary.numeric.add(name)
                if name not in vocabulary.nones and may_mean_none(one):
                    vocabulary.nones[name] = str(one)
                if name not in not_flags and key(one) not in ("true", "false", ""):
                    not_flags.add(name)
                found = wanted.find(one)
                if found:
                    values.setdefault(found, set()).add(name)
        if len(fields) > MAX_FIELDS or len(vocabulary.kinds) > MAX_FIELDS:
            raise NotCounted(f"the records have more than {MAX_FIELDS:,} fields")
    vocabulary.flags = set(fields) - not_flags
    return vocabulary


def _counted(documents: Sequence[Document], query: Query, rules: Sequence[Rule], listen: Listener) -> Counted:
    """What fulfils the query."""
    counted = Counted(query)
    for document, record, report in _read(documents, listen):
        counted.n_skipped = report.n_skipped
        if query.kinds and record.kind not in query.kinds:
            continue
        counted.n_read += 1
        if not all(rule.holds(record.fields) for rule in rules):
            continue
        counted.n_matched += 1
        if query.intent == "distinct":
            _add_values(counted, record.fields.get(query.targets[0]))
        elif query.intent == "list" and len(counted.shown) < MAX_SHOWN:
            counted.shown.append(_shown(record, query.targets))
        if len(counted.citations) < MAX_CITED and (query.conditions or query.intent == "list"):
            counted.citations.append(cite(document, record.start, record.end, 1.0))
    return counted


def _add_values(counted: Counted, value: Any) -> None:
    for one in value if isinstance(value, list) else (value,):
        if one is not None and one != "":
            group = _group_of(one)
            shown, n = counted.groups.get(group) or (_one_line(one), 0)
            counted.groups[group] = (shown, n + 1)
    if len(counted.groups) > MAX_DISTINCT:
        raise NotCounted(f"there are more than {MAX_DISTINCT:,} different values")


def _group_of(value: Any) -> str:
    """What two equal values have in common: their number, or all their words whatever the case; long ones as
    a hash.
    """
    if is_number(number := key(value)):
        return number
    text = fold(" ".join(str(value).split()))
    return text if len(text) <= SHOWN_CHARACTERS else xxhash.xxh3_128_hexdigest(text.encode())


def _in_words(condition: Condition) -> str:
    """`city is Lyon or Paris`, as it was understood."""
    name, is_negated = condition.field, condition.is_negated
    if condition.operator == "exists":
        return f"{name} is missing or false" if is_negated else f"{name} is not missing"
    words = {"=": "is", "prefix": "begins with", "suffix": "ends with"}.get(
        condition.operator, condition.operator
    )
    joined = (" and " if condition.operator == "between" else " or ").join(condition.values)
    if not is_negated:
        return f"{name} {words} {joined}"
    return f"{name} is not {joined}" if words == "is" else f"{name} not {words} {joined}"


def _shown(record: Record, targets: Sequence[str]) -> str:
    """A record in a line: the fields asked for, or all."""
    names = targets or tuple(record.fields)
    if len(targets) == 1:
        return _one_line(record.fields.get(targets[0]))
    pairs = (f"{name}: {_one_line(record.fields.get(name))}" for name in itertools.islice(names, 12))
    return " · ".join(pairs)


def _one_line(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else "-" if value is None else str(value)
    text = " ".join(text.split())
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


def _with_lines(lead: str, lines: Sequence[str], n_all: int) -> str:
    if not lines:
        return f"{lead}."
    more = [f"… and {n_all - len(lines):,} more"] if n_all > len(lines) else []
    return "\n".join([f"{lead}:", *(f"- {line}" for line in lines), *more])
