"""The table of selectors: every one on every kind of question, and places as they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from engine.tiny_bert import write_tiny_bert

from localctx.engine import EngineOptions, open_model
from localctx.engine.embedder import EmbedderFile
from localctx.eval import pointed, selectors
from localctx.eval.generate import Wanted
from localctx.eval.selectors import Row, measure, render, summed
from localctx.settings import Settings
from localctx.values import Scores

WANTED = Wanted(seed=3, lengths=(2048,), tasks=("single", "paraphrased", "translated"), n_questions=4)


def measured(model_path: Path, folder: Path) -> list[Row]:
    """Every selector, with an embedder of random weights."""
    settings = Settings(store=str(folder / "store"), strategy="stream")
    with (
        open_model(model_path, EngineOptions(n_threads=1)) as model,
        EmbedderFile(write_tiny_bert(folder / "tiny-bert.gguf"), "tiny-bert", ["en"]) as embedder,
    ):
        return list(measure(model, settings, WANTED, embedder))


@pytest.fixture(scope="module")
def rows(tiny_model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return measured(tiny_model_path, tmp_path_factory.mktemp("selectors"))


def test_the_same_seed_gives_the_same_figures(rows: list[Row], tiny_model_path: Path, tmp_path: Path) -> None:
    assert measured(tiny_model_path, tmp_path) == rows


def test_every_selector_is_asked_every_kind_of_question(rows: list[Row]) -> None:
    found = {(row.kind, row.selector): row for row in rows}
    names = {row.selector for row in rows}
    assert {"head and tail", "lexical", "dense", "maxsim", "lexical+dense", "fused"} < names
    assert len(found) == len(rows) == 3 * len(names)
    assert {row.n for row in rows} == {3}
    assert found["words shared", "lexical"].recall == (1.0, 1.0, 1.0)
    assert found["paraphrased", "lexical"].recall[0] < 1.0
    assert all(row.recall == tuple(sorted(row.recall)) for row in rows)


def test_what_words_leave_open_is_ordered_by_an_embedder_for_another_language(rows: list[Row]) -> None:
    found = {(row.kind, row.selector): row.recall for row in rows}
    assert found["another language", "lexical"] == (0.0, 0.0, 0.0)
    assert found["another language", "fused"] == found["another language", "fused, any language"]
    assert found["words shared", "fused"] == found["words shared", "fused, any language"]


def test_documents_of_several_seeds_are_summed_up(rows: list[Row]) -> None:
    first = next(row for row in rows if row.selector == "chosen")
    other = replace(first, n=1, recall=(0.0,), n_chosen=2.0)
    both = next(row for row in summed([*rows, other]) if row.selector == "chosen" and row.kind == first.kind)
    assert both.n == 4
    assert both.recall == (round(first.recall[0] * 3 / 4, 4),)
    assert both.n_chosen == pytest.approx((3 * (first.n_chosen or 0) + 2) / 4)
    assert summed(rows) == rows


def test_places_count_what_is_better_and_equals_before() -> None:
    scores = Scores("x", (0.5, 0.9, 0.5, 0.0))
    assert [selectors._rank(scores, number) for number in range(4)] == [1, 0, 2, float("inf")]
    assert selectors._recall([(scores, [1, 2]), (scores, [3])]) == (0.3333, 0.6667, 0.6667)


def test_the_table_has_a_line_a_kind_and_a_column_a_selector(rows: list[Row]) -> None:
    lines = render(rows).splitlines()
    assert len(lines) == 2 + 3
    assert "| chosen without neighbours |" in lines[0]
    assert lines[2].startswith("| 2,048 | en | words shared | 3 |")


def test_sentences_in_other_words_are_pointed_at_by_meaning_alone(
    tiny_model_path: Path, tmp_path: Path
) -> None:
    wanted = Wanted(seed=3, lengths=(2048,), tasks=("single", "paraphrased"), n_questions=4)
    settings = Settings(store=str(tmp_path / "store"))
    with (
        open_model(tiny_model_path, EngineOptions(n_threads=1)) as model,
        EmbedderFile(write_tiny_bert(tmp_path / "tiny-bert.gguf"), "tiny-bert", ["en"]) as embedder,
    ):
        found = pointed.measure(model, settings, wanted, embedder)
    assert set(found) == {(task, by) for task in wanted.tasks for by in ("words", "meaning")}
    *shares, n_chosen, n = found["single", "words"]
    assert shares == sorted(shares)
    assert shares[-1] == n_chosen == n == 3
    assert found["paraphrased", "words"][-2:] == found["paraphrased", "meaning"][-2:]
