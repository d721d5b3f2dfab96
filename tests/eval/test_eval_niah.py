"""`eval niah` on a tiny model: the same twice, every figure there, the bound from the right passages."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from engine.tiny_bert import write_tiny_bert

from localctx.engine import EngineOptions, open_model
from localctx.engine.embedder import EmbedderFile
from localctx.errors import UsageError
from localctx.eval.generate import Wanted
from localctx.eval.modes import MODES
from localctx.eval.niah import Options, measure, parse_length
from localctx.eval.report import Report
from localctx.session import ranking
from localctx.session.vectors import RunVectors
from localctx.settings import Settings

SMALL = Wanted(seed=5, lengths=(2048,), tasks=("single", "fwe"), n_questions=4, n_answer=6)
TIMED = ("ttft_ms", "seconds", "machine")


def silent(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def report(tiny_model_path: Path) -> Report:
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as model:
        return measure(model, Settings(), Options(SMALL), silent)


def without_times(value: Any) -> Any:
    """JSON without what the clock decides."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMED}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def test_every_mode_is_asked_every_question_that_it_can(report: Report) -> None:
    shown = report.to_json()
    assert shown["schema"] == "localctx.eval.niah/1"
    assert (shown["seed"], shown["lengths"], shown["questions"][0]["task"]) == (5, [2048], "single")
    for asked in shown["questions"]:
        modes = set(asked["answers"])
        oracle = {"oracle-text", "oracle-stored"} if asked["task"] == "single" or not asked["gold"] else set()
        assert modes == {"exact", "stream-lexical"} | oracle, asked["question"]
    rows = {row["task"]: row for row in shown["rows"]}
    assert (rows["single"]["n"], rows["single"]["n_without_answer"]) == (4, 1)
    assert rows["single"]["selection"]["lexical"]["1"] == 1.0
    assert rows["fwe"]["selection"] == {}
    assert [row["task"] for row in shown["totals"]] == ["all", "asked in all modes", "words shared"]


def test_modes_are_compared_by_the_questions_that_all_were_asked(report: Report) -> None:
    shown = report.to_json()
    every, common, _ = shown["totals"]
    alike = [one for one in shown["questions"] if len(one["answers"]) == 4]
    assert {mode: row["n"] for mode, row in common["modes"].items()} == dict.fromkeys(common["modes"], 5)
    assert (len(alike), common["n"], common["n_without_answer"]) == (5, 5, 2)  # the list's without an answer
    assert {mode: row["n"] for mode, row in every["modes"].items()} == {
        "exact": 8, "oracle-text": 5, "oracle-stored": 5, "stream-lexical": 8
    }  # fmt: skip
    for mode, row in common["modes"].items():
        declined = [one["answers"][mode]["is_declined"] for one in alike if one["gold"]]
        assert row["declined"] == pytest.approx(sum(declined) / 3, abs=1e-3)
    (line,) = [line for line in report.lines if line.startswith("false")]
    assert line.split()[1] == "2"


def test_selectors_that_the_model_lacks_are_named(report: Report) -> None:
    for document in report.to_json()["documents"]:
        without = {"dense", "landmarks", "lexical+dense", "lexical+landmarks", "fused"}
        assert set(document["skipped"]) == without
        assert document["skipped"]["dense"].startswith("dense: ")
        assert document["skipped"]["dense"].endswith("no embedder was asked for")
        assert "no retrieval heads" in document["skipped"]["landmarks"]
    assert any(line.startswith("no landmarks: ") for line in report.lines)


