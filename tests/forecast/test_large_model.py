"""A model of 8B parameters on a large GPU: planned figures beside what `localctx ask` took there."""

from __future__ import annotations

import math

import pytest
from engine import gguf_bytes

from localctx.engine import gguf
from localctx.engine.estimate import ContextSettings
from localctx.engine.memory import Available
from localctx.engine.shape import shape_of
from localctx.forecast.calibration import Calibration, rates_of
from localctx.forecast.figures import estimates
from localctx.forecast.fitting import Fitting
from localctx.forecast.footprint import CHUNKS_HELD, GPU_HOST_BYTES, GPU_OWN_BYTES
from localctx.forecast.plan import Estimates
from localctx.forecast.rates import Rates
from localctx.forecast.reading import Stored
from localctx.forecast.speed import gpu_place
from localctx.forecast.work import Task, work_of
from localctx.session.ladder import RungName

GB, MB = 10**9, 10**6
N_LAYER, N_EMBD, N_FF, N_KV, N_VOCAB = 32, 4096, 14_336, 1024, 32_000
KV_BYTES = N_LAYER * 2 * N_KV * 2  # f16
N_BATCH, WINDOW, AROUND, PROGRAM_BYTES = 1024, 4096, 60, 250 * MB
Q4_0 = 2
INT4, INT8 = 0.29, 0.53
"""Stored KV by f16."""


def token_seconds(depth: float) -> float:
    """Of plain prefill, as measured on an H200."""
    return 93e-6 + 2.24e-9 * depth


PREFILL = tuple((depth, 1 / token_seconds(depth)) for depth in (512.0, 1536.0, 2560.0, 3584.0))
STREAM = tuple((WINDOW + 256.0, 10_400.0) for _ in range(3))
DECODE = ((0.0, 302.0), (8192.0, 273.0), (32_768.0, 200.0), (131_072.0, 95.0))


@pytest.fixture(scope="module")
def header(tmp_path_factory: pytest.TempPathFactory) -> gguf.GGUFHeader:
    """Of a Q4_0 file of 4.1 GB, whose weights are a hole."""
    shapes = {"token_embd.weight": (N_EMBD, N_VOCAB), "output.weight": (N_EMBD, N_VOCAB)}
    for layer in range(N_LAYER):
        named = {"attn_q": N_EMBD, "attn_k": N_KV, "attn_v": N_KV, "attn_output": N_EMBD}
        shapes |= {f"blk.{layer}.{name}.weight": (N_EMBD, n) for name, n in named.items()}
        shapes |= {f"blk.{layer}.ffn_{name}.weight": (N_EMBD, N_FF) for name in ("gate", "up")}
        shapes[f"blk.{layer}.ffn_down.weight"] = (N_FF, N_EMBD)
    rows, n_bytes = [], 0
    for name, shape in shapes.items():
        rows.append(gguf_bytes.tensor(name, shape, Q4_0, n_bytes))
        n_bytes += math.prod(shape) // 32 * 18
    changes: dict[str, object] = {
        "llama.block_count": N_LAYER, "llama.context_length": 131_072, "llama.embedding_length": N_EMBD,
        "llama.feed_forward_length": N_FF, "llama.attention.head_count": 32,
        "llama.attention.head_count_kv": 8, "llama.vocab_size": N_VOCAB,
    }  # fmt: skip
    path = tmp_path_factory.mktemp("large") / "large.gguf"
    with path.open("wb") as file:
        n_head = file.write(gguf_bytes.file({**gguf_bytes.LLAMA, **changes}, rows))
        file.truncate(n_head + n_bytes)
    found = gguf.open_model(path)
    assert found.weights_bytes == n_bytes == pytest.approx(4.1 * GB, rel=0.02)
    return found


@pytest.fixture(scope="module")
def rates(header: gguf.GGUFHeader) -> Rates:
    place = gpu_place("NVIDIA H200")
    return rates_of(Calibration("8b", "large", place, shape_of(header), PREFILL, STREAM, DECODE))


def planned(header: gguf.GGUFHeader, rates: Rates, rung: RungName, n_tokens: int) -> Estimates:
    """The first answer, of 16 tokens, on a text that the store does not have."""
    task = Task(
        n_tokens=n_tokens, n_missing=n_tokens, n_missing_exact=n_tokens, n_around=AROUND, max_tokens=16,
        held=WINDOW + 256, prefill_n_ctx=WINDOW + 2048, block=128, budget=None, refresh=None, latency=1.0,
        kv_bytes_per_token=KV_BYTES,
    )  # fmt: skip
    stored = Stored(
        "", bytes_per_token=INT4 * KV_BYTES, exact_bytes_per_token=INT8 * KV_BYTES, limit_bytes=GB
    )
    fit = Fitting(header, ContextSettings(N_BATCH), Available(500 * GB), 140 * GB, N_LAYER + 1)
    return estimates(fit, rung, work_of(rung, task, rates, for_summary=False), stored, None, PROGRAM_BYTES)


@pytest.mark.parametrize(
    ("rung", "n_tokens", "seconds"),
    [("exact-f16", 32_768, 8.9), ("exact-f16", 130_511, 37.7), ("streamed-store", 1_048_576, 103.9)],
)
def test_time_is_what_it_took(
    header: gguf.GGUFHeader, rates: Rates, rung: RungName, n_tokens: int, seconds: float
) -> None:
    assert planned(header, rates, rung, n_tokens).minutes * 60 == pytest.approx(seconds, rel=0.25)


def test_the_speed_of_prefill_into_the_store_is_what_was_measured(rates: Rates) -> None:
    assert 1_048_576 / rates.streamed(1_048_576, WINDOW + 256) == pytest.approx(10_400, rel=0.02)


@pytest.mark.parametrize("n_tokens", [32_768, 130_511])
def test_memory_of_a_whole_text(header: gguf.GGUFHeader, rates: Rates, n_tokens: int) -> None:
    foot = planned(header, rates, "exact-f16", n_tokens).footprint
    on_gpu = header.weights_bytes + n_tokens * KV_BYTES + GPU_OWN_BYTES
    assert on_gpu < foot.vram_bytes < 1.1 * on_gpu
    most = PROGRAM_BYTES + GPU_HOST_BYTES + max(header.weights_bytes, INT8 * n_tokens * KV_BYTES)
    assert most <= foot.ram_bytes < 1.1 * most


def test_memory_of_a_text_that_streams_does_not_grow_with_it(header: gguf.GGUFHeader, rates: Rates) -> None:
    short, long = (planned(header, rates, "streamed-store", n) for n in (65_536, 1_048_576))
    on_gpu = header.weights_bytes + (WINDOW + 2048) * KV_BYTES + GPU_OWN_BYTES
    assert on_gpu < long.footprint.vram_bytes < 1.1 * on_gpu
    assert long.footprint.vram_bytes == short.footprint.vram_bytes
    under_way = CHUNKS_HELD * N_BATCH * KV_BYTES
    most = PROGRAM_BYTES + GPU_HOST_BYTES + max(header.weights_bytes, under_way)
    assert most <= long.footprint.ram_bytes == short.footprint.ram_bytes < 1.1 * most
    assert long.disk_bytes == pytest.approx(INT4 * 1_048_576 * KV_BYTES)
