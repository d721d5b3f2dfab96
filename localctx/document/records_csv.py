"""CSV, TSV → a record a row, its fields named by the first row. Quoted line breaks belong to their row."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Sequence

from localctx.document.document import Document
from localctx.document.records import MAX_RECORD, DamagedRecords, Record, Records

__all__ = ["records"]

KIND = "row"
DELIMITERS = ",;\t|"
HEAD_LINES = 20
LINE_END = re.compile(r"\r\n|\n|\r")
VALUES = {
    "year": re.compile(r"(?:1[6-9]|20|21)\d\d"),
    "number": re.compile(r"[-+]?[$€£¥]?\s?[\d.,]*\d\s?[%$€£¥]?"),
    "date": re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}(?:[T ].*)?"),
    "truth": re.compile(r"true|false|yes|no", re.I),
    "address": re.compile(r"[^@\s]+@[^@\s]+\.\w+|https?://.*"),
}
"""What stands in rows; as a column's name only where the row below has another kind."""
csv.field_size_limit(MAX_RECORD)  # of the whole process; a longer cell makes the row a damaged one


def records(document: Document, report: Records) -> Iterator[Record]:
    """The rows below the header. Raises DamagedRecords."""
    rows = _rows(document, report)
    first, second = next(rows, None), next(rows, None)
    if first is None:
        return
    is_header = _is_header(first[2], second[2] if second else None)
    names = _names(first[2], is_header)
    head = [one for one in (None if is_header else first, second) if one is not None]
    for start, end, row in itertools.chain(head, rows):
        names += [f"column {n + 1}" for n in range(len(names), len(row))]
        fields = {name: cell.strip() for name, cell in zip(names, row, strict=False)}
        yield Record(start, end, KIND, fields)


def _rows(document: Document, report: Records) -> Iterator[tuple[int, int, list[str]]]:
    """All rows that are not empty, with their places."""
    lines = _Lines(document.text.stream())
    rows = csv.reader(lines, delimiter=_delimiter(document), strict=True)
    while True:
        start = lines.offset
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise DamagedRecords(f"row {report.n_records + 1:,} is damaged ({error})") from None
        if any(cell.strip() for cell in row):
            yield start, lines.end, row


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


def _is_header(row: Sequence[str], below: Sequence[str] | None) -> bool:
    """Whether a first row names columns. Raises DamagedRecords where that cannot be told."""
    cells = [cell.strip() for cell in row]
    filled = [cell for cell in cells if cell]
    is_distinct = len(set(filled)) == len(filled)
    is_numbered = not cells[0] and filled == [str(n) for n in range(len(filled))]  # as pandas writes it
    told = {n: kind for n, cell in enumerate(cells) if (kind := _kind_of(cell))}
    if is_distinct and (is_numbered or not told):
        return True
    if len(told) == len(cells) and not (is_distinct and set(told.values()) == {"year"} and len(cells) > 1):
        return False
    under = {n: _kind_of(cell.strip()) for n, cell in enumerate(below or ())}
    if is_distinct and all(kind != "number" and under.get(n, kind) != kind for n, kind in told.items()):
        return True
    raise DamagedRecords("whether its first row names the columns cannot be told")


def _kind_of(cell: str) -> str:
    """What kind of value a cell looks like; empty for words."""
    return next((kind for kind, form in VALUES.items() if form.fullmatch(cell)), "")


def _names(row: Sequence[str], is_header: bool) -> list[str]:
    return [cell.strip() if is_header and cell.strip() else f"column {n + 1}" for n, cell in enumerate(row)]


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
