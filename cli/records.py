"""Records on their way out as text, lines of JSON or one object; memory does not grow with them.

What needs its end first (one object, a file) is gathered in a temporary file.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, Protocol

from .output_file import write_pieces
from .terminal import json_text, print_json, write, write_as_is

if TYPE_CHECKING:
    from localctx.session.extraction import Extraction, FoundRecord

__all__ = ["Form", "Sink", "opened_sink"]

Form = Literal["text", "jsonl", "json"]
PIECE_CHARACTERS = 1 << 16


class Sink(Protocol):
    """Where records go."""

    def add(self, record: FoundRecord) -> None:
        """The next record."""

    def finish(self, done: Extraction, warnings: Sequence[str]) -> None:
        """All were added."""


@contextmanager
def opened_sink(form: Form, path: Path | None) -> Iterator[Sink]:
    """A sink for standard output or a file, which is written whole at the end or not at all."""
    with ExitStack() as stack:
        if path is None and form != "json":
            yield _Direct(form)
            return
        file = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
        yield _Gathered(form, path, file)


class _Direct:
    """Writes each record at once."""

    def __init__(self, form: Form) -> None:
        self._form: Form = form
        self._n = 0

    def add(self, record: FoundRecord) -> None:
        """The next record."""
        self._n += 1
        if self._form == "jsonl":
            print_json(record.to_json())
        else:
            write(_line(record, self._n))

    def finish(self, done: Extraction, warnings: Sequence[str]) -> None:
        """Nothing is left."""


class _Gathered:
    """Keeps them in a temporary file until all is known."""

    def __init__(self, form: Form, path: Path | None, file: IO[str]) -> None:
        self._form: Form = form
        self._path = path
        self._file = file
        self._n = 0

    def add(self, record: FoundRecord) -> None:
        """The next record."""
        self._n += 1
        if self._form == "text":
            self._file.write(_line(record, self._n))
            return
        value = record.to_json()
        text = json_text(value) if self._path is None else json.dumps(value, ensure_ascii=False)
        if self._form == "jsonl":
            self._file.write(f"{text}\n")
        else:
            self._file.write(f",\n{text}" if self._n > 1 else f"\n{text}")

    def finish(self, done: Extraction, warnings: Sequence[str]) -> None:
        """All were added."""
        pieces = self._pieces(done, warnings)
        if self._path is not None:
            write_pieces(self._path, pieces)
            return
        for piece in pieces:
            write_as_is(piece)

    def _pieces(self, done: Extraction, warnings: Sequence[str]) -> Iterator[str]:
        if self._form == "json":
            head = done.to_json()
            head["warnings"] = list(dict.fromkeys([*warnings, *head["warnings"]]))
            yield json_text(head).rstrip().removesuffix("}").rstrip() + ',\n  "records": ['
        self._file.seek(0)
        while piece := self._file.read(PIECE_CHARACTERS):
            yield piece
        if self._form == "json":
            yield "\n]}\n"


def _line(record: FoundRecord, number: int) -> str:
    """A record as one line for people."""
    values = " · ".join(f"{name}: {_shown(value)}" for name, value in record.value.items())
    places = "; ".join(
        f"{one.source} p. {one.page_label or one.page}"
        if one.page
        else f"{one.source} {one.start:,}–{one.end:,}"
        for one in record.citations[:3]
    )
    return f"{number:,}. {values} [{places}]\n"


def _shown(value: object) -> str:
    """A value in a line."""
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())
