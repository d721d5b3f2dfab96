"""Where a context's bytes lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from localctx.engine import gguf
from localctx.engine.estimate import ContextSettings
from localctx.engine.memory import Available
from localctx.engine.no_alloc import Measured
from localctx.engine.restoring import SLICE_BYTES
from localctx.forecast.fitting import Fitting
from localctx.forecast.footprint import (
    CHUNKS_HELD,
    GPU_HOST_BYTES,
    GPU_OWN_BYTES,
    SLICES_HELD,
    footprint,
    held_outside,
)

GB, MB = 10**9, 10**6


@pytest.fixture
def header(tiny_model_path: Path) -> gguf.GGUFHeader:
    return gguf.open_model(tiny_model_path)


def fitting(header: gguf.GGUFHeader, vram: int, layers: int | None = None) -> Fitting:
    return Fitting(header, ContextSettings(), Available(GB), vram, layers)


def test_all_on_the_host(header: gguf.GGUFHeader) -> None:
    counted = Measured(host_bytes=3 * MB, kv_bytes=2 * MB)
    plain = footprint(fitting(header, 0), 512, counted, 100 * MB, 0)
    assert (plain.vram_bytes, plain.gpu_layers, plain.kv_bytes, plain.compute_bytes) == (0, 0, 2 * MB, 3 * MB)
    assert plain.weights_bytes == header.weights_bytes
    more = footprint(fitting(header, 0), 512, counted, 100 * MB, 7 * MB)
    assert more.ram_bytes - plain.ram_bytes == 7 * MB
    assert plain.ram_bytes > 100 * MB + header.weights_bytes + 5 * MB


def test_layers_take_their_weights_and_kv_with_them(header: gguf.GGUFHeader) -> None:
    counted = Measured(host_bytes=MB, device_bytes=3 * MB, kv_bytes=2 * MB)
    host = footprint(fitting(header, 0), 512, Measured(MB, 0, 2 * MB), 0, 0)
    half = footprint(fitting(header, GB, 1), 512, counted, 0, 0)
    whole = footprint(fitting(header, GB), 512, counted, 0, 0)
    assert (half.gpu_layers, whole.gpu_layers) == (1, 3)
    moved = half.vram_bytes - GPU_OWN_BYTES - 3 * MB
    assert host.ram_bytes + GPU_HOST_BYTES - half.ram_bytes == moved
    assert MB < half.vram_bytes - GPU_OWN_BYTES - 3 * MB < whole.vram_bytes - GPU_OWN_BYTES - 3 * MB
    assert whole.vram_bytes >= GPU_OWN_BYTES + 5 * MB


def test_all_of_the_file_is_mapped_while_it_goes_to_a_gpu(header: gguf.GGUFHeader) -> None:
    counted = Measured(host_bytes=0, device_bytes=MB, kv_bytes=0)
    idle, busy = (footprint(fitting(header, GB), 512, counted, 0, held) for held in (0, 30 * MB))
    assert idle.ram_bytes >= header.weights_bytes + GPU_HOST_BYTES
    assert 30 * MB - header.weights_bytes <= busy.ram_bytes - idle.ram_bytes < 30 * MB


def test_without_a_count_the_header_has_to_do(header: gguf.GGUFHeader) -> None:
    fit = fitting(header, 0)
    for counted in (None, Measured(error="why not")):
        found = footprint(fit, 512, counted, 0, 0)
        assert found.kv_bytes == fit.needed(512, 0).kv_bytes
        assert found.compute_bytes == fit.needed(512, 0).compute_bytes


def test_kv_outside_the_context_is_bounded_by_what_is_read() -> None:
    assert held_outside(0, 0, 0, MB) == 0
    assert held_outside(10 * MB, 10 * MB, 10 * MB, MB) == 20 * MB
    assert held_outside(0, 0, 10 * MB, MB) == CHUNKS_HELD * MB
    assert held_outside(GB, 4 * GB, GB, MB) == GB + SLICES_HELD * SLICE_BYTES
