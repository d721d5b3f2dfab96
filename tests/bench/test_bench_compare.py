"""`bench compare` on a tiny model: what each way evaluates and restores, planted facts, question files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from localctx.bench.compare import Comparing, measure
from localctx.bench.compare_inputs import TASKS, planted, questions_in
from localctx.bench.compare_report import Prepared, Row
from localctx.bench.compare_ways import WAYS, Asked
from localctx.bench.inputs import BUILT_IN, built_in_text
from localctx.engine import EngineOptions, open_model
from localctx.engine.llama import LlamaModel
from localctx.errors import UsageError
from localctx.eval.scoring import Score
from localctx.settings import Settings


@pytest.fixture
def model(tiny_model_path: Path) -> Iterator[LlamaModel]:
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as opened:
        yield opened


def silent(_: str) -> None:
    pass


def threads() -> set[str]:
    """Names of those that run, but for the pool that works on predictions and stays."""
    return {one.name for one in threading.enumerate() if not one.name.startswith("predictions")}


def asked(seconds: float, kept: int | None = None) -> Asked:
    return Asked("", "supported", seconds, 2 * seconds, 1, 0, 1, kept_bytes=kept)


def test_every_way_tells_what_it_evaluated_and_restored(model: LlamaModel, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": "What is an assert statement?", "answers": ["debug"]}\n' * 2)
    settings = Settings(store=str(tmp_path / "stores"), max_tokens=6)
    before = threads()
    report = measure(model, settings, None, 700, Comparing(str(path), n_repeats=3), silent)
    shown = report.to_json()
    rows = {row["way"]: row for row in shown["ways"]}
    assert shown["schema"] == "localctx.bench.compare/1" and shown["missing"] == {}
    assert (shown["n_with_answer"], shown["n_without_answer"], shown["n_rounds"]) == (2, 0, 3)
    assert list(rows) == list(WAYS) and shown["baseline"] == "dense"
    dense, state, text, headers = (rows[way] for way in WAYS[:4])
    exact, at_zero, lazy = rows["exact"], rows["stream, refresh=0"], rows["lazy"]
    assert dense["n_evaluated"] > shown["n_tokens"] and dense["n_restored"] == 0
    assert state["n_evaluated"] + state["n_restored"] == dense["n_evaluated"]
    assert exact["n_evaluated"] < dense["n_evaluated"] / 4 and exact["n_restored"] > 0
    assert (
        text["n_evaluated"]
        < headers["n_evaluated"]
        < dense["n_evaluated"]
        < rows["map-reduce"]["n_evaluated"]
    )
    assert at_zero["n_evaluated"] < headers["n_evaluated"] and at_zero["n_restored"] > 0
    assert lazy["n_evaluated"] > at_zero["n_evaluated"] and lazy["kept_bytes"] > 0
    assert state["kept_bytes"] > at_zero["kept_bytes"] > 0 == text["kept_bytes"]
    assert all(row["first_token_s"]["n"] == 3 and row["peak_memory_bytes"] > 1e6 for row in shown["ways"])
    assert dense["times_sooner_first_token"]["median"] == 1
    assert set(shown["plots"][0]["lines"]) == set(WAYS) - {"lazy"}
    for one in shown["answers"]:
        assert one["answers"]["dense"] == one["answers"]["dense, state file"]
    assert len(report.lines) == 2 + len(WAYS)
    assert list((tmp_path / "stores").iterdir()) == []
    assert threads() <= before


def test_facts_are_planted_where_no_questions_are_given(model: LlamaModel, tmp_path: Path) -> None:
    comparing = Comparing(n_repeats=1, ways=("text", "text, headers"))
    shown = measure(
        model, Settings(store=str(tmp_path), max_tokens=2), None, 500, comparing, silent
    ).to_json()
    assert shown["source"] == f"{BUILT_IN}, facts planted"
    assert (shown["n_with_answer"], shown["n_without_answer"], shown["n_rounds"]) == (6, 2, 8)
    assert [row["n_right"] for row in shown["ways"]] == [0, 0]
    assert shown["n_tokens"] > 700


def test_what_does_not_fit_is_left_out_with_its_reason(model: LlamaModel, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": "What is an assignment?", "answers": []}\n')
    comparing = Comparing(str(path), n_repeats=1, ways=("dense", "exact", "text", "stream, refresh=0"))
    settings = Settings(store=str(tmp_path / "store"), max_tokens=4)
    shown = measure(model, settings, None, 2500, comparing, silent).to_json()
    assert set(shown["missing"]) == {"dense", "exact"} and "context 2,048" in shown["missing"]["dense"]
    assert [row["way"] for row in shown["ways"]] == ["text", "stream, refresh=0"]
    assert (shown["baseline"], shown["n_with_answer"], shown["n_without_answer"]) == ("text", 0, 1)


def test_planted_facts_stand_in_the_text_once_and_headings_stay() -> None:
    text = built_in_text()[:40_000]
    with_facts, questions = planted(text, "en", 7, 4)
    assert (with_facts, questions) == planted(text, "en", 7, 4) != planted(text, "en", 8, 4)
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert [line for line in with_facts.splitlines() if line.startswith("#")] == headings
    assert [one.task for one in questions[:2]] == list(TASKS)
    assert sum(not one.gold for one in questions) == 2
    for question in questions:
        assert all(with_facts.count(value) == 1 and value not in text for value in question.gold)
        assert not set(question.gold) & set(question.wrong)


@pytest.mark.parametrize("text", ["", "\n\n\n"])
def test_a_text_without_sentences_takes_no_facts(text: str) -> None:
    with pytest.raises(UsageError, match="no sentence"):
        planted(text, None, 0, 4)


def test_a_text_that_holds_a_planted_value_is_refused() -> None:
    text = built_in_text()[:20_000]
    value = next(one.gold[0] for one in planted(text, "en", 0, 4)[1] if one.gold)
    with pytest.raises(UsageError, match=value):
        planted(f"{text} It is {value}.", "en", 0, 4)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "holds no question"),
        (b"{\n", "line 1 is no JSON"),
        (b'{"question": "a?", "answers": ["b"]}\n[1]\n', "line 2"),
        (b'{"question": " ", "answers": []}', "no question"),
        (b'{"question": "a?"}', "no question with its answers"),
        (b'{"question": "a?", "answers": [1]}', "an answer is a text"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"[" * 100_000, "no JSON"),
    ],
)
def test_files_that_hold_no_questions_are_told(data: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=said):
        questions_in(path)


def test_questions_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    rows = [{"question": "Where?", "answers": ["Köln", "7"]}, {"question": "Who?", "answers": []}]
    path.write_text("\n\n".join(json.dumps(row) for row in rows), "utf-8")
    assert [(one.text, one.gold) for one in questions_in(path)] == [("Where?", ("Köln", "7")), ("Who?", ())]


@pytest.mark.parametrize("comparing", [Comparing(ways=("dens",)), Comparing(n_repeats=0)])
def test_what_cannot_be_compared_is_refused(comparing: Comparing) -> None:
    with pytest.raises(UsageError):
        comparing.check()


def test_facts_come_in_fours(model: LlamaModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--facts 3"):
        measure(model, Settings(store=str(tmp_path)), None, 500, Comparing(n_facts=3), silent)


def test_ratios_are_of_the_same_round() -> None:
    slow = Row("dense", (asked(4.0), asked(9.0)), (), Prepared())
    fast = Row(
        "lazy",
        (asked(2.0, 10), asked(1.0, 30)),
        (Score(1.0, True, False), Score(None, None, True)),
        Prepared(),
    )
    sooner = fast.sooner(slow, lambda one: one.first_token_s)
    assert (sooner.lowest, sooner.highest) == (2.0, 9.0)
    assert (fast.n_right, fast.n_declined, fast.kept_bytes, fast.taken["joules"]) == (1, 1, 20, {})
