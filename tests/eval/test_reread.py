"""What is evaluated again by three rules: each of them on a tiny model, and the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from localctx.engine import EngineOptions, open_model
from localctx.errors import NotComposable
from localctx.eval import reread
from localctx.eval.reread import ARMS, Tried, Wanted, distance, measure, render
from localctx.from_settings import ChosenModel
from localctx.settings import Settings
from localctx.values import Model
from localctx.verify.confusable import Shape
from localctx.verify.gate import probe_text

WANTED = Wanted(1, 2, 2, (0.1, 0.5), 1, 0, Shape(n_filler=40, n_passage=64, n_chapters=3))


def test_every_question_is_asked_by_every_rule(
    tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(settings: Settings, chosen: ChosenModel) -> Model:
        options = EngineOptions(name="tiny", gpu_layers="0", n_threads=1, retrieval_heads=("0.0", "1.1"))
        return open_model(chosen.path, options)

    monkeypatch.setattr(reread, "WINDOW", 128)
    monkeypatch.setattr(reread, "probe_text", lambda: probe_text()[:8000])
    monkeypatch.setattr(reread, "open_model_for", opened)
    tried = list(measure(Settings(), ChosenModel("tiny", tiny_model_path, None), WANTED))
    ways = [(one.arm, one.share) for one in tried[:8]]
    assert ways == [
        ("re-prefill", 0.0),
        ("nothing", 0.0),
        *((arm, share) for share in (0.1, 0.5) for arm in ARMS),
    ]
    assert [(one.arm, one.share) for one in tried[8:]] == ways
    n_evaluated = {way: one.n_evaluated for way, one in zip(ways, tried[:8], strict=True)}
    assert n_evaluated["re-prefill", 0.0] > n_evaluated["deviation", 0.5] > n_evaluated["deviation", 0.1]
    assert n_evaluated["deviation", 0.1] > n_evaluated["nothing", 0.0]


def test_a_model_whose_heads_are_not_known_is_refused(tiny_model_path: Path) -> None:
    with pytest.raises(NotComposable, match="retrieval heads are not known"):
        next(measure(Settings(), ChosenModel("tiny", tiny_model_path, None), WANTED))


def test_a_token_whose_kv_is_another_is_the_farthest() -> None:
    exact = np.eye(4, dtype=np.float16)
    kept = exact.copy()
    kept[2] *= 0.5
    kept[3] *= -1
    assert distance(exact, kept).tolist() == [0.0, 0.0, 0.25, 4.0]


def test_the_table_counts_only_questions_that_were_asked_in_every_way() -> None:
    ways = [("re-prefill", 0.0), ("nothing", 0.0), *((arm, 0.1) for arm in ARMS)]
    tried = [Tried(0, "Oslo", arm, share, arm == "heads", 100) for arm, share in ways]
    tried.append(Tried(0, "Lima", "words", 0.1, True, 100))
    lines = render(tried, (0.1,)).splitlines()
    assert lines[0] == "| evaluated again | 10% |"
    assert lines[2:5] == [
        "| words | 0 of 1 (100) |",
        "| heads | 1 of 1 (100) |",
        "| deviation | 0 of 1 (100) |",
    ]
    assert lines[6] == "re-prefill: 0 of 1 (100); nothing: 0 of 1 (100)"
