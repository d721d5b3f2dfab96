"""XLSX → a section a sheet, rows as Markdown table rows, cells as a spreadsheet shows them. Streams.

Formulas stand for the value that was saved with them. Reads no charts, pictures or comments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from localctx.document.archive import Archive
from localctx.document.events import Event, Heading, Notice, Options, Text
from localctx.document.markup import QuietHandler, attribute, local_name
from localctx.document.parts import parse_member, parse_whole, relationships
from localctx.document.source import Source
from localctx.document.xlsx_numbers import BUILT_IN, Show, plain, shower
from localctx.document.xlsx_rows import RowWriter, merges_of, place_of
from localctx.document.xlsx_strings import CELL_CHARACTERS, SharedStrings, unescaped
from localctx.errors import LimitExceeded

__all__ = ["convert"]

MAIN = "xl/workbook.xml"
FORMATS_KEPT = 10_000


def convert(source: Source, options: Options) -> Iterator[Event]:
    """The sheets in the order of their tabs. Raises InputError, LimitExceeded."""
    with Archive(source, options.limits) as archive, SharedStrings() as strings:
        main = next(
            (m for kind, m in relationships(archive, "", options).values() if kind == "officeDocument"), MAIN
        )
        workbook = Workbook()
        parse_whole(archive, main if main in archive else MAIN, workbook, options)
        targets = relationships(archive, main, options)
        by_kind = {kind: member for kind, member in targets.values() if member in archive}
        if (member := by_kind.get("sharedStrings")) is not None:
            for _ in parse_member(archive, member, strings, options):
                pass
        styles = Styles()
        if (member := by_kind.get("styles")) is not None:
            parse_whole(archive, member, styles, options)
        shown = styles.shown(is_1904=workbook.is_1904)
        for sheet in workbook.sheets:
            kind, member = targets.get(sheet.target, ("", ""))
            if kind == "worksheet" and member in archive:
                yield from sheet_events(archive, member, sheet, Cells(strings, shown), options)
            elif kind != "chartsheet":
                yield Notice(f"sheet {sheet.name!r} is missing in the file")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A tab of the workbook."""

    name: str
    target: str
    is_hidden: bool


@dataclass(frozen=True, slots=True)
class Cells:
    """What the cells of all sheets refer to: shared strings, and how the numbers of each style are shown."""

    strings: SharedStrings
    shown: list[Show]


def sheet_events(
    archive: Archive, member: str, sheet: Sheet, cells: Cells, options: Options
) -> Iterator[Event]:
    """One sheet: its name as a heading, its rows."""
    title = f"{sheet.name} (hidden sheet)" if sheet.is_hidden else sheet.name
    yield Heading(1, title)
    yield Text(f"{title}\n\n")
    if sheet.is_hidden:
        yield Notice(f"sheet {sheet.name!r} is hidden in the workbook; it was read too")
    merges = merges_of(archive, member)
    handler = SheetRows(cells, RowWriter(merges, options.limits.token_bytes), options.limits.token_bytes)
    packed = archive.n_bytes_read
    for _ in parse_member(archive, member, handler, options):
        if text := handler.taken():
            archive.count(len(text))
            yield Text(text)
        if options.on_progress is not None:
            done = min(archive.n_bytes_read - packed, archive.packed_bytes)
            options.on_progress(done, archive.packed_bytes)
    yield Text("\n")
    yield from map(Notice, handler.notices(sheet.name))


class Workbook(QuietHandler):
    """Handler of workbook.xml: sheets, and from which year dates count."""

    def __init__(self) -> None:
        self.sheets: list[Sheet] = []
        self.is_1904 = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = local_name(name)
        if tag == "workbookPr":
            self.is_1904 = attribute(attributes, "date1904") in ("1", "true", "on")
        elif tag == "sheet":
            target = next((v for k, v in attributes.items() if k != "id" and local_name(k) == "id"), "")
            is_hidden = attributes.get("state", "visible") != "visible"
            self.sheets.append(Sheet(" ".join(attributes.get("name", "").split()), target, is_hidden))


class Styles(QuietHandler):
    """Handler of styles.xml: the number format of each cell style."""

    def __init__(self) -> None:
        self._codes: dict[int, str] = {}
        self._styles: list[int] = []
        self._is_in_styles = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = local_name(name)
        if tag == "numFmt" and len(self._codes) < FORMATS_KEPT:
            self._codes[number_of(attributes.get("numFmtId"))] = attributes.get("formatCode", "")[:1000]
        elif tag == "cellXfs":
            self._is_in_styles = True
        elif tag == "xf" and self._is_in_styles:
            self._styles.append(number_of(attributes.get("numFmtId")))

    def end(self, name: str) -> None:
        if local_name(name) == "cellXfs":
            self._is_in_styles = False

    def shown(self, *, is_1904: bool) -> list[Show]:
        """How a number is shown, by style."""
        made = {n: shower(code, is_1904=is_1904) for n, code in {**BUILT_IN, **self._codes}.items()}
        return [made.get(number, plain) for number in self._styles]


