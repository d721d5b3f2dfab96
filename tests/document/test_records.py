"""Records of structured documents: every one, once, with its place in the text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def test_running_text_has_no_records(read: Read, tmp_path: Path) -> None:
    assert read("a.xml", "<p>hello world this is</p>")[0].damage == "it is running text"
    report, records, _ = read("a.txt", "hello")
    assert (records, has_records(report.document)) == ([], False)
