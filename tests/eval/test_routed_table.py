"""The comparison of routed prefill: its texts, and arms that must agree. A real tiny model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from engine.kv_tools import document

from localctx.engine import EngineOptions, open_model
from localctx.engine.llama import LlamaModel
from localctx.errors import UsageError
from localctx.eval.routed import Row, measure, render
from localctx.eval.routed_arms import ARMS, Arm, arms_of, text_of
from localctx.eval.routed_texts import CITIES, homes
from localctx.kv import PrefillPolicy

N_TOKENS = 1024
EXACT = Arm("exact", PrefillPolicy("exact", 0))


@pytest.fixture(scope="module")
def model(tiny_model_path: Path) -> Iterator[LlamaModel]:
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as opened:
        yield opened


def test_all_facts_are_said_once_and_far_apart(model: LlamaModel) -> None:
    one = homes(model.tokenize, N_TOKENS, 3)
    assert one == homes(model.tokenize, N_TOKENS, 3) != homes(model.tokenize, N_TOKENS, 4)
    assert len(one.tokens) == N_TOKENS
    lives = {}
    for asked in one.asked:
        said = text_of(model, one.tokens[slice(*asked.span)])
        name = asked.question.split()[0]
        assert said.startswith(f" {name} ")
        if asked.kind == "one hop":
            assert said == f" {name} lives in {CITIES[asked.right]}."
            lives[name] = asked.right
        else:
            assert asked.right == lives[said.split()[-1].rstrip(".")]
    assert len(set(lives.values())) == len(CITIES)
    ends = [asked.span[1] for asked in one.asked]
    assert ends[7] + N_TOKENS // 5 < one.asked[8].span[0]
    assert ends[-1] + N_TOKENS // 8 < N_TOKENS


def test_ways_that_attend_to_everything_agree_and_a_window_does_not(model: LlamaModel) -> None:
    """All that left the window put back at random is all of it."""
    arms = [
        EXACT,
        Arm("wide", PrefillPolicy("window", 1024)),
        Arm("all", PrefillPolicy("window", 256, routed=8, router="random"), "random"),
        Arm("narrow", PrefillPolicy("window", 128)),
    ]
    documents = [homes(model.tokenize, N_TOKENS, 0)]
    rows = list(measure(model, [document(model, N_TOKENS)], documents, arms))
    exact, wide, everything, narrow = (np.array(row.losses) for row in rows)
    assert len(exact) == N_TOKENS // 2
    assert np.abs(wide - exact).max() < 0.05
    assert np.abs(everything - exact).max() < 0.05
    assert np.abs(narrow - exact).max() > 0.05
    assert {kind: len(found) for kind, found in rows[0].right.items()} == {
        "one hop": 8,
        "two hops": 8,
        "passage alone": 8,
    }
    assert rows[2].margins["one hop"] == pytest.approx(rows[0].margins["one hop"], abs=0.1)


def test_the_arms_are_those_asked_for_and_attend_to_as_much(model: LlamaModel) -> None:
    arms = {arm.name: arm for arm in arms_of(ARMS, 512, 4, 1024)}
    assert tuple(arms) == ARMS
    assert arms["wider window"].policy.window == 512 + arms["routed"].policy.recalled_tokens
    assert [arm.name for arm in arms_of(["exact", "routed"], 512, 4, 1024)] == ["routed", "exact"]
    with pytest.raises(UsageError, match="do not fit"):
        list(measure(model, [document(model, 4096)], [], [EXACT]))


def test_the_table_compares_with_the_first_row() -> None:
    right = {"one hop": [True, False]}
    first = Row("window", 512, [1.0, 2.0], right, {"one hop": [1.0, 0.0]}, 2.0, 100)
    second = Row("routed", 1024, [0.9, 1.9], right, {"one hop": [2.0, 1.0]}, 4.0, 100)
    lines = render([first, second]).splitlines()
    assert lines[3].startswith("| routed | 1,024 | 4.06 | 0.905 ± 0.000 | 1 of 2 | 1.50 |")
    assert lines[3].endswith("| 25 |")