@dataclass(slots=True)
class Cell:
    """The cell that is being read."""

    column: int = 0
    kind: str = ""
    style: int = 0
    values: list[str] = field(default_factory=list)
    formula: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


class SheetRows(QuietHandler):
    """Handler of a sheet: lines of text, a row at a time. A small file may hold long rows: it repeats."""

    def __init__(self, cells: Cells, writer: RowWriter, max_characters: int) -> None:
        self._cells = cells
        self._writer = writer
        self._max_characters = max_characters
        self._lines: list[str] = []
        self._n_row = 0
        self._n_lines = 0
        self._row: dict[int, str] = {}
        self._number = 0
        self._cell = Cell()
        self._sink: list[str] | None = None
        self._n_held = 0
        self._phonetic = 0
        self._n_hidden = {"row": 0, "col": 0}
        self._n_uncomputed = 0

    def notices(self, name: str) -> Iterator[str]:
        """What the user should know of the sheet."""
        hidden = [f"{n:,} hidden {what}{'s' * (n > 1)}" for what, n in self._n_hidden.items() if n]
        if hidden:
            are = "were" if sum(self._n_hidden.values()) > 1 else "was"
            what = " and ".join(hidden).replace("col", "column")
            yield f"sheet {name!r}: {what} {are} read too"
        if n := self._n_uncomputed:
            yield (
                f"sheet {name!r}: {n:,} formula{'s' * (n > 1)} without a saved value, shown as written; "
                "open and save the file in a spreadsheet program to have them computed"
            )

    def taken(self) -> str:
        """The lines that were made since the last call."""
        text = "".join(self._lines)
        self._lines.clear()
        self._n_lines = 0
        return text

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = local_name(name)
        if tag == "c":
            column = place_of(attributes.get("r", ""))[0] or self._cell.column + 1
            self._cell = Cell(column, attributes.get("t", "n"), number_of(attributes.get("s")))
            self._n_held = 0
        elif tag == "row":
            self._number = number_of(attributes.get("r")) or self._number + 1
            self._row, self._cell, self._n_row = {}, Cell(), 0
            self._n_hidden["row"] += attributes.get("hidden") in ("1", "true")
        elif tag in ("v", "f"):
            self._sink = self._cell.values if tag == "v" else self._cell.formula
        elif tag == "rPh":
            self._phonetic += 1
        elif tag == "t" and not self._phonetic:
            self._sink = self._cell.texts
        elif tag == "col" and attributes.get("hidden") in ("1", "true"):
            first = number_of(attributes.get("min"))
            self._n_hidden["col"] += max(1, min(16_384, number_of(attributes.get("max"))) - first + 1)

    def data(self, text: str) -> None:
        if self._sink is not None:
            self._n_held += len(text)
            if self._n_held > CELL_CHARACTERS:
                raise LimitExceeded(f"a cell's text is longer than {CELL_CHARACTERS:,} characters")
            self._sink.append(text)

    def end(self, name: str) -> None:
        tag = local_name(name)
        if tag == "c":
            if text := self._text(self._cell):
                self._n_row += len(text)
                self._check(self._n_row)
                self._row[self._cell.column] = text
        elif tag == "row":
            lines = self._writer.row(self._number, self._row)
            self._n_lines += sum(map(len, lines))
            self._check(self._n_lines)
            self._lines += lines
        elif tag == "rPh":
            self._phonetic -= 1
        self._sink = None

    def _check(self, n_characters: int) -> None:
        """Raises LimitExceeded where a row, or the rows of one step, are too long to be held."""
        if n_characters > self._max_characters:
            raise LimitExceeded(f"rows up to {self._number:,} hold over {self._max_characters:,} characters")

    def _text(self, cell: Cell) -> str:
        """What the cell shows."""
        value = "".join(cell.values)
        stripped = value.strip()
        match cell.kind:
            case "s":
                return self._cells.strings[number_of(stripped, otherwise=-1)]
            case "inlineStr":
                return unescaped("".join(cell.texts))
            case "b" if stripped:
                return "FALSE" if stripped in ("0", "false") else "TRUE"
            case "n" if stripped:
                shown = self._cells.shown
                return shown[cell.style](stripped) if cell.style < len(shown) else plain(stripped)
        if not stripped and cell.formula:
            self._n_uncomputed += cell.kind == "n"
            return "=" + "".join(cell.formula) if cell.kind == "n" else ""
        return unescaped(value)


def number_of(text: str | None, otherwise: int = 0) -> int:
    """A whole number from an attribute or a cell; `otherwise` where it is none."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else otherwise
