"""JSON and JSON Lines → records: members of an array of objects, wherever it stands near the top; lines.

Decodes one record at a time from the running text, so that a document of any size is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from typing import Any

from localctx.document.document import Document
from localctx.document.records import MAX_RECORD, DamagedRecords, Record, Records, flat_fields, record_format

__all__ = ["records"]

BLANK = re.compile(r"[ \t\r\n]*")
CONTAINER_DEPTH = 3
RECORD, VALUE = "record", "value"
STREAMED: dict[str, Any] = {}
"""Stands for an array whose members were given as records."""
COMPACT_FROM = 1 << 20
NUMBER_BEGUN = re.compile(r"(?:\.|[eE][+-]?)?")
"""What may follow a number whose rest is in the next piece."""


def records(document: Document, report: Records) -> Iterator[Record]:
    """The records in order. Raises DamagedRecords."""
    if record_format(document) == "jsonl":
        return _lines(document, report)
    return _members(_Cursor(document.text.stream()))


def _lines(document: Document, report: Records) -> Iterator[Record]:
    """One record a line; lines that hold no JSON are counted as skipped."""
    held, start = "", 0
    for piece in _with_end(document.text.stream()):
        held += piece
        lines = held.split("\n")
        held = lines.pop()
        for line in lines:
            record = _line(line, start, report)
            if record is not None:
                yield record
            start += len(line) + 1
        if len(held) > MAX_RECORD:
            raise DamagedRecords(f"a line is longer than {MAX_RECORD:,} characters")


def _with_end(pieces: Iterator[str]) -> Iterator[str]:
    yield from pieces
    yield "\n"


def _line(line: str, start: int, report: Records) -> Record | None:
    if not line.strip():
        return None
    try:
        value = json.loads(line)
        return Record(start, start + len(line.rstrip()), RECORD, _fields(value))
    except (ValueError, RecursionError):
        report.n_skipped += 1
        return None


def _fields(value: Any) -> dict[str, Any]:
    return flat_fields(value) if isinstance(value, dict) else {VALUE: value}


def _members(cursor: _Cursor) -> Iterator[Record]:
    """The records of one JSON text."""
    first = cursor.peek()
    if first == "[":
        yield from cursor.array(RECORD)
    elif first == "{":
        start = cursor.offset
        members, n_streamed = yield from cursor.object(1)
        if not n_streamed:
            yield from _of_one_object(members, start, cursor.offset)
    else:
        raise DamagedRecords("it holds no array and no object")
    if cursor.peek():
        raise DamagedRecords(f"there is more after its end, at character {cursor.offset:,}")


def _of_one_object(members: dict[str, Any], start: int, end: int) -> Iterator[Record]:
    """A map of records by their names, or one record."""
    values = list(members.values())
    if len(values) > 1 and all(isinstance(value, dict) for value in values):
        for name, value in members.items():
            yield Record(start, end, RECORD, {"key": name, **flat_fields(value)})
    else:
        yield Record(start, end, RECORD, flat_fields(members))


class _Siblings:
    """The objects that stand beside each other in one. Alike, and with lists of objects beside their values,
    they may be records themselves.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._names_beside: set[str] = set()

    def add(self, members: dict[str, Any], n_streamed: int) -> None:
        """Another one. Raises DamagedRecords where what its records are cannot be told."""
        names = members.keys()
        is_beside = n_streamed > 0 and any(not isinstance(one, dict) for one in members.values())
        if (is_beside and self._names & names) or self._names_beside & names:
            raise DamagedRecords("whether its objects are the records or the lists in them cannot be told")
        self._names |= names
        if is_beside:
            self._names_beside |= names


class _Cursor:
    """A place in a JSON text that comes in pieces."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._text = ""
        self._at = 0
        self._start = 0  # offset of the first character held
        self._decoder = json.JSONDecoder()

    @property
    def offset(self) -> int:
        """Code points before the place."""
        return self._start + self._at

    def _more(self) -> bool:
        """Hold more of the text, at least twice what is left of it; False at its end."""
        left = len(self._text) - self._at
        if left > MAX_RECORD:
            raise DamagedRecords(f"one record is longer than {MAX_RECORD:,} characters")
        parts, n_new = [self._text[self._at :]], 0
        self._start += self._at
        self._at = 0
        for piece in self._pieces:
            parts.append(piece)
            n_new += len(piece)
            if n_new > left:
                break
        self._text = "".join(parts)
        return n_new > 0

    def peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            found = BLANK.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, wanted: str) -> None:
        """Go past one of the characters."""
        if not (got := self.peek()) or got not in wanted:
            raise DamagedRecords(f"it is not well-formed at character {self.offset:,}")
        self._at += 1

    def value(self) -> Any:
        """The JSON value that begins here, decoded."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise DamagedRecords("it is nested too deeply") from None
            except ValueError:
                if not self._more():
                    raise DamagedRecords(f"it is not well-formed from character {self.offset:,}") from None
                continue
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            is_open = is_number and NUMBER_BEGUN.fullmatch(self._text, end) is not None
            if is_open and self._more():  # a number may go on in the next piece
                continue
            self._at = end
            return value

    def array(self, kind: str) -> Generator[Record, None, int]:
        """The members of the array that begins here as records; how many."""
        self.take("[")
        n_members = 0
        if self.peek() == "]":
            self.take("]")
            return 0
        while True:
            self.peek()
            start = self.offset
            value = self.value()
            yield Record(start, self.offset, kind, _fields(value))
            n_members += 1
            self.take(",]")
            if self._text[self._at - 1] == "]":
                return n_members

    def object(self, depth: int) -> Generator[Record, None, tuple[dict[str, Any], int]]:
        """The object that begins here: its arrays of objects as records, all else decoded; and how many."""
        members: dict[str, Any] = {}
        n_streamed, siblings = 0, _Siblings()
        self.take("{")
        if self.peek() == "}":
            self.take("}")
            return members, 0
        while True:
            if self.peek() != '"':
                raise DamagedRecords(f"it is not well-formed at character {self.offset:,}")
            name = self.value()
            self.take(":")
            first = self.peek()
            if first == "[" and self._is_of_objects():
                n_streamed += yield from self.array(name)
                members[name] = STREAMED
            elif first == "{" and depth < CONTAINER_DEPTH:
                members[name], n_inner = yield from self.object(depth + 1)
                n_streamed += n_inner
                siblings.add(members[name], n_inner)
            else:
                members[name] = self.value()
            self.take(",}")
            if self._text[self._at - 1] == "}":
                return members, n_streamed

    def _is_of_objects(self) -> bool:
        """Whether the array that begins here has an object for its first member."""
        while True:
            found = BLANK.match(self._text, self._at + 1)
            end = found.end() if found else self._at
            if end < len(self._text):
                return self._text[end] == "{"
            if not self._more():
                return False
