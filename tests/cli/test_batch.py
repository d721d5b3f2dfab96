"""`localctx batch` as a user types it, with a tiny model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf

Run = Callable[..., Any]
ORDER = {"id": "a", "documents": ["one.txt"], "question": "Which ship came in?"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: three documents and a model."""
    for name, ship in (("one.txt", "Marta"), ("two.txt", "Ingrid"), ("three.txt", "Astrid")):
        text = f"The ship {ship} came in with a crew of 12. She brought salt, rope and news to the harbour. "
        (tmp_path / name).write_text(text * 8)
    write_tiny_gguf(tmp_path / "tiny.gguf", bpe_vocabulary())
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("LOCALCTX_EMBEDDER", "off")
    monkeypatch.setenv("LOCALCTX_MAX_TOKENS", "6")
    monkeypatch.setenv("LOCALCTX_MODEL", "tiny.gguf")
    return tmp_path


def jobs(*rows: Any) -> str:
    """Write the file of jobs; a text is a line as it is."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    Path("jobs.jsonl").write_text("\n".join(lines) + "\n")
    return "jobs.jsonl"


def job(
    identifier: object, *documents: str, question: str = "Which ship came in?", **more: Any
) -> dict[str, Any]:
    return {"id": identifier, "documents": list(documents), "question": question, **more}


def lines(name: str = "out.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text("utf-8").splitlines()]


def by_id(name: str = "out.jsonl") -> dict[Any, dict[str, Any]]:
    rows = lines(name)
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def test_every_job_gets_a_line_and_each_document_is_prefilled_once(here: Path, localctx: Run) -> None:
    names = ["one.txt", "two.txt", "one.txt", "two.txt", "one.txt"]
    file = jobs(*(job(n, name, question=f"Question {n}?") for n, name in enumerate(names)))
    done = localctx("batch", file, "-o", "out.jsonl")
    assert (done.code, done.out) == (0, "")
    assert "5 of 5 jobs answered, 0 failed; 5 done now" in done.err
    rows = lines()
    assert [row["id"] for row in rows] == [0, 2, 4, 1, 3]
    assert [row["line"] for row in rows] == [1, 3, 5, 2, 4]
    assert {row["schema"] for row in rows} == {"localctx.answer/1"}
    assert len({row["key"] for row in rows}) == 5
    n_document = rows[0]["coverage"]["tokens_total"]
    evaluated = [row["tokens"]["evaluated"] for row in rows]
    assert evaluated[0] > n_document
    assert max(evaluated[1], evaluated[2], evaluated[4]) < n_document / 2
    assert all(rows[n]["tokens"]["restored"] >= n_document for n in (1, 2, 4))


def test_a_second_run_does_nothing_and_an_inserted_row_runs_alone(here: Path, localctx: Run) -> None:
    file = jobs(job("a", "one.txt"), job("b", "two.txt"), "[1]")
    assert localctx("batch", file, "-o", "out.jsonl").code == 4
    before = Path("out.jsonl").read_bytes()
    again = localctx("batch", file, "-o", "out.jsonl", "--model", "none.gguf.is.not.opened")
    assert again.code != 0  # a model that is not there is still told
    Path("tiny.gguf").rename("moved.gguf")
    Path("moved.gguf").rename("tiny.gguf")
    assert localctx("batch", file, "-o", "out.jsonl").code == 4
    assert Path("out.jsonl").read_bytes() == before
    jobs(job("new", "three.txt"), job("b", "two.txt"), job("a", "one.txt"), "[1]")
    done = localctx("batch", file, "-o", "out.jsonl")
    assert "4 jobs, 3 are done already; 1 to do" in done.err
    assert Path("out.jsonl").read_bytes().startswith(before)
    assert [row["id"] for row in lines()][3:] == ["new"]


def test_bad_rows_and_lost_documents_are_told_with_their_lines(here: Path, localctx: Run) -> None:
    os.mkfifo("pipe")
    Path("loop").symlink_to("loop")
    Path("sound.txt").write_bytes(b"OggS" + bytes(100))
    Path("empty.txt").touch()
    bad = [job("c", "none.txt"), job("d", "pipe"), job("e", "loop"), job("f", "sound.txt"), job("g", ".")]
    bad += [job("h", "empty.txt"), job("i", "one.txt", "none.txt"), job("j", "x\0y")]
    file = jobs(job("a", "one.txt"), "", '{"torn', *bad, job("b", "two.txt"))
    done = localctx("batch", file, "-o", "out.jsonl")
    assert done.code == 4
    assert "line 3: not JSON" in done.err
    assert "line 4: none.txt: no such file" in done.err
    rows = lines()
    assert len(rows) == 11
    answered = {row["id"] for row in rows if row["schema"] == "localctx.answer/1"}
    assert answered == {"a", "b"}
    failed = {row["id"]: row["error"]["type"] for row in rows if row["id"] not in answered}
    assert failed == {
        None: "BadRow",
        **dict.fromkeys("cdegij", "InputError"),
        "f": "UnknownFormat",
        "h": "NoTextError",
    }
    assert all(row["line"] and row["key"] for row in rows)


def test_failed_jobs_are_tried_again_when_asked_or_when_they_change(here: Path, localctx: Run) -> None:
    file = jobs(
        job("a", "one.txt"), job("b", "late.txt"), job("c", "one.txt", max_tokens=1, question="x" * 9000)
    )
    assert localctx("batch", file, "-o", "out.jsonl").code == 4
    assert {name for name, row in by_id().items() if "error" in row} == {"b", "c"}
    Path("late.txt").write_text("The ship Late came in. " * 20)
    done = localctx("batch", file, "-o", "out.jsonl")
    assert "1 to do" in done.err
    assert {name for name, row in by_id().items() if "error" in row} == {"c"}
    done = localctx("batch", file, "-o", "out.jsonl", "--retry-failed")
    assert (done.code, "1 to do" in done.err) == (4, True)
    assert len(lines()) == 3


def test_a_line_that_is_no_job_is_not_tried_again(here: Path, localctx: Run) -> None:
    file = jobs(job("a", "one.txt"), '{"id": "b", "docum', '{"id": "c", "schema": {"minimum": 1e1000}}')
    assert localctx("batch", file, "-o", "out.jsonl").code == 4
    errors = [row["error"]["message"] for row in lines() if "error" in row]
    assert errors[1] == "line 3: not JSON: 1e1000 is too large a number"
    before = Path("out.jsonl").read_bytes()
    done = localctx("batch", file, "-o", "out.jsonl", "--retry-failed")
    assert (done.code, "3 are done already; 0 to do" in done.err) == (4, True)
    assert Path("out.jsonl").read_bytes() == before


def test_equal_jobs_are_computed_once_and_an_id_may_stand_twice(here: Path, localctx: Run) -> None:
    file = jobs(job("a", "one.txt"), job("b", "one.txt"), job("a", "two.txt"), job("a", "one.txt"))
    assert localctx("batch", file, "-o", "out.jsonl").code == 0
    rows = {row["line"]: row for row in lines()}
    assert rows[1]["answer"] == rows[2]["answer"] == rows[4]["answer"]
    assert [rows[n]["tokens"]["generated"] > 0 for n in (1, 2, 3, 4)] == [True, False, True, False]
    assert rows[1]["key"] == rows[4]["key"] != rows[2]["key"]
    assert "4 are done already; 0 to do" in localctx("batch", file, "-o", "out.jsonl").err


def test_a_copy_of_a_document_is_answered_from_the_same_store_entry(here: Path, localctx: Run) -> None:
    Path("copy.txt").write_bytes(Path("one.txt").read_bytes())
    assert localctx("batch", jobs(job("a", "one.txt"), job("b", "copy.txt")), "-o", "out.jsonl").code == 0
    rows = by_id()
    assert rows["b"]["answer"] == rows["a"]["answer"]
    assert rows["b"]["tokens"]["evaluated"] < rows["a"]["tokens"]["evaluated"] / 2
    assert len(localctx("store", "ls", "--json").json["documents"]) == 1


def test_every_question_of_every_file_of_a_folder(here: Path, localctx: Run) -> None:
    folder = here / "docs"
    folder.mkdir()
    for name in ("one.txt", "two.txt"):
        Path(name).rename(folder / name.upper())
    (folder / "lost.txt").symlink_to("nowhere")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    file = jobs({"id": "q", "question": "Which ship?"}, {"question": "How many?"}, job("r", "ONE.TXT"))
    done = localctx("batch", file, "-o", "docs/out.jsonl", "--docs", "docs")
    assert done.code == 4
    assert "skipped: docs/picture.png" in done.err
    found = lines("docs/out.jsonl")
    answered = sorted(row["id"] for row in found if "answer" in row)
    assert answered == ["ONE.TXT", "TWO.TXT", "q:ONE.TXT", "q:TWO.TXT", "r"]
    assert sorted(row["id"] for row in found if "error" in row) == ["lost.txt", "q:lost.txt"]
    assert (
        "7 are done already; 0 to do" in localctx("batch", file, "-o", "docs/out.jsonl", "--docs", "docs").err
    )


def test_jobs_from_standard_input_and_answers_on_standard_output(here: Path, localctx: Run) -> None:
    text = "\ufeff" + json.dumps(ORDER) + "\r\n"
    done = localctx("batch", "-", "--quiet", stdin=text.encode())
    assert (done.code, done.err) == (0, "")
    assert done.json["id"] == "a"


def test_answers_fulfil_a_schema_of_the_run_or_of_the_job(here: Path, localctx: Run) -> None:
    digit = {"type": "integer", "minimum": 3, "maximum": 9}
    file = jobs(job("a", "one.txt"), job("b", "one.txt", schema={"type": "boolean"}))
    assert localctx("batch", file, "-o", "out.jsonl", "--schema", json.dumps(digit)).code == 0
    rows = by_id()
    jsonschema.validate(json.loads(rows["a"]["answer"]), digit)
    jsonschema.validate(json.loads(rows["b"]["answer"]), {"type": "boolean"})
    assert (
        "2 to do"
        in localctx("batch", file, "-o", "other.jsonl", "-j", '{"type": "integer", "maximum": 2}').err
    )


def test_workers_give_the_same_answers(here: Path, localctx: Run) -> None:
    rows = [
        job(n, name, question=f"Question {n}?")
        for n, name in enumerate(["one.txt", "two.txt", "three.txt"] * 2)
    ]
    file = jobs(*rows, "{", job(9, "none.txt"))
    assert localctx("batch", file, "-o", "one.jsonl").code == 4
    done = localctx("batch", file, "-o", "out.jsonl", "--workers", "2", "--json")
    assert done.code == 4
    assert done.json["answered"] == 6
    alone, together = by_id("one.jsonl"), by_id()
    assert {name: row.get("answer") for name, row in together.items()} == {
        name: row.get("answer") for name, row in alone.items()
    }
    assert {row["key"] for row in together.values()} == {row["key"] for row in alone.values()}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["jobs.jsonl", "-o", "jobs.jsonl"], 2, "is one of the inputs"),
        (["jobs.jsonl", "-o", "one.txt"], 2, "is one of the inputs"),
        (["jobs.jsonl", "-o", "."], 2, "it is a directory"),
        (["jobs.jsonl", "-o", "none/out.jsonl"], 2, "no such file"),
        (["jobs.jsonl", "-o", "two.txt"], 2, "line 1 is not a line of batch"),
        (["jobs.jsonl", "-o", "/dev/full"], 1, "no space left"),
        (["none.jsonl", "-o", "out.jsonl"], 3, "none.jsonl: no such file"),
        ([".", "-o", "out.jsonl"], 3, "is a directory"),
        (["empty.jsonl", "-o", "out.jsonl"], 3, "holds no jobs"),
        (["jobs.jsonl", "-o", "out.jsonl", "--docs", "none"], 2, "is no folder"),
        (["jobs.jsonl", "-o", "out.jsonl", "--engine", "spark"], 2, "one of local, ray"),
        (["jobs.jsonl", "-o", "out.jsonl", "--workers", "0"], 2, "out of range"),
        (["jobs.jsonl", "-o", "out.jsonl", "--strategy", "map-reduce"], 2, "not for ask"),
        (["jobs.jsonl", "-o", "out.jsonl", "-j", '{"type": "x"}'], 2, "schema at its top"),
        (["jobs.jsonl", "-o", "out.jsonl", "--model", "none.gguf"], 1, "none.gguf"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_is_one_line(
    here: Path, localctx: Run, words: list[str], code: int, said: str
) -> None:
    jobs(ORDER)
    Path("empty.jsonl").write_text("\n\n")
    done = localctx("batch", *words)
    assert done.code == code
    assert said in done.err.splitlines()[-1]
    assert not Path("out.jsonl").exists() or not Path("out.jsonl").read_bytes()


def test_answers_of_two_models_are_not_mixed(here: Path, localctx: Run) -> None:
    assert localctx("batch", jobs(ORDER), "-o", "out.jsonl").code == 0
    write_tiny_gguf(here / "other.gguf", bpe_vocabulary(), seed=8)
    jobs(ORDER, job("b", "two.txt"))
    done = localctx("batch", "jobs.jsonl", "-o", "out.jsonl", "--model", "other.gguf")
    assert (done.code, "another model" in done.err) == (2, True)
    assert localctx("batch", "jobs.jsonl", "-o", "out.jsonl").code == 0


def test_a_reader_that_has_enough_ends_it_quietly(here: Path) -> None:
    jobs(*(job(n, "one.txt", question=f"Question {n}?") for n in range(8)))
    program = f"{sys.executable} -c 'from localctx.cli.entry import run; run()'"
    command = f"{program} batch jobs.jsonl --quiet | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ('{"schema":', "")


def test_a_store_that_cannot_be_written_costs_no_answer(here: Path, localctx: Run) -> None:
    done = localctx("batch", jobs(ORDER, job("b", "one.txt")), "-o", "out.jsonl", "--store", "/proc/none")
    assert done.code == 0
    assert {row["schema"] for row in by_id().values()} == {"localctx.answer/1"}
    assert done.err.count("what is computed now is not kept") == 1


def test_two_batches_at_once_share_a_cold_store(here: Path) -> None:
    jobs(*(job(n, "one.txt", question=f"Question {n}?") for n in range(3)))
    program = [sys.executable, "-c", "from localctx.cli.entry import run; run()", "batch", "jobs.jsonl", "-o"]
    both = [subprocess.Popen([*program, f"{n}.jsonl"], stderr=subprocess.PIPE, text=True) for n in range(2)]
    told = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    first, second = ({row["id"]: row["answer"] for row in lines(f"{n}.jsonl")} for n in range(2))
    assert first == second
