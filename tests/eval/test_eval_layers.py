"""Layers made from their neighbours: which rows change, and that unchanged KV predicts as it was."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from localctx.engine import EngineOptions, open_model
from localctx.engine.llama import LlamaModel
from localctx.engine.llama_context import LlamaContext
from localctx.errors import Interrupted, UsageError
from localctx.eval.layers import ARMS, NO_CONTEXT, Figures, layer_rows, measure, replaced
from localctx.verify.compare import Span

N_CONTEXT = 96


@pytest.fixture
def model(tiny_model_path: Path) -> Iterator[LlamaModel]:
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as opened:
        yield opened


def test_odd_layers_are_the_mean_of_their_neighbours_and_even_ones_stay(model: LlamaModel) -> None:
    context = model.open_kv_context(256, n_outputs=1)
    try:
        blob = context.snapshot(tuple(range(20, 20 + N_CONTEXT)))
        assert blob is not None
        blob = blob.copy()
    finally:
        context.close()
    before = layer_rows(blob)
    n_layers = len(before[0])
    assert n_layers == model.info.n_layer == 2 and before[0][0].shape[0] == N_CONTEXT
    made, share = replaced(blob, ARMS["odd layers"])
    after = layer_rows(made)
    assert share == 0.5
    for half in range(2):
        assert np.array_equal(after[half][0], before[half][0])
        assert np.array_equal(after[half][1], before[half][0])  # no layer above it
        assert not np.array_equal(after[half][1], before[half][1])
    keys_only, share = replaced(blob, ARMS["odd layers, keys only"])
    assert share == 0.25
    assert np.array_equal(layer_rows(keys_only)[1][1], before[1][1])
    with pytest.raises(UsageError):
        layer_rows(blob[:-2])


def test_unchanged_kv_predicts_what_it_did_and_replaced_kv_does_not(model: LlamaModel) -> None:
    span = Span(tuple(range(20, 20 + N_CONTEXT)), tuple(range(60, 76)))
    ((number, found),) = list(measure(model, [span]))
    assert number == 1 and set(found) == {*ARMS, NO_CONTEXT}
    losses = {name: np.array(values) for name, (_, values) in found.items()}
    assert all(len(values) == 15 for values in losses.values())
    context = model.open_kv_context(256, n_outputs=128)
    rows: list[np.ndarray[tuple[int, int], np.dtype[np.float32]]] = []
    try:
        context.place(span.context, [])
        context.score(span.target, lambda _, logits: rows.append(logits.copy()))
    finally:
        context.close()
    logits = np.concatenate(rows)[:-1].astype(np.float64)
    plain = np.log(np.exp(logits).sum(1)) - logits[np.arange(15), np.array(span.target[1:])]
    assert np.allclose(losses["unchanged"], plain, atol=0.02)
    assert np.array_equal(losses["every 4th layer"], losses["unchanged"])  # there are but two layers
    assert np.abs(losses["odd layers"] - losses["unchanged"]).max() > 0.05
    assert np.abs(losses[NO_CONTEXT] - losses["unchanged"]).max() > 0.05


@pytest.mark.parametrize("broken", ["snapshot", "score"])
def test_what_was_interrupted_is_no_result(
    model: LlamaModel, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    span = Span(tuple(range(20, 20 + N_CONTEXT)), tuple(range(60, 76)))
    monkeypatch.setattr(LlamaContext, broken, lambda *_: None if broken == "snapshot" else 0)
    with pytest.raises(Interrupted):
        list(measure(model, [span]))


def test_ratios_are_paired() -> None:
    first, other = Figures("a", 0.0, (1.0, 2.0, 3.0)), Figures("b", 0.5, (2.0, 3.0, 4.0))
    row = other.to_json(first)
    assert row["ratio"] == pytest.approx(math.e, rel=1e-4) and row["ratio_error"] == 0
    assert row["perplexity"] == pytest.approx(math.exp(3), rel=1e-4)
