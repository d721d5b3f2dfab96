"""Kept results: what is in the file, and that the page and its plots are made of them."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from localctx.errors import LocalctxError, UsageError
from localctx.eval import results
from localctx.eval.benchmark_renderers import RENDERERS, tables_of
from localctx.eval.benchmarks_page import page, plot_sources, write_page
from localctx.eval.folders import command_without_folders, without_folders
from localctx.eval.results import Result, read_results, run_command
from localctx.eval.tables import cell

DOCS = Path(__file__).parents[2] / "docs"
MACHINE = {
    "cpu": "A CPU",
    "n_cores": 2,
    "n_threads": 1,
    "simd": "avx2",
    "ram_bytes": 25_000_000_000,
    "gpus": ["A GPU (A GPU by A, 139 GiB)"],
    "system": "Linux-6.1-some-host",
    "load_average": 0.5,
    "localctx": "0.1.0",
    "llama_cpp_python": "0.3.36",
}
PRINTED = {
    "schema": "localctx.bench.made/1",
    "machine": MACHINE,
    "source": "/home/somebody/texts/report.txt",
    "n_tokens": 12345,
    "ways": [
        {"way": "one|two", "ttft_s": {"median": 1.5, "lowest": 1.0, "highest": 2.0, "n": 3}, "right": 3},
        {"way": "other", "ttft_s": {"median": 1.0, "lowest": 1.0, "highest": 1.0, "n": 1}, "extra": None},
    ],
    "questions": [{"text": "long"}],
    "plots": [
        {"title": "T", "x_name": "x", "y_name": "y", "places": [1, 2], "lines": {"a": [1.0, 2.0]}},
    ],
}


def _kept(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str, printed: object = PRINTED) -> Result:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(printed)))
    results.main(
        ["made-here", "--command", "localctx bench made -m /models/a.gguf", *words, "--folder", str(folder)]
    )
    return Result.of_file(folder / "made-here.json")


def test_a_result_names_the_class_of_machine_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = _kept(tmp_path, monkeypatch, "--note", "busy", "--without", "questions")
    text = (tmp_path / "made-here.json").read_text("utf-8")
    assert kept.command == "localctx bench made -m a.gguf"
    assert kept.machine["ram_gib"] == 23 and kept.machine["gpus"] == MACHINE["gpus"]
    assert kept.versions["llama_cpp_python"] == "0.3.36"
    assert kept.result["source"] == "report.txt" and "questions" not in kept.result
    assert (kept.note, kept.left_out, kept.schema) == ("busy", ("questions",), "localctx.bench.made")
    assert "somebody" not in text and "some-host" not in text and "/models" not in text


@pytest.fixture
def alice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs this is called so."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, "/srv/people/alice")
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "alice")


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("/a/b/c.gguf", "c.gguf"),
        ("tokens/s and/or 1/2", "tokens/s and/or 1/2"),
        ("/s", "/s"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("hf:owner/repo:file", "hf:owner/repo:file"),
        ("docs/results/a.json", "docs/results/a.json"),
        ("/home/alice", "~"),
        ("/home/bob/", "~"),
        ("/home/John Smith/m/a.gguf", "a.gguf"),
        ("/Users/alice/Documents (old)/x.gguf", "x.gguf"),
        (r"C:\Users\alice\a.gguf", "a.gguf"),
        (r"C:\Users\John Smith", "~"),
        ("file:///home/alice/x", "x"),
        ("../alice/models/x", "x"),
        ("~/models/x", "x"),
        ("~bob/models/x", "x"),
        ("/srv/people/alice", "~"),
        ("/srv/people/alice/m/a.gguf", "a.gguf"),
        ("cannot read '/home/John Smith/m/a.gguf': no room", "cannot read 'a.gguf': no room"),
        ("cannot read /home/bob/m/a.gguf: no room", "cannot read a.gguf: no room"),
        ("the notes of alice", "the notes of user"),
        ("malice", "malice"),
    ],
)
def test_of_a_path_the_last_part_is_kept(text: str, kept: str) -> None:
    assert without_folders({"list": [text]}) == {"list": [kept]}


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("localctx ask --data=/tmp/x/y -q 'a /b?'", "localctx ask --data=y -q 'a /b?'"),
        ('localctx ask -q "typed  so" a.txt | head', 'localctx ask -q "typed  so" a.txt | head'),
        ("localctx ask '/home/John Smith/m/a.txt' -n 5", "localctx ask a.txt -n 5"),
        (r"localctx ask /home/John\ Smith/m/a.txt", "localctx ask a.txt"),
        ("localctx ask --data='/home/John Smith/my data'", "localctx ask '--data=my data'"),
        ("localctx ask '/Users/alice/Documents (old)/x.gguf'", "localctx ask x.gguf"),
        (r"localctx ask C:\Users\alice\a.gguf -n 5", "localctx ask a.gguf -n 5"),
        (r"localctx ask 'C:\Users\John Smith\a.gguf'", "localctx ask a.gguf"),
        (
            "localctx ask /home/alice file:///home/alice/x ../alice/models/y ~/models/z",
            "localctx ask '~' x y z",
        ),
        ("localctx ask docs/a.md hf:owner/repo", "localctx ask docs/a.md hf:owner/repo"),
        ("localctx ask it's /home/bob/x", "localctx ask it's x"),
    ],
)
def test_a_command_names_nobody(command: str, kept: str) -> None:
    assert command_without_folders(command) == kept


@pytest.mark.usefixtures("alice")
def test_what_is_kept_in_the_repository_names_nobody() -> None:
    for one in read_results(DOCS / "results"):
        assert command_without_folders(one.command) == one.command
        assert without_folders(dict(one.result)) == one.result, one.name
        assert without_folders(one.note) == one.note


@pytest.mark.parametrize(
    "printed", [[], {"error": {"message": "no"}, "schema": "localctx.error/1"}, {"n": 1}]
)
def test_what_is_no_result_is_refused(
    printed: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError):
        _kept(tmp_path, monkeypatch, printed=printed)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["--without", "nothing"], ["--command", ""]])
def test_options_that_cannot_be_are_refused(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises((UsageError, SystemExit)):
        _kept(tmp_path, monkeypatch, *words)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "localctx.other/1"}', "\x00"])
def test_a_file_that_is_no_result_is_told_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(UsageError, match=r"bad\.json"):
        read_results(tmp_path)


def test_commands_are_run_with_json_and_their_failure_is_told() -> None:
    assert (
        run_command(
            [
                "python",
                "-c",
                'import sys; print(\'{"schema": "a/1", "n": %d}\' % (sys.argv[1:] == [\'--json\']))',
            ]
        )["n"]
        == 1
    )
    with pytest.raises(LocalctxError, match="exit code 3") as failed:
        run_command(["python", "-c", "raise SystemExit(3)"])
    assert failed.value.hint == "see above"
    error = 'print(\'{"error": {"message": "no room"}}\'); raise SystemExit(1)'
    with pytest.raises(LocalctxError, match="exit code 1") as failed:
        run_command(["python", "-c", error])
    assert failed.value.hint == "no room"
    with pytest.raises(UsageError):
        run_command(["rm", "-rf"])


@pytest.mark.parametrize(
    ("name", "folder"), [("No Name", "results"), ("fine", "file"), ("fine", "file/below")]
)
def test_where_it_goes_is_looked_at_before_anything_runs(name: str, folder: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    script = f"open({str(tmp_path / 'ran')!r}, 'w')"
    with pytest.raises(UsageError):
        results.main([name, "--folder", str(tmp_path / folder), "--", "python", "-c", script])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "words",
    [
        ["results", "No Name", "--", "python", "-c", "pass"],
        ["layers", "--spans", "0"],
        ["benchmarks_page", "{folder}"],
    ],
)
def test_an_error_is_one_line_and_an_exit_code(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "bad.json").write_text("{")
    module, *others = (word.format(folder=tmp_path) for word in words)
    done = subprocess.run(
        [sys.executable, "-m", f"localctx.eval.{module}", *others],
        check=False,
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith("localctx: ")


def test_figures_are_shown_with_their_spread_and_bars_do_not_end_a_cell() -> None:
    alone, ways = tables_of(PRINTED)[0], tables_of(PRINTED)[1]
    assert ["n_tokens", "12,345"] in [list(row) for row in alone.rows]
    assert list(ways.columns) == ["way", "ttft_s", "right", "extra"]
    assert list(ways.rows[0]) == ["one|two", "1.5 (1-2)", "3", "–"]
    assert "one\\|two" in ways.markdown
    assert cell(0.123456) == "0.1235" and cell(True) == "yes" and cell([1, 2.5]) == "1 / 2.5"


def test_the_page_and_its_plots_follow_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "results"
    _kept(folder, monkeypatch)
    (folder / "loses.md").write_text("## Where it loses\n\nHere.\n")
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "gone-1.svg").write_text("")
    write_page(tmp_path)
    text = (tmp_path / "benchmarks.md").read_text("utf-8")
    first = (tmp_path / "plots" / "made-here-1.svg").read_bytes()
    assert "localctx bench made -m a.gguf" in text and text.endswith("## Where it loses\n\nHere.\n")
    assert "(plots/made-here-1.svg)" in text and not (tmp_path / "plots" / "gone-1.svg").exists()
    assert plot_sources(folder)["made-here-1.svg"].encode() in first
    write_page(tmp_path)
    assert (tmp_path / "plots" / "made-here-1.svg").read_bytes() == first


def test_the_page_in_the_repository_is_fresh() -> None:
    again = "python -m localctx.eval.benchmarks_page"
    assert (DOCS / "benchmarks.md").read_text("utf-8") == page(DOCS / "results"), again
    for name, source in plot_sources(DOCS / "results").items():
        assert source in (DOCS / "plots" / name).read_text("utf-8"), again


def test_results_of_known_schemas_have_their_own_tables() -> None:
    row = {
        "way": "lazy", "first_token_s": {"median": 2.0, "lowest": 1.0, "highest": 3.0}, "n_evaluated": 12,
        "seconds": {"median": 2.0, "lowest": 2.0, "highest": 2.0}, "prepared_s": 0.0, "kept_bytes": 12345678,
        "peak_memory_bytes": 2_000_000_000, "peak_device_bytes": None, "n_right": 1, "n_declined": 0,
        "joules": {"gpu": 1.5, "cpu": 2.0},
    }  # fmt: skip
    compared = {
        "schema": "localctx.bench.compare/1", "n_with_answer": 3, "n_without_answer": 1, "baseline": "dense",
        "ways": [row], "model": {"name": "m"}, "source": "a.txt", "n_tokens": 4096, "n_rounds": 5,
        "max_tokens": 24, "missing": {"exact": "too long"},
    }  # fmt: skip
    table, missing = tables_of(compared)
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert (cells["first token, s"], cells["on disk"], cells["memory"]) == ("2 (1-3)", "12.3 MB", "2 GB")
    assert (cells["GPU memory"], cells["right of 3"], cells["joules"]) == ("–", "1", "3.5")
    assert list(missing.rows) == [("exact", "too long")]
    niah = {
        "schema": "localctx.eval.niah/1", "model": {"name": "m"}, "haystack": "made prose",
        "rows": [{"length": 8192, "language": "en", "task": "single", "n": 8,
                  "modes": {"exact": {"recall": 0.5, "declined": 0.25, "false_answers": None}}}],
        "totals": [{"language": None, "task": "all", "n": 8, "modes": {}}],
    }  # fmt: skip
    (answers,) = tables_of(niah)
    assert list(answers.columns) == ["tokens", "language", "task", "questions", "exact"]
    assert [list(one) for one in answers.rows] == [
        ["8,192", "en", "single", "8", "0.5 · 0.25 · –"],
        ["–", "–", "all", "8", "–"],
    ]


def test_a_result_that_lacks_what_its_schema_has_is_told_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _kept(tmp_path, monkeypatch, printed={"schema": "localctx.bench.compare/1", "machine": MACHINE})
    with pytest.raises(UsageError, match="made-here"):
        page(tmp_path)


def test_every_renderer_is_of_a_schema() -> None:
    assert all(name.startswith("localctx.") and "/" not in name for name in RENDERERS)


def _headings(page_text: str) -> set[str]:
    """The anchors of a page's headings, as web pages of Markdown name them."""
    found = re.findall(r"^#+ (.+)$", page_text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}


@pytest.mark.parametrize("name", ["benchmarks.md", "claims.md", "results/README.md"])
def test_links_lead_somewhere(name: str) -> None:
    path = DOCS / name
    for file, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]+))?\)", path.read_text("utf-8")):
        target = path.parent / file if file else path
        assert target.exists(), f"{name}: {file}"
        assert not anchor or anchor in _headings(target.read_text("utf-8")), f"{name}: {file}#{anchor}"


def test_lists_inside_objects_are_tables_and_long_ones_are_not_shown() -> None:
    inner = {"rows": [{"a": 1}], "n": 2, "by_layer": [0.5, 1.0]}
    result = {
        "schema": "localctx.eval.new/1",
        "matrix": inner,
        "questions": [{"text": "long"}],
        "plots": [{}],
    }
    alone, rows = tables_of(result)
    assert [list(one) for one in alone.rows] == [["matrix.n", "2"], ["matrix.by_layer", "0.5 / 1"]]
    assert (rows.title, [list(one) for one in rows.rows]) == ("`matrix.rows`", [["1"]])
