"""The lines that xml.py writes → records: groups between blank lines, or lines of one name.

Elements' names and attributes are read off the lines, so that a record's place is one in the document's text.
A nested element's fields are the record's own; a field that comes several times is a list.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from localctx.document.document import Document
from localctx.document.records import MAX_RECORD, DamagedRecords, Record, Records

__all__ = ["records"]

LINE = re.compile(r"([^\W\d][\w.-]*)((?: [\w.-]+=(?:(?! [\w.-]+=|: ).)*)*)(?:: (.*))?")
ATTRIBUTE = re.compile(r" ([\w.-]+)=((?:(?! [\w.-]+=).)*)")
LIST_LINES = 4096
"""A group of so many lines is given in parts where they are records themselves."""


@dataclass(slots=True)
class _Line:
    """One line as an element: its name, attributes and text; text None: it opens others."""

    start: int
    end: int
    name: str
    attributes: dict[str, str]
    text: str | None


@dataclass(slots=True)
class _Group:
    """The lines between two blank ones. is_list: they are part of a list of records, a line each."""

    lines: list[_Line] = field(default_factory=list)
    is_list: bool = False

    @property
    def first(self) -> str:
        """The name that it begins with."""
        return self.lines[0].name


def records(document: Document, report: Records) -> Iterator[Record]:
    """The records in order. Raises DamagedRecords."""
    groups = _groups(document)
    before: _Group | None = None
    group = next(groups, None)
    while group is not None:
        after = next(groups, None)
        yield from _of_group(group, before, after)
        before, group = group, after


def _of_group(group: _Group, before: _Group | None, after: _Group | None) -> Iterator[Record]:
    """The record of a group, without the lines of what contains it; elements without any below them stand in
    one group, a line each.
    """
    lines = group.lines
    beside = {other.first for other in (before, after) if other is not None}
    if group.is_list or (group.first not in beside and _is_list(lines, is_alone=not beside)):
        kind = _usual(lines)
        for line in lines:
            if line.name == kind:
                yield Record(line.start, line.end, line.name, _fields([line]))
        return
    names = [line.name for line in lines]
    if after is not None and after.first in names:
        lines = lines[names.index(after.first) :]
    yield Record(lines[0].start, lines[-1].end, lines[0].name, _fields(lines))


def _usual(lines: list[_Line]) -> str:
    return Counter(line.name for line in lines).most_common(1)[0][0]


def _is_list(lines: list[_Line], *, is_alone: bool) -> bool:
    """Whether the lines are records themselves: but for lines that open others all have one name; where other
    groups stand beside them, also attributes, since text alone may be a record's repeated field.
    """
    kind = _usual(lines)
    members = [line for line in lines if line.name == kind]
    is_opened = all(line.name == kind or (line.text is None and not line.attributes) for line in lines)
    return len(members) > 1 and is_opened and (is_alone or all(line.attributes for line in members))


def _fields(lines: list[_Line]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in lines:
        pairs = [*line.attributes.items(), *([(line.name, line.text)] if line.text is not None else [])]
        for name, value in pairs:
            if name not in found:
                found[name] = value
            elif isinstance(found[name], list):
                found[name].append(value)
            else:
                found[name] = [found[name], value]
    return found


def _groups(document: Document) -> Iterator[_Group]:
    """The groups of lines; a line that is no element goes on the text of the one before."""
    group, size = _Group(), 0
    for start, text in _text_lines(document):
        if not text.strip():
            if group.lines:
                yield _closed(group)
            group, size = _Group(), 0
            continue
        size += len(text)
        if size > MAX_RECORD:
            raise DamagedRecords(f"one record is longer than {MAX_RECORD:,} characters")
        line = _line(start, text)
        if line is not None:
            if len(group.lines) >= LIST_LINES and (group.is_list or _is_list(group.lines, is_alone=True)):
                group.is_list = True
                yield group
                group, size = _Group(is_list=True), 0
            group.lines.append(line)
        elif group.lines:
            last = group.lines[-1]
            last.text = text if last.text is None else f"{last.text}\n{text}"
            last.end = start + len(text)
        else:
            raise DamagedRecords("it is running text")
    if group.lines:
        yield _closed(group)


def _closed(group: _Group) -> _Group:
    """The group at its end, where a single word opens nothing: it goes on the text before it."""
    last = group.lines[-1]
    if (
        len(group.lines) > 1
        and last.text is None
        and not last.attributes
        and group.lines[-2].text is not None
    ):
        before = group.lines[-2]
        before.text, before.end = f"{before.text}\n{last.name}", last.end
        group.lines.pop()
    return group


def _line(start: int, text: str) -> _Line | None:
    found = LINE.fullmatch(text)
    if found is None:
        return None
    attributes = dict(ATTRIBUTE.findall(found[2]))
    return _Line(start, start + len(text), found[1], attributes, found[3])


def _text_lines(document: Document) -> Iterator[tuple[int, str]]:
    """The lines with the places where they begin."""
    held, start = "", 0
    for piece in document.text.stream():
        held += piece
        lines = held.split("\n")
        held = lines.pop()
        for line in lines:
            yield start, line
            start += len(line) + 1
        if len(held) > MAX_RECORD:
            raise DamagedRecords(f"a line is longer than {MAX_RECORD:,} characters")
    if held:
        yield start, held
