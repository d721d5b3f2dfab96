"""CSV, TSV → a record a row, its fields named by the first row. Quoted line breaks belong to their row."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from localctx.document.document import Document
from localctx.document.records import MAX_RECORD, DamagedRecords, Record, Records

__all__ = ["records"]

KIND = "row"
DELIMITERS = ",;\t|"
HEAD_LINES = 20
LINE_END = re.compile(r"\r\n|\n|\r")
NUMBER = re.compile(r"[-+]?[\d.,]*\d%?")


def records(document: Document, report: Records) -> Iterator[Record]:
    """The rows below the header. Raises DamagedRecords."""
    lines = _Lines(document.text.stream())
    rows = csv.reader(lines, delimiter=_delimiter(document))
    names: list[str] | None = None
    while True:
        start = lines.offset
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise DamagedRecords(f"row {report.n_records + 1:,} is damaged ({error})") from None
        if not any(cell.strip() for cell in row):
            continue
        if names is None:
            names = _names(row)
            if _is_header(row):
                continue
        if len(row) > len(names):
            names += [f"column {n + 1}" for n in range(len(names), len(row))]
        fields = {name: cell.strip() for name, cell in zip(names, row, strict=False)}
        yield Record(start, lines.end, KIND, fields)


def _delimiter(document: Document) -> str:
    """The character that divides the first lines most often and most evenly."""
    lines = [line for line in document.read(0, 1 << 16).splitlines()[:HEAD_LINES] if line.strip()]
    best, best_score = ",", 0.0
    for delimiter in DELIMITERS:
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter)] if lines else []
        usual = max(counts, key=counts.count, default=1)
        score = (usual - 1 > 0) * counts.count(usual) / max(1, len(counts)) + 0.001 * min(usual, 100)
        if score > best_score and usual > 1:
            best, best_score = delimiter, score
    return best


def _is_header(row: Sequence[str]) -> bool:
    """Whether a first row names columns: all are filled and different, none is a number."""
    cells = [cell.strip() for cell in row]
    return all(cells) and len(set(cells)) == len(cells) and not any(map(NUMBER.fullmatch, cells))


def _names(row: Sequence[str]) -> list[str]:
    cells = [cell.strip() for cell in row]
    return cells if _is_header(row) else [f"column {n + 1}" for n in range(len(cells))]


class _Lines:
    """Lines with their ends, for csv.reader. offset: where the next one begins · end: where the last one
    given ended, without its line end.
    """

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._held = ""
        self._at = 0
        self.offset = 0
        self.end = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while True:
            found = LINE_END.search(self._held, self._at)
            if found is not None and found.end() < len(self._held):  # \r may be half of \r\n
                return self._give(found.start(), found.end())
            piece = next(self._pieces, None)
            if piece is None:
                if self._at == len(self._held):
                    raise StopIteration
                end = found.start() if found else len(self._held)
                return self._give(end, len(self._held))
            self._held = self._held[self._at :] + piece
            self._at = 0
            if len(self._held) > MAX_RECORD + len(piece):
                raise DamagedRecords(f"a line is longer than {MAX_RECORD:,} characters")

    def _give(self, text_end: int, end: int) -> str:
        line = self._held[self._at : end]
        self.end = self.offset + text_end - self._at
        self.offset += len(line)
        self._at = end
        return line
