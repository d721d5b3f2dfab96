"""Known models ranked for a machine."""

from __future__ import annotations

from dataclasses import replace

from localctx.engine.memory import Available
from localctx.engine.shape import Shape
from localctx.forecast.calibration import Calibration
from localctx.forecast.machine import Machine
from localctx.forecast.speed import cpu_place, gpu_place
from localctx.forecast.suggest import Candidate, rank, suggestions_json
from localctx.registry import list_models
from localctx.registry.candidates import candidates

GB = 10**9
SMALL = Candidate("small", "Small", ("en",), 8192, 1e9, 1e9, GB // 2, 20_000, True)
LARGE = Candidate("large", "Large", ("en", "de"), 131_072, 8e9, 8e9, 5 * GB, 131_072, True)
SPARSE = Candidate("sparse", "Sparse", ("en",), 131_072, 30e9, 3e9, 18 * GB, 98_304, False)
SHAPE = Shape(2e9, 2e9, 8e4, 5e8, 20_000)
CPU = Calibration("s", "small", cpu_place("cpu", 2), SHAPE, ((64.0, 20.0),), (), ((64.0, 10.0),))
GPU = Calibration("s", "small", gpu_place("card"), SHAPE, ((64.0, 9000.0),), (), ((64.0, 200.0),))


def machine(ram: int, vram: int = 0, gpu: str = "card") -> Machine:
    return Machine(vram, Available(ram), 100 * GB, "cpu", gpu, True)


def test_what_fits_and_is_fast_comes_first_the_largest_before_others() -> None:
    slow = replace(CPU, decode=((64.0, 0.5),))
    found = rank([SMALL, SPARSE, LARGE], machine(16 * GB, 12 * GB), 2, [slow, GPU])
    assert [one.name for one in found] == ["large", "small", "sparse"]
    assert [one.fits for one in found] == [True, True, True]
    assert [one.gpu_share for one in found][:2] == [1.0, 1.0] and 0 < found[2].gpu_share < 1
    assert found[0].decode_tokens_per_s == 200 * (GB // 2) / (5 * GB)
    assert {one.speed_source for one in found} == {"scaled"}


def test_without_a_gpu_small_models_are_the_fast_ones() -> None:
    found = rank([SMALL, SPARSE, LARGE], machine(16 * GB), 2, [CPU])
    assert [(one.name, one.fits) for one in found] == [("small", True), ("large", True), ("sparse", False)]
    assert found[1].decode_tokens_per_s < 5 < found[0].decode_tokens_per_s
    tiny = rank([SMALL, LARGE], machine(GB // 2), 2, [CPU])
    assert [one.fits for one in tiny] == [False, False]
    assert tiny[0].name == "small"


def test_only_the_experts_that_a_token_is_sent_to_take_time() -> None:
    (sparse,) = rank([SPARSE], machine(64 * GB), 2, [CPU])
    (dense,) = rank([LARGE], machine(64 * GB), 2, [CPU])
    assert sparse.weights_bytes > dense.weights_bytes
    assert sparse.decode_tokens_per_s > dense.decode_tokens_per_s


def test_a_million_tokens_in_the_store() -> None:
    (one,) = rank([SMALL], machine(16 * GB), 2, [CPU])
    assert one.gb_per_million_tokens == 5.8
    assert (one.n_ctx, one.kv_bytes) == (8192, 8192 * 20_000)
    shown = suggestions_json([one], machine(16 * GB))
    assert shown["schema"] == "localctx.suggest/1"
    assert shown["models"][0]["store"] is True and shown["machine"]["ram_bytes"] == 16 * GB


def test_every_known_model_that_generates_text_can_be_suggested() -> None:
    rows = list_models()
    found = {one.name: one for one in candidates(rows)}
    wanted = {row.manifest.name for row in rows if row.manifest and row.manifest.embedder is None}
    assert set(found) == wanted
    for one in found.values():
        assert 0 < one.n_active <= one.n_weights
        assert 0.4 < one.weights_bytes / one.n_weights < 1.1 or one.is_here
        assert one.kv_bytes_per_token > 0 and one.n_ctx >= 8192
    assert found["qwen3-30b-a3b"].n_active == 3.3e9
