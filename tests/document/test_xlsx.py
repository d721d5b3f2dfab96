"""Workbooks: sheets, rows, what cells show, and what is flagged."""

from __future__ import annotations

import pytest
from document.conftest import Open
from document.inputs import relations, text_of, zipped

from localctx.document.limits import Limits
from localctx.document.xlsx_numbers import shower
from localctx.document.xlsx_rows import Merges, RowWriter
from localctx.errors import InputError, LimitExceeded

SPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def xlsx(
    *sheets: str, strings: str = "", formats: tuple[str, ...] = (), workbook: str = "", **states: str
) -> bytes:
    """A workbook of sheets' inner XML named S1, S2, …; style n has the n-th of `formats`."""
    tabs = "".join(
        f'<sheet name="S{n}" r:id="r{n}" state="{states.get(f"s{n}", "visible")}"/>'
        for n in range(1, len(sheets) + 1)
    )
    codes = "".join(
        f'<numFmt numFmtId="{200 + n}" formatCode="{code.replace(chr(34), "&quot;")}"/>'
        for n, code in enumerate(formats)
    )
    styles = "".join(f'<xf numFmtId="{200 + n}"/>' for n in range(len(formats)))
    rows = [(f"r{n}", "worksheet", f"worksheets/s{n}.xml") for n in range(1, len(sheets) + 1)]
    return zipped(
        {
            "_rels/.rels": relations(("r1", "officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f"<workbook {SPACE} {OFFICE}>{workbook}<sheets>{tabs}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": relations(
                *rows, ("a", "sharedStrings", "sharedStrings.xml"), ("b", "styles", "styles.xml")
            ),
            "xl/sharedStrings.xml": f"<sst {SPACE}>{strings}</sst>",
            "xl/styles.xml": f"<styleSheet {SPACE}><numFmts>{codes}</numFmts>"
            f"<cellXfs>{styles}</cellXfs></styleSheet>",
            **{f"xl/worksheets/s{n}.xml": f"<worksheet {SPACE}>{sheet}</worksheet>"
               for n, sheet in enumerate(sheets, 1)},
        }
    )  # fmt: skip


def rows(*lines: tuple[str, ...], start: int = 1) -> str:
    """A sheet of text cells; "" is no cell, what begins with < is the cell's inner XML and attributes."""
    made = []
    for number, line in enumerate(lines, start):
        cells = "".join(
            f'<c r="{chr(64 + column)}{number}" t="inlineStr"><is><t>{text}</t></is></c>'
            for column, text in enumerate(line, 1)
            if text
        )
        made.append(f'<row r="{number}">{cells}</row>')
    return f"<sheetData>{''.join(made)}</sheetData>"


def cell(place: str, value: str, kind: str = "n", style: int = 0, formula: str = "") -> str:
    """One cell."""
    made = f"<f>{formula}</f>" if formula else ""
    made += f"<v>{value}</v>" if value else ""
    return f'<c r="{place}" t="{kind}" s="{style}">{made}</c>'


def test_sheets_are_sections_and_rows_are_table_rows(open_bytes: Open) -> None:
    first = rows(("Report",), (), ("Name", "Town"), ("Anna | Bo", "Oslo"), ("", "Rome"))
    document = open_bytes(xlsx(first, rows(("x", "y")), s2="hidden"), "a.xlsx")
    assert document.format == "xlsx"
    assert text_of(document) == (
        "S1\n\nReport\n\n| Name | Town |\n|---|---|\n| Anna \\| Bo | Oslo |\n|  | Rome |\n\n"
        "S2 (hidden sheet)\n\n| x | y |\n|---|---|\n\n"
    )
    assert [section.title for section in document.sections] == ["S1", "S2 (hidden sheet)"]
    assert any("'S2' is hidden" in text for text in document.warnings)


def test_cells_show_what_a_spreadsheet_shows(open_bytes: Open) -> None:
    strings = (
        "<si><r><t>rich</t></r><r><t xml:space='preserve'> text_x000A_two</t></r><rPh><t>no</t></rPh></si>"
    )
    cells = (
        cell("A1", "0", "s"),
        cell("B1", "45000", style=1),
        cell("C1", "-1234.5", style=0),
        cell("D1", "1", "b"),
        cell("E1", "#DIV/0!", "e"),
        cell("F1", "42", formula="6*7"),
        cell("G1", "shown", "str", formula="A1"),
        cell("H1", "", formula="SUM(A1:A9)"),
        cell("I1", "0.30000000000000004", style=9),
    )
    sheet = f"<sheetData><row r='1' hidden='1'>{''.join(cells)}</row></sheetData>"
    document = open_bytes(xlsx(sheet, strings=strings, formats=('#,##0.00 "€"', "yyyy-mm-dd")), "a.xlsx")
    shown = (
        "| rich text two | 2023-03-15 | -1,234.50 € | TRUE | #DIV/0! | 42.00 € | shown | =SUM(A1:A9) | 0.3 |"
    )
    assert shown in text_of(document)
    assert [w.split(": ")[1][:20] for w in document.warnings] == [
        "1 hidden row was rea",
        "1 formula without a ",
    ]


def test_a_cell_without_a_value_shows_nothing(open_bytes: Open) -> None:
    empty = [f'<c r="{chr(66 + n)}1" t="s">{value}</c>' for n, value in enumerate(
        ("", "<v/>", "<v> </v>", "<v>-1</v>", "<v>x</v>", "<v>9</v>", "<v>999999999999</v>")
    )]  # fmt: skip
    others = '<c r="I1" t="b"><v> </v></c><c r="J1" t="n"><v> </v></c>'
    sheet = sheet_of("<c r='A1'><v>1</v></c>" + "".join(empty) + others + "<c r='K1'><v>2</v></c>")
    document = open_bytes(xlsx(sheet, strings="<si><t>string 0</t></si>", formats=("0.00",)), "a.xlsx")
    assert "| 1.00 |  |  |  |  |  |  |  |  |  | 2.00 |" in text_of(document)


def test_merged_cells_are_filled(open_bytes: Open) -> None:
    sheet = rows(("2023", "", "note"), ("North", "1", "a"), ("", "2", "b"), ("South", "3", "c"))
    sheet += '<mergeCells><mergeCell ref="A1:B1"/><mergeCell ref="A2:A3"/></mergeCells>'
    assert text_of(open_bytes(xlsx(sheet), "a.xlsx")).splitlines()[2:] == [
        "| 2023 | 2023 | note |", "|---|---|---|", "| North | 1 | a |",
        "| North | 2 | b |", "| South | 3 | c |", "",
    ]  # fmt: skip


def test_a_far_cell_is_named_and_draws_no_empty_ones(open_bytes: Open) -> None:
    far = f"<sheetData><row r='1'>{cell('A1', '1')}{cell('XFD1', '2')}</row></sheetData>"
    assert text_of(open_bytes(xlsx(far), "a.xlsx")) == "S1\n\nA1: 1; XFD1: 2\n\n"


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        ("1234.5", "General", "1234.5"),
        ("12345678901234", "General", "12345678901234"),
        ("0.256", "0.0%", "25.6%"),
        ("5", '0"%"', "5%"),
        ("-1234.5", "#,##0.00;[Red](#,##0.00)", "(1,234.50)"),
        ("0", '0;-0;"-"', "-"),
        ("7", "00000", "00007"),
        ("1234567", "#,##0,", "1,235"),
        ("1.005", "0.00", "1.01"),
        ("0.000123", "0.00E+00", "1.23E-04"),
        ("1234567.891", "[$€-407] #,##0.00", "€ 1,234,567.89"),
        ("45000.75", "d/m/yyyy h:mm AM/PM", "15/3/2023 6:00 PM"),
        ("45000", "dd.mm.yyyy;@", "15.03.2023"),
        ("45000", "[$-F800]dddd, mmmm dd, yyyy", "2023-03-15"),
        ("44927", "mmm-yy", "Jan-23"),
        ("1.5", "[h]:mm", "36:00"),
        ("59", "yyyy-mm-dd", "1900-02-28"),
        ("61", "yyyy-mm-dd", "1900-03-01"),
        ("0.5", "# ?/?", "0.5"),
        ("1e400", "0", "1e400"),
        ("-1", "yyyy", "-1"),
        ("words", "0.00", "words"),
        ("12", 'General" kg"', "12 kg"),
    ],
)
def test_numbers_under_their_format(value: str, code: str, shown: str) -> None:
    assert shower(code)(value) == shown