def test_a_question_that_words_answer_where_vectors_may_not_leaves_the_selectors_of_the_others(
    tiny_model_path: Path, tmp_path: Path
) -> None:
    wanted = replace(SMALL, languages=("zh",), tasks=("translated", "single"))
    with (
        open_model(tiny_model_path, EngineOptions(n_threads=1)) as model,
        EmbedderFile(write_tiny_bert(tmp_path / "tiny-bert.gguf"), "tiny-bert", ["en"]) as embedder,
    ):
        found = measure(model, Settings(), Options(wanted, ("select",)), silent, embedder)
    shown = found.to_json()
    ranked = {(one["task"], "dense" in one["ranks"]) for one in shown["questions"] if one["gold"]}
    assert ranked == {("translated", True), ("single", False)}
    assert "is in 'zh'" in shown["documents"][0]["skipped"]["dense"]
    columns, *rows = [line for line in found.lines if line.startswith(("task", "translated", "single"))]
    assert columns.split()[2:] == ["lexical", "dense", "lexical+dense", "fused"]
    assert {row.split()[0]: row.count("–") for row in rows} == {"single": 3, "translated": 0}


@pytest.mark.parametrize("modes", [("select",), ("stream-fused",)])
def test_every_passage_is_ranked_by_vectors_not_those_alone_that_words_point_at(
    tiny_model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modes: tuple[str, ...]
) -> None:
    """A question makes the vectors of one passage at most here: what it finds is not what it made."""
    monkeypatch.setattr(ranking, "N_EMBEDDED", 1)
    missing: list[int] = []
    max_sims = RunVectors.max_sims

    def counted(vectors: RunVectors, question: str) -> object:
        missing.append(int((~vectors.is_there).sum()))
        return max_sims(vectors, question)

    monkeypatch.setattr(RunVectors, "max_sims", counted)
    with (
        open_model(tiny_model_path, EngineOptions(n_threads=1)) as model,
        EmbedderFile(write_tiny_bert(tmp_path / "tiny-bert.gguf"), "tiny-bert", ["en"]) as embedder,
    ):
        measure(model, Settings(), Options(replace(SMALL, tasks=("single",)), modes), silent, embedder)
    assert set(missing) == {0}


def test_the_bound_evaluates_the_right_passages_and_as_many_others(report: Report) -> None:
    for one in report.examined:
        for asked in one.asked:
            if not asked.question.spans:
                continue
            bound, stored = asked.answers["oracle-text"], asked.answers["oracle-stored"]
            assert bound.n_attended == stored.n_attended
            assert 64 < bound.n_attended <= 2 * 256
            assert bound.n_evaluated > stored.n_evaluated
            assert stored.n_restored > bound.n_restored
            assert asked.answers["exact"].n_attended == one.n_tokens


def test_the_lines_hold_each_task_and_mode(report: Report) -> None:
    text = "\n".join(report.lines)
    for word in ("single", "fwe", "oracle-text", "stream-lexical", "false", "declined", "1 / 4 / 16"):
        assert word in text


def test_the_same_seed_gives_the_same_scores(report: Report, tiny_model_path: Path) -> None:
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as model:
        again = measure(model, Settings(), Options(SMALL), silent)
    assert without_times(again.to_json()) == without_times(report.to_json())


