"""`localctx extract` as it is typed: forms, exit codes, what is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localctx.cli.render import Reporter
from localctx.session.events import Planned

Run = Callable[..., Any]
SCHEMA = {"properties": {"id": {"type": "integer"}, "city": {"const": "Oslo"}}, "required": ["id", "city"]}
ROWS = "id,city\n1,Oslo\n2,Lyon\n3,Oslo\n"


@pytest.fixture
def call(localctx: Run, tiny_model_path: Path, tmp_path: Path) -> Run:
    """Extract from a small table with a tiny model."""
    (tmp_path / "rows.csv").write_text(ROWS)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))

    def extract(*words: str, name: str = "rows.csv") -> Any:
        file, schema = str(tmp_path / name), str(tmp_path / "schema.json")
        options = ["-m", str(tiny_model_path), "--store", "off", "--embedder", "off"]
        return localctx("extract", file, "--schema", schema, *options, *words)

    return extract


def test_text(call: Run) -> None:
    result = call()
    assert result.code == 0
    assert [line.split(" [")[0] for line in result.out.splitlines()] == [
        "1. id: 1 · city: Oslo",
        "2. id: 3 · city: Oslo",
    ]
    assert "2 records (read by their parser); 3 of 3 records read" in result.err
    assert "1 do not fulfil the schema" in result.err


def test_json_and_lines_hold_the_same_records(call: Run) -> None:
    value = call("--json").json
    assert (value["schema"], value["n_records"], value["how"]) == ("localctx.records/1", 2, ["parser"])
    assert value["passed"] == {"units": 3, "read": 3, "repeated": 0, "unfit": 1, "unheld": 0, "broken": 0}
    lines = [json.loads(line) for line in call("--jsonl").out.splitlines()]
    assert lines == value["records"]
    assert lines[1]["record"] == {"id": 3, "city": "Oslo"}
    assert [(ROWS[one["start"] : one["end"]], one["quote"]) for one in lines[1]["citations"]] == [
        ("3,Oslo", "3,Oslo")
    ]


@pytest.mark.parametrize("data", [ROWS, json.dumps([{"id": n, "city": "Oslo"} for n in (1, 3)])])
def test_records_on_standard_input_are_read_by_their_parser(
    localctx: Run, tiny_model_path: Path, tmp_path: Path, data: str
) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    words = [
        "--schema",
        str(tmp_path / "schema.json"),
        "-m",
        str(tiny_model_path),
        "--store",
        "off",
        "--json",
    ]
    value = localctx("extract", "-", *words, stdin=data.encode()).json
    assert value["how"] == ["parser"]
    assert [one["record"]["id"] for one in value["records"]] == [1, 3]


def test_a_warning_is_told_once_and_one_thing_is_not_several(call: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,city\n1,Os\0lo\n")
    result = call()
    assert result.err.count("NUL") == 1
    assert "— extract: 1 record (read by their parser); 1 of 1 record read\n" in result.err
    assert call("--json").json["warnings"] == ["1 NUL or lone surrogate characters were removed"]


def test_a_line_that_is_no_record_is_not_laid_to_the_model(call: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('{"id": 1, "city": "Oslo"}\n{"id": 3, "ci')
    (tmp_path / "rows.csv").rename(tmp_path / "rows.jsonl")
    result = call(name="rows.jsonl")
    assert result.err.count("warning: ") == 1
    assert "1 line is no record" in result.err
    assert "--max-tokens" not in result.err


def test_the_quick_look_is_named_only_where_parts_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(as_json=False, quiet=False, verbose=False, shows_answer=True)
    reporter.event(Planned("map-reduce", "every sentence is read", 200_000, 0))
    assert "condense" not in capsys.readouterr().err
    reporter.event(Planned("map-reduce", "does not fit", 200_000, 4096, n_parts=50))
    assert "--strategy condense" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["--json", "--jsonl", "--quiet"])
def test_a_file_gets_what_standard_output_would(call: Run, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    result = call(form, "-o", str(out))
    assert (result.code, result.out) == (0, "")
    there, here = out.read_text(), call(form).out
    if form == "--json":
        assert json.loads(there)["records"] == json.loads(here)["records"]
    else:
        assert there == here


def test_no_records_is_an_empty_list(call: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,city\n2,Lyon\n")
    result = call("--json")
    assert (result.code, result.json["records"]) == (0, [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "extract needs the schema of a record"),
        (["-j", "{}"], "the schema has no properties"),
        (["-j", '{"properties": {"a": {"pattern": "x"}}}'], '"pattern" is not supported'),
        (["-j", '{"properties": {"a": {}}}', "--json", "--jsonl"], "two forms"),
        (["-j", '{"properties": {"a": {}}}', "--strategy", "exact"], "is not for extract"),
        (["-j", "nowhere.json"], "no such file"),
    ],
)
def test_bad_usage_is_one_line(
    localctx: Run, tiny_model_path: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    result = localctx(
        "extract", str(tmp_path / "a.csv"), "-m", str(tiny_model_path), "--store", "off", *words
    )
    assert result.code == 2
    assert said in result.out + result.err


def test_an_input_is_not_overwritten(call: Run, tmp_path: Path) -> None:
    result = call("-o", str(tmp_path / "rows.csv"))
    assert (result.code, (tmp_path / "rows.csv").read_text()) == (2, ROWS)
