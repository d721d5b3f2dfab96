"""Records of structured documents: every one, once, with its place in the text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.document import open_document
from localctx.document.records import Record, Records, has_records

Read = Callable[[str, str], tuple[Records, list[Record], list[str]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write a file, read its records: the report, the records, and the text of each."""

    def call(name: str, content: str) -> tuple[Records, list[Record], list[str]]:
        path = tmp_path / name
        path.write_bytes(content.encode())
        with open_document(path, cache_dir=None) as document:
            report = Records(document)
            records = list(report)
            return report, records, [document.read(one.start, one.end) for one in records]

    return call


def fields(records: list[Record]) -> list[dict[str, Any]]:
    """What the records hold."""
    return [dict(one.fields) for one in records]


@pytest.mark.parametrize(
    ("text", "wanted", "kinds"),
    [
        ('[{"a": 1}, {"a": 2.5}]', [{"a": 1}, {"a": 2.5}], {"record": 2}),
        ("[]", [], {}),
        ("[1, 2, 30]", [{"value": 1}, {"value": 2}, {"value": 30}], {"record": 3}),
        ('{"of": {"users": [{"a": 1}], "orders": [{"b": 2}, {}]}, "n": 3}', [{"a": 1}, {"b": 2}, {}],
         {"users": 1, "orders": 2}),
        ('{"ann": {"age": 1}, "bo": {"age": 2}}', [{"key": "ann", "age": 1}, {"key": "bo", "age": 2}],
         {"record": 2}),
        ('{"name": "x", "tags": ["p", "q"]}', [{"name": "x", "tags": ["p", "q"]}], {"record": 1}),
        ('[{"a": {"b": [{"c": 1}, {"c": 2}]}}]', [{"a.b.c": [1, 2]}], {"record": 1}),
    ],
)  # fmt: skip
def test_json_records(read: Read, text: str, wanted: list[Any], kinds: dict[str, int]) -> None:
    report, records, texts = read("a.json", text)
    assert (fields(records), report.kinds, report.damage) == (wanted, kinds, None)
    if "key" not in text and wanted and "ann" not in text and "value" not in wanted[0]:
        assert all(one.startswith("{") and one.endswith("}") for one in texts)


@pytest.mark.parametrize("text", ['[{"a": 1}, {"a":', '[{"a": 1}] x', '[{"a": 1}; 2]', "[" * 100_000])
def test_damaged_json_says_so(read: Read, text: str) -> None:
    report, records, _ = read("a.json", text)
    assert report.damage is not None
    assert len(records) <= 1


@settings(deadline=None, max_examples=25)
@given(
    rows=st.lists(st.dictionaries(st.sampled_from("abc"), st.integers() | st.text() | st.none()), max_size=8)
)
def test_json_is_read_whatever_the_pieces(rows: list[dict[str, Any]]) -> None:
    """The text comes in pieces of three characters."""
    from localctx.document.records_json import _Cursor, _members

    text = json.dumps(rows)
    pieces = (text[at : at + 3] for at in range(0, len(text), 3))
    found = list(_members(_Cursor(iter(pieces))))
    assert fields(found) == rows
    assert [json.loads(text[one.start : one.end]) for one in found] == rows


@pytest.mark.parametrize("text", ["[1.5, -2.25e+10, 3]", '{"a": {"b": 1.5e3}, "c": 10.25}', "[true, 0.5E-3]"])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_a_number_may_be_cut_anywhere(text: str, size: int) -> None:
    from localctx.document.records_json import _Cursor

    cursor = _Cursor(text[at : at + size] for at in range(0, len(text), size))
    if text[0] == "[":
        found = [one.fields["value"] for one in cursor.array("x")]
        assert found == json.loads(text)
    else:
        assert cursor.value() == json.loads(text)


def test_json_lines_are_read_piece_by_piece() -> None:
    """The first record is there before the second piece is asked for."""
    from localctx.document import records_json

    taken: list[int] = []

    def stream() -> Iterator[str]:
        for number in range(9):
            taken.append(number)
            yield f'{{"a": {number}}}\n'

    document = SimpleNamespace(format="jsonl", text=SimpleNamespace(stream=stream))
    found = records_json._lines(cast(Any, document), Records(cast(Any, document)))
    assert (next(found).fields, taken) == ({"a": 0}, [0])
    assert len(list(found)) == 8


@pytest.mark.parametrize(
    "text",
    [
        '{"u1": {"name": "A", "orders": [{"x": 1}, {"x": 2}]}, "u2": {"name": "B", "orders": [{"x": 3}]}}',
        '{"u1": {"name": "A", "orders": []}, "u2": {"name": "B", "orders": [{"x": 3}]}}',
        '{"u1": {"name": "A", "orders": [{"x": 3}]}, "u2": {"name": "B", "orders": []}}',
        '{"all": {"u1": {"name": "A", "of": [{"x": 1}]}, "u2": {"name": "B", "of": [{"x": 3}]}}}',
    ],
)
def test_lists_inside_records_are_not_taken_for_the_records(read: Read, text: str) -> None:
    assert "cannot be told" in str(read("a.json", text)[0].damage)


def test_lists_beside_facts_of_the_answer_are_records(read: Read) -> None:
    report, records, _ = read("a.json", '{"meta": {"v": 1}, "data": {"n": 2, "items": [{"x": 1}, {"x": 2}]}}')
    assert (fields(records), report.damage) == ([{"x": 1}, {"x": 2}], None)


def test_lines_that_are_no_json_are_counted(read: Read) -> None:
    report, records, texts = read("a.jsonl", '{"a": 1}\r\n\n{"a":\n{"a": 3}')
    assert (fields(records), report.n_skipped) == ([{"a": 1}, {"a": 3}], 1)
    assert texts == ['{"a": 1}', '{"a": 3}']


