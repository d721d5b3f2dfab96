"""Streamed and dense prefill of a tiny model: counts and bytes are what the engine and the store did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine.tiny_gguf import TRAINING_TEXT

from localctx.bench.dense_fit import DenseFit
from localctx.bench.prefill import measure
from localctx.document import open_document
from localctx.engine import EngineOptions, open_model
from localctx.engine.echo import EchoModel
from localctx.engine.llama import LlamaModel
from localctx.engine.prefill import chunk_tokens, plan_prefill
from localctx.errors import NotComposable, UsageError
from localctx.eval.benchmark_renderers import tables_of
from localctx.kv import PrefillPolicy
from localctx.session.frame import frame_of
from localctx.session.indexed import Indexed
from localctx.session.indexing import index_documents
from localctx.session.prompts import question_task
from localctx.settings import Settings


@pytest.fixture
def model(tiny_model_path: Path) -> Iterator[LlamaModel]:
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as opened:
        yield opened


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{i}. {TRAINING_TEXT}" for i in range(40)), "utf-8")
    return str(path)


def silent(_: str) -> None:
    pass


def n_prefix(model: LlamaModel) -> int:
    frame = frame_of(model, question_task(""))
    assert frame is not None
    return len(frame.prefix)


def test_counts_and_bytes(model: LlamaModel, text: str, tmp_path: Path) -> None:
    told: list[str] = []
    store = tmp_path / "place"
    settings = Settings(store=str(store), kv="window=256,codec=int8")
    report = measure(model, settings, text, 1200, 2, told.append)
    shown = report.to_json()
    streamed, dense, n_tokens = shown["streamed"], shown["dense"], shown["n_tokens"]
    assert shown["schema"] == "localctx.bench.prefill/1"
    assert 1000 < n_tokens <= 1200
    assert streamed["n_evaluated"] == dense["n_evaluated"] == n_prefix(model) + n_tokens
    assert (streamed["policy"], streamed["window"], streamed["codec"]) == ("window", 256, "int8")
    assert streamed["n_ctx"] < dense["n_ctx"]
    assert streamed["bytes_per_token_f16"] == model.info.kv_bytes_per_token
    assert streamed["bytes_per_token"] == round(streamed["size_bytes"] / n_tokens, 1)
    for way in (streamed, dense):
        assert {way[name]["n"] for name in ("seconds", "tokens_per_s", "tokens_per_s_last_quarter")} == {2}
        assert way["peak_memory_bytes"] > 20 << 20
    assert shown["no_dense"] is None and shown["streamed_by_dense"] > 0
    assert shown["machine"]["n_threads"] >= 1 and shown["model"]["name"] == model.info.name
    assert [line.split(":")[0] for line in told] == ["streamed", "dense", "dense", "streamed"]
    assert list(store.iterdir()) == []
    fit = shown["dense_fit"]  # a machine at other work may give a line that falls, which says nothing
    assert [line.split(":")[0] for line in report.lines if not line.startswith("dense by")] == [
        "streamed",
        "stored",
        "dense",
        "streamed / dense",
    ]
    assert any(line.startswith("dense by the fit") for line in report.lines) == (fit is not None)


def rates(n: int, token_s: float, depth_s: float) -> dict[str, Any]:
    """What `bench prefill` prints of a run whose tokens cost so much."""

    def rate(depth: float) -> dict[str, float]:
        return {"median": 1 / (token_s + depth_s * depth)}

    return {
        "n_evaluated": n,
        "seconds": {"median": token_s * n + depth_s * n * n / 2},
        "tokens_per_s": rate(n / 2),
        "tokens_per_s_first_quarter": rate(n / 8),
        "tokens_per_s_last_quarter": rate(7 * n / 8),
    }


def test_dense_prefill_is_extrapolated_by_its_own_costs() -> None:
    fit = DenseFit.of(rates(100_000, 60e-6, 2e-9))
    assert fit is not None
    shown = fit.to_json()
    assert (shown["us_per_token"], shown["ns_per_token_of_depth"]) == (60.0, 2.0)
    assert shown["seconds_measured"] == pytest.approx(shown["seconds_by_fit"]) == pytest.approx(16.0)
    seconds = {one["n_tokens"]: one["seconds"] for one in shown["extrapolated"]}
    assert min(seconds) == 131_072
    assert seconds[1_048_576] == pytest.approx(60e-6 * 2**20 + 1e-9 * 2**40, rel=1e-3)
    longest = DenseFit.of(rates(5_000_000, 60e-6, 2e-9))
    assert longest is not None and "extrapolated" not in longest.line
    assert "60 µs + 2 ns × depth" in fit.line and "1,048,576 tokens 1,162 s" in fit.line
    result = {
        "schema": "localctx.bench.prefill/1",
        "streamed": {"tokens_per_s": {"median": 10_000.0}},
        "dense": rates(100_000, 60e-6, 2e-9),
        "dense_fit": shown,
    }
    *_, table = tables_of(result)
    assert [row[0] for row in table.rows][:2] == ["131,072", "262,144"] and "60 µs" in table.title


@pytest.mark.parametrize("dense", [None, rates(1000, 60e-6, -1e-9), rates(1000, -1e-6, 1e-6)])
def test_costs_that_do_not_rise_say_nothing(dense: dict[str, Any] | None) -> None:
    assert DenseFit.of(dense) is None


def test_the_store_holds_what_index_would_write(model: LlamaModel, text: str, tmp_path: Path) -> None:
    Path(text).write_text(TRAINING_TEXT * 8, "utf-8")
    report = measure(model, Settings(kv="window=256"), text, None, 1, silent)
    settings = Settings(store=str(tmp_path / "own"), kv="window=256", strategy="stream")
    with open_document(text, cache_dir=None) as document:
        done = list(index_documents([document], model, settings))[-1]
    assert isinstance(done, Indexed)
    row, one = done.documents[0], report.streamed[0]
    assert (one.size_bytes, one.n_tokens, one.n_evaluated) == (
        row.size_bytes, row.tokens_stored, row.tokens_evaluated,
    )  # fmt: skip


def test_positions_taken_back_are_counted(model: LlamaModel, text: str) -> None:
    report = measure(model, Settings(kv="window=256"), text, 4500, 1, silent)
    one, prefix = report.streamed[0], n_prefix(model)
    policy = PrefillPolicy("window", 256)
    n_chunk = chunk_tokens(policy, prefix, one.n_tokens, one.n_ctx, model.n_batch)
    plan = plan_prefill(policy, one.n_tokens, 0, 0, n_chunk, model.info.n_ctx_train - prefix)
    assert one.n_rebased == plan.n_rebased >= 2


def test_without_room_there_is_no_dense_baseline(model: LlamaModel, text: str) -> None:
    shown = measure(model, Settings(kv="window=256"), text, 3000, 1, silent).to_json()
    assert shown["dense"] is None and shown["streamed_by_dense"] is None
    assert "do not fit a context of 2,048" in shown["no_dense"]
    assert shown["streamed"]["n_evaluated"] > 2048


def test_the_built_in_text_is_enough(model: LlamaModel) -> None:
    report = measure(model, Settings(kv="window=128"), None, 600, 1, silent)
    assert 300 < report.streamed[0].n_tokens <= 600


def test_what_cannot_be_measured(model: LlamaModel, text: str, tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("A few words.")
    for source, n_tokens, settings, said in (
        (text, 1_000_000, Settings(), "tokens, 1,000,000 are needed"),
        (str(short), None, Settings(), "256 are needed"),
        (text, 10, Settings(), "--tokens 10"),
        (text, 600, Settings(ctx=4096), "trained for"),
        (text, 600, Settings(store="off"), "needs a store"),
        (text, 600, Settings(store=str(short)), "no store can be made"),
    ):
        with pytest.raises(UsageError, match=said):
            measure(model, settings, source, n_tokens, 1, silent)
    with EchoModel() as echo, pytest.raises(NotComposable, match="no KV"):
        measure(echo, Settings(), text, 600, 1, silent)