def test_dates_may_count_from_1904(open_bytes: Open) -> None:
    sheet = f"<sheetData><row r='1'>{cell('A1', '0')}</row></sheetData>"
    made = xlsx(sheet, formats=("yyyy-mm-dd",), workbook='<workbookPr date1904="1"/>')
    assert "1904-01-01" in text_of(open_bytes(made, "a.xlsx"))


def test_damage_and_bombs_are_one_line(open_bytes: Open) -> None:
    whole = xlsx(rows(("a", "b")))
    with pytest.raises(InputError):
        open_bytes(whole[: len(whole) // 2], "a.xlsx")
    with pytest.raises(InputError, match="damaged document"):
        open_bytes(xlsx("<sheetData><row>"), "a.xlsx")
    bomb = xlsx(rows(*[("A" * 1000,)] * 3000))
    with pytest.raises(LimitExceeded, match="unpacks to more than"):
        open_bytes(bomb, "a.xlsx", limits=Limits(zip_bytes=1 << 20))


def sheet_of(*lines: str, merges: str = "") -> str:
    """A sheet of rows of cells."""
    made = "".join(f'<row r="{n}">{cells}</row>' for n, cells in enumerate(lines, 1))
    return f"<sheetData>{made}</sheetData><mergeCells>{merges}</mergeCells>"


SHARED = f"<si><t>{'A' * 10_000}</t></si>"


def test_a_row_that_repeats_one_string_is_stopped(open_bytes: Open) -> None:
    once = '<c t="s"><v>0</v></c>'
    at_once = xlsx(sheet_of(once * 150), strings=SHARED)
    with pytest.raises(LimitExceeded, match="over 1,000,000 characters"):
        open_bytes(at_once, "a.xlsx", limits=Limits(token_bytes=1_000_000))
    in_rows = xlsx(sheet_of(*[once * 15] * 10), strings=SHARED)
    with pytest.raises(LimitExceeded, match="over 1,000,000 characters"):
        open_bytes(in_rows, "a.xlsx", limits=Limits(token_bytes=1_000_000))
    with pytest.raises(LimitExceeded, match="row 1 is longer"):
        wide = xlsx(sheet_of(once, merges='<mergeCell ref="A1:BL1"/>'), strings=SHARED)
        open_bytes(wide, "a.xlsx", limits=Limits(token_bytes=500_000))
    assert text_of(open_bytes(in_rows, "a.xlsx")).count("A" * 10_000) == 150


def test_what_cells_repeat_counts_as_unpacked(open_bytes: Open) -> None:
    filled = sheet_of('<c r="A1" t="s"><v>0</v></c>', *[""] * 50, merges='<mergeCell ref="A1:A9999"/>')
    filled = filled.replace("</row>", '<c r="B1"><v>1</v></c></row>')
    for sheet in (filled, sheet_of(*['<c r="A1" t="s"><v>0</v></c>'] * 50)):
        with pytest.raises(LimitExceeded, match="unpacks to more than"):
            open_bytes(xlsx(sheet, strings=SHARED), "a.xlsx", limits=Limits(zip_bytes=400_000))


class Cells(dict[int, str]):
    """Counts how often a cell is to be filled."""

    n_fills = 0

    def setdefault(self, column: int, text: str = "", /) -> str:
        self.n_fills += 1
        return super().setdefault(column, text)


def test_merged_ranges_over_one_another_are_filled_once() -> None:
    writer = RowWriter(Merges([(1, 1, 9, 2)] * 1000), 1000)
    assert writer.row(1, {1: "x"}) == ["| x | x |\n", "|---|---|\n"]
    cells = Cells({3: "y"})
    assert writer.row(2, cells) == ["| x | x | y |\n"]
    assert cells.n_fills == 2


def test_a_missing_sheet_is_told(open_bytes: Open) -> None:
    from document.inputs import without

    document = open_bytes(without(xlsx(rows(("a", "b")), rows(("c",))), "xl/worksheets/s2.xml"), "a.xlsx")
    assert "sheet 'S2' is missing in the file" in document.warnings