def test_csv_rows_with_quotes_line_breaks_and_any_line_end(read: Read) -> None:
    text = 'name,city,n\r\nAnna,"Lyon, Rhône",12\r\nBert,"two\nlines",7\r\n\r\nCarl,X,1'
    _, records, texts = read("a.csv", text)
    assert fields(records) == [
        {"name": "Anna", "city": "Lyon, Rhône", "n": "12"},
        {"name": "Bert", "city": "two\nlines", "n": "7"},
        {"name": "Carl", "city": "X", "n": "1"},
    ]
    assert texts == ['Anna,"Lyon, Rhône",12', 'Bert,"two\nlines",7', "Carl,X,1"]


def test_csv_without_a_header_and_with_another_delimiter(read: Read) -> None:
    _, records, _ = read("a.csv", "1;2\n3;4\n")
    assert fields(records) == [{"column 1": "1", "column 2": "2"}, {"column 1": "3", "column 2": "4"}]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (",name,city\n0,Ann,Paris\n1,Bob,Lyon\n", ["column 1", "name", "city"]),
        ("country,2019,2020\nFR,5,6\nDE,7,8\n", ["country", "2019", "2020"]),
        ("place,1/22/20,1/23/20\nA,1,2\nB,0,4\n", ["place", "1/22/20", "1/23/20"]),
        (",0,1\n0,a,b\n1,c,d\n", ["column 1", "0", "1"]),
        ("name,,city\nAnn,x,Paris\nBob,y,Lyon\n", ["name", "column 2", "city"]),
        ("5,7\n8,9\n", ["column 1", "column 2"]),
    ],
)
def test_a_csv_header_is_no_record(read: Read, text: str, wanted: list[str]) -> None:
    report, records, _ = read("a.csv", text)
    assert (len(records), report.damage) == (2, None)
    assert all(list(one.fields) == wanted for one in records)


@pytest.mark.parametrize(
    "text",
    [
        "Ann,Paris,100\nBob,Lyon,200\n",
        "name,name,city\nAnn,Lee,Paris\n",
        "2019,2020\n2021,2022\n",
        "Ann,2019,2020\nBob,2018,2019\n",
        "country,2019,2020\n",
        "Ann,2019-05-01\nBob,2018-04-02\n",
        "Ann,true\nBob,false\n",
    ],
)
def test_a_first_row_that_may_be_either_is_not_counted(read: Read, text: str) -> None:
    report, records, _ = read("a.csv", text)
    assert (records, report.damage) == ([], "whether its first row names the columns cannot be told")


def test_a_long_cell_is_read(read: Read) -> None:
    report, records, _ = read("a.csv", f'name,text\nAnn,"{"word " * 40_000}"\nBob,short\n')
    assert ([one.fields["name"] for one in records], report.damage) == (["Ann", "Bob"], None)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "<all><item id='1'><name>A: b</name><at><city>X</city></at></item><item id='2'/></all>",
            [("item", {"id": "1", "name": "A: b", "city": "X"}), ("item", {"id": "2"})],
        ),
        (
            "<all><users><user><n>A</n></user><user><n>B</n></user></users>"
            "<orders><order><n>1</n></order><order><n>2</n></order></orders></all>",
            [("user", {"n": "A"}), ("user", {"n": "B"}), ("order", {"n": "1"}), ("order", {"n": "2"})],
        ),
        (
            "<all><i id='1' k='v 1'/><i id='2' k='w'/></all>",
            [("i", {"id": "1", "k": "v 1"}), ("i", {"id": "2", "k": "w"})],
        ),
        (
            "<all><i><tag>a</tag><tag>b</tag></i><i><tag>c</tag><tag>d</tag></i></all>",
            [("i", {"tag": ["a", "b"]}), ("i", {"tag": ["c", "d"]})],
        ),
        (
            "<rss><channel><title>News</title><item><d>two\nlines</d></item><item><d>x</d></item></channel></rss>",
            [("item", {"d": "two\nlines"}), ("item", {"d": "x"})],
        ),
    ],
)  # fmt: skip
def test_xml_records(read: Read, text: str, wanted: list[tuple[str, dict[str, Any]]]) -> None:
    _, records, _ = read("a.xml", text)
    assert [(one.kind, dict(one.fields)) for one in records] == wanted


@pytest.mark.parametrize("row", ["<item id='{}'/>", "<item><id>{}</id></item>"])
def test_long_xml_lists_lose_nothing(read: Read, row: str) -> None:
    rows = "".join(row.format(n) for n in range(9_000))
    _, records, _ = read("a.xml", f"<all>{rows}</all>")
    assert [one.fields["id"] for one in records] == [str(n) for n in range(9_000)]


@pytest.mark.parametrize(
    "text", ['[{"a": 1}, {"a": 2}]', '{"a": 1}\n{"a": 2}\n', '[\n {"a": 1},\n {"a": 2}\n]']
)
def test_json_without_a_name_is_known_by_its_look(read: Read, text: str) -> None:
    report, records, _ = read("piped", text)
    assert (fields(records), report.damage) == ([{"a": 1}, {"a": 2}], None)


def test_csv_with_an_open_quote_is_damaged(read: Read) -> None:
    assert read("a.csv", 'a,b\n1,2\n"open,3\n4,5\n')[0].damage is not None


def test_running_text_has_no_records(read: Read, tmp_path: Path) -> None:
    assert read("a.xml", "<p>hello world this is</p>")[0].damage == "it is running text"
    (tmp_path / "a.txt").write_text("[note] hello")
    with open_document(tmp_path / "a.txt", cache_dir=None) as document:
        assert (list(Records(document)), has_records(document)) == ([], False)
