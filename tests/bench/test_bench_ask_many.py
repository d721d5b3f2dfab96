"""Questions one by one and side by side on a tiny model: the same answers, counted alike."""

from __future__ import annotations

from pathlib import Path

from localctx.bench.ask import Asking
from localctx.bench.ask_many import ONE_BY_ONE, SIDE_BY_SIDE, measure
from localctx.engine import EngineOptions, open_model
from localctx.settings import Settings


def test_both_ways_say_the_same(tiny_model_path: Path, tmp_path: Path) -> None:
    settings, told = Settings(store=str(tmp_path), max_tokens=8), []
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as model:
        report = measure(model, settings, None, 3000, Asking(n_made=3, n_repeats=2), 2, told.append)
    shown = report.to_json()
    assert (shown["n_questions"], shown["n_parallel"], shown["n_equal"]) == (3, 2, 3)
    one, other = shown["ways"]
    assert (one["way"], other["way"]) == (ONE_BY_ONE, SIDE_BY_SIDE)
    assert one["n_generated"] == other["n_generated"] > 0
    assert one["n_evaluated"] + one["n_restored"] == other["n_evaluated"] + other["n_restored"]
    assert other["n_evaluated"] <= one["n_evaluated"]
    assert one["texts"] == other["texts"]
    assert one["seconds"]["n"] == other["questions_per_s"]["n"] == 2
    assert shown["times_faster"] > 0
    assert "3 of 3 answers equal" in report.lines[-1]
    assert len(told) == 3
    assert list(tmp_path.iterdir()) == []
