"""What a context takes is known from the header, and refused before anything is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from engine import gguf_bytes as gb
from engine.conftest import buffer_mib, check_buffers
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf
from gguf import GGMLQuantizationType

from localctx.engine import gguf
from localctx.engine.estimate import (
    ContextSettings,
    MemoryEstimate,
    estimate,
    kv_bytes,
    largest_n_ctx,
    require,
    require_gpu,
)
from localctx.engine.llama import open_model
from localctx.engine.memory import Available
from localctx.engine.model_facts import KVShape
from localctx.engine.options import EngineOptions
from localctx.errors import OutOfMemory

GIB = 1 << 30
MIB = 1 << 20
LLAMA_8B = KVShape((1024,) * 32, (1024,) * 32, (False,) * 32)


@pytest.fixture
def header(tmp_path: Path) -> gguf.GGUFHeader:
    """A header with Llama-3-8B's shape and a context of a million tokens, but hardly any weights."""
    changes = {
        "llama.block_count": 32,
        "llama.embedding_length": 4096,
        "llama.feed_forward_length": 14336,
        "llama.attention.head_count": 32,
        "llama.attention.head_count_kv": 8,
        "llama.context_length": 1048576,
        "llama.vocab_size": 128256,
        "tokenizer.ggml.tokens": [f"t{i}" for i in range(2000)],
    }
    path = tmp_path / "m.gguf"
    path.write_bytes(gb.llama(**changes))
    return gguf.open_model(path)


def test_kv_bytes_are_llama_cpps() -> None:
    assert kv_bytes(LLAMA_8B, 1048576) == 128 * GIB
    assert kv_bytes(LLAMA_8B, 8192, ContextSettings(type_k="q8_0", type_v="q4_0")) == 8192 * 32 * (
        1024 // 32 * (34 + 18)
    )
    assert kv_bytes(LLAMA_8B, 1) == kv_bytes(LLAMA_8B, 256)


def test_window_layers_keep_a_window_per_sequence_and_a_batch() -> None:
    shape = KVShape((256,) * 2, (256,) * 2, (True, False), window=512)
    per_cell = (256 + 256) * 2
    assert kv_bytes(shape, 8192, ContextSettings(n_ubatch=512, n_seq=4)) == (8192 + 512 * 4 + 512) * per_cell
    assert kv_bytes(shape, 256) == 2 * 256 * per_cell


def test_recurrent_state_does_not_grow_with_the_context() -> None:
    shape = KVShape((0,), (0,), (False,), state_bytes=1000, is_recurrent=True)
    assert kv_bytes(shape, 1 << 20, ContextSettings(n_seq=3)) == 3000


def test_a_row_of_logits_for_each_sequence_is_counted_none_for_each_token(tmp_path: Path) -> None:
    path = tmp_path / "wide.gguf"
    path.write_bytes(gb.llama(**{"tokenizer.ggml.tokens": [f"t{i}" for i in range(200_000)]}))
    header = gguf.open_model(path)

    def compute(**settings: int) -> int:
        return estimate(header, 512, ContextSettings(**settings)).compute_bytes

    assert compute(n_seq=9) - compute(n_seq=1) >= 8 * 200_000 * 4
    assert compute(n_ubatch=512) - compute(n_ubatch=256) < 256 * 200_000


@pytest.mark.parametrize("n_ctx", [512, 2048])
@pytest.mark.parametrize("n_seq", [1, 4])
@pytest.mark.parametrize("n_batch", [64, 512])
def test_buffers_are_a_little_more_than_llama_cpp_says(
    n_ctx: int, n_seq: int, n_batch: int, tiny_model_path: Path
) -> None:
    check_buffers(tiny_model_path, n_ctx, n_seq, n_batch)


def test_weights_that_are_repacked_are_memory_and_mapped_ones_are_not(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "q4.gguf", bpe_vocabulary(), weight_type=GGMLQuantizationType.Q4_0)
    header, lines = gguf.open_model(path), []
    with open_model(path, EngineOptions(on_log=lines.append)) as model:
        model.open_context(256)
    copied = estimate(header, 256).copied_bytes
    assert copied >= sum(buffer_mib(line) for line in lines if "CPU_REPACK" in line) * MIB
    assert 0 < copied < header.weights_bytes
    plain = gguf.open_model(write_tiny_gguf(tmp_path / "f32.gguf", bpe_vocabulary()))
    assert estimate(plain, 256).copied_bytes == 0