def test_a_document_that_does_not_fit_is_not_attended_whole(tiny_model_path: Path, tmp_path: Path) -> None:
    wanted = Wanted(lengths=(1536, 4096), tasks=("multikey",), n_questions=4, n_answer=6)
    options = Options(wanted, modes=("exact", "stream-lexical", "retrieve"), data=str(tmp_path / "data"))
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as model:
        report = measure(model, Settings(store=str(tmp_path / "store")), options, silent)
    shown = report.to_json()
    assert [set(row["modes"]) for row in shown["rows"]] == [
        {"exact", "stream-lexical", "retrieve"},
        {"stream-lexical", "retrieve"},
    ]
    assert "tokens needed" in shown["documents"][1]["skipped"]["exact"]
    first_tokens = [line for line in report.lines if line.startswith("first token")]
    assert [line.count("–") for line in first_tokens] == [0, 1]  # a column of every mode in each table
    lines = (tmp_path / "data" / "answers.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == shown["questions"]
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [
        "answers.jsonl",
        "en-1536-prose.txt",
        "en-4096-prose.txt",
        "questions.jsonl",
    ]
    assert list((tmp_path / "store").iterdir()) == []


def test_selectors_alone_need_no_prefill(tiny_model_path: Path) -> None:
    wanted = Wanted(lengths=(16_384,), languages=("en", "zh", "de"), tasks=("single", "paraphrased", "vt"))
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as model:
        report = measure(model, Settings(), Options(wanted, modes=("select",)), silent)
    shown = report.to_json()
    assert {document["stored"] for document in shown["documents"]} == {None}
    assert not any(asked["answers"] for asked in shown["questions"])
    rows = {(row["language"], row["task"]): row["selection"]["lexical"] for row in shown["rows"]}
    assert len(rows) == 9
    for language in ("en", "zh", "de"):
        assert rows[language, "single"]["4"] == 1.0
        assert rows[language, "paraphrased"]["1"] < 0.5
    sums = {row["task"]: row["selection"]["lexical"]["4"] for row in shown["totals"]}
    assert sums["words shared"] > sums["all"] > sums["no word shared"]
    assert "1 / 4 / 16" in "\n".join(report.lines)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (Options(SMALL, modes=("stream",)), "--modes: unknown 'stream'"),
        (Options(SMALL, modes=()), "--modes names nothing"),
        (Options(Wanted(languages=("en", "zh")), haystack="x.txt"), "one language"),
        (Options(SMALL, haystack="nowhere.txt"), "nowhere.txt"),
    ],
)
def test_what_makes_no_sense_is_refused(tiny_model_path: Path, options: Options, said: str) -> None:
    with open_model(tiny_model_path) as model, pytest.raises(Exception, match=said):
        measure(model, Settings(), options, silent)


def test_lengths_are_read_as_they_are_typed() -> None:
    assert list(map(parse_length, ("8k", "131072", "1M"))) == [8192, 131_072, 1 << 20]
    for text in ("", "k", "8g", "-4k", "8.5k", "９k"):
        with pytest.raises(UsageError, match="not understood"):
            parse_length(text)


@pytest.fixture
def niah(eval_command: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, str, str]]:
    return partial(eval_command, "niah")


def test_the_command(niah: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    prose = tmp_path / "own.md"
    prose.write_text(
        "".join(f"The {n} clouds drifted over the hill and nobody looked up.\n" for n in range(900))
    )
    words = ("--lengths", "3k", "--tasks", "multikey", "--questions", "4", "--max-tokens", "8", "--seed", "9")
    more = ("--modes", "stream-lexical", "--haystack", str(prose))
    code, out, err = niah(*words, *more, "--json")
    shown = json.loads(out)
    assert (code, err) == (0, "")
    assert (shown["seed"], shown["tasks"], shown["modes"]) == (9, ["multikey"], ["stream-lexical"])
    assert shown["haystack"] == str(prose)
    assert shown["command"].startswith("localctx eval niah --lengths 3k")
    assert set(shown["model"]) == {"name", "fingerprint"}
    code, out, err = niah(*words, *more, "--quiet")
    assert (code, err) == (0, "")
    assert "multikey" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--lengths", "8q"), "--lengths '8q'"),
        (("--questions", "5"), "multiple of 4"),
        (("--tasks", "needles"), "--tasks: unknown"),
        (("--modes", "exct"), "did you mean 'exact'"),
        (("--store", "off"), "needs a store"),
        (("--strategy", "exact"), "--strategy is not for eval niah"),
    ],
)
def test_errors_are_one_line(
    niah: Callable[..., tuple[int, str, str]], words: tuple[str, ...], said: str
) -> None:
    code, out, err = niah(*words, "--quiet")
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_modes_follow_what_kv_rank_offers() -> None:
    assert {"stream-lexical", "stream-landmarks", "stream-fused"} <= set(MODES)