def test_layers_on_a_gpu_leave_the_host(header: gguf.GGUFHeader) -> None:
    host = estimate(header, 8192)
    half = estimate(header, 8192, ContextSettings(n_gpu_layers=16))
    full = estimate(header, 8192, ContextSettings(n_gpu_layers=99))
    assert (half.kv_bytes, full.kv_bytes) == (host.kv_bytes // 2, 0)
    assert half.vram_bytes > host.kv_bytes // 2
    assert half.weights_bytes == host.weights_bytes  # blk.1 stays, the last layers go


def test_what_fits_passes_and_what_does_not_names_sizes_and_options() -> None:
    needed = MemoryEstimate(weights_bytes=5 * GIB, kv_bytes=128 * GIB, compute_bytes=GIB, n_ctx=1048576)
    assert require(needed, Available(135 * GIB), "big") == ()
    with pytest.raises(OutOfMemory) as caught:
        require(needed, Available(16 * GIB), "big", 65536)
    message, hint = caught.value.message, caught.value.hint
    for word in ("big", "1,048,576", "129 GiB", "KV cache 128 GiB", "16.0 GiB", "free memory"):
        assert word in message
    assert "\n" not in message + hint
    for option in ("--ctx 65536", "smaller model"):
        assert option in hint


def test_mapped_weights_beyond_memory_are_a_notice_copied_ones_an_error() -> None:
    mapped = MemoryEstimate(weights_bytes=100 * GIB, kv_bytes=GIB, compute_bytes=0, n_ctx=4096)
    (notice,) = require(mapped, Available(16 * GIB), "moe")
    assert "disk" in notice
    copied = MemoryEstimate(100 * GIB, GIB, 0, 4096, copied_bytes=90 * GIB)
    with pytest.raises(OutOfMemory):
        require(copied, Available(16 * GIB), "moe")


def test_an_address_space_limit_counts_weights_too() -> None:
    needed = MemoryEstimate(weights_bytes=3 * GIB, kv_bytes=GIB, compute_bytes=0, n_ctx=4096)
    with pytest.raises(OutOfMemory, match="ulimit -v"):
        require(needed, Available(64 * GIB, address_space_bytes=2 * GIB), "m")


def test_a_gpu_with_too_little_memory_is_told_before_anything_is_loaded() -> None:
    needed = MemoryEstimate(GIB, GIB, 0, 4096, vram_bytes=2 * GIB)
    require_gpu(needed, 2 * GIB, "m")
    require_gpu(needed, 0, "m")  # no GPU is known
    with pytest.raises(
        OutOfMemory, match=r"m: 2\.00 GiB of GPU memory .* 4,096 tokens; 1\.00 GiB free"
    ) as caught:
        require_gpu(needed, GIB, "m")
    assert "--gpu-layers" in caught.value.hint


@pytest.mark.parametrize("ram", [GIB // 2, GIB, 4 * GIB, 1000 * GIB])
def test_the_largest_context_fits_and_the_next_does_not(header: gguf.GGUFHeader, ram: int) -> None:
    n_ctx = largest_n_ctx(header, Available(ram))
    assert n_ctx % 256 == 0
    assert estimate(header, n_ctx).unreclaimable <= ram
    assert n_ctx == 1048576 or estimate(header, n_ctx + 256).unreclaimable > ram


@pytest.mark.parametrize("trained", [128, 256, 300])
def test_the_largest_context_is_not_longer_than_the_trained_one(trained: int, tmp_path: Path) -> None:
    path = tmp_path / "short.gguf"
    path.write_bytes(gb.llama(**{"llama.context_length": trained}))
    assert largest_n_ctx(gguf.open_model(path), Available(GIB)) == trained


def test_nothing_fits_into_nothing(header: gguf.GGUFHeader) -> None:
    assert largest_n_ctx(header, Available(1000)) == 0


CHILD = """
import sys
from pathlib import Path
from localctx.engine.estimate import estimate, largest_n_ctx, require
from localctx.engine.gguf import open_model
from localctx.engine.memory import available
from localctx.errors import LocalctxError
try:
    header, free = open_model(Path(sys.argv[1])), available()
    require(estimate(header, 1000000), free, "m", largest_n_ctx(header, free))
except LocalctxError as error:
    print(error.message)
    sys.exit(error.exit_code)
assert "llama_cpp" not in sys.modules
"""


def test_a_million_tokens_are_refused_under_an_address_space_limit(header: gguf.GGUFHeader) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = f'ulimit -v 3000000; exec "{sys.executable}" -c "$0" "{header.path}"'
    done = subprocess.run(
        ["bash", "-c", command, CHILD],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (1, "", 1)
    assert "KV cache 122 GiB" in done.stdout


def test_rows_of_logits_are_counted(tiny_model_path: Path) -> None:
    header = gguf.open_model(tiny_model_path)
    n_vocab = header.array_length("tokenizer.ggml.tokens")
    few, many = (estimate(header, 512, ContextSettings(n_outputs=n)) for n in (0, 4096))
    assert many.compute_bytes - few.compute_bytes > 4095 * n_vocab * 4
    assert many.kv_bytes == few.kv_bytes
