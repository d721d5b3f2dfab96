"""Machines: this one, and one of given sizes; splits of layers, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine import gguf_bytes as gb

from localctx.engine import gguf
from localctx.engine.estimate import ContextSettings
from localctx.engine.memory import Available
from localctx.engine.options import RopeOptions
from localctx.errors import OutOfMemory, UsageError
from localctx.forecast.fitting import Fitting
from localctx.forecast.limits import context_limit, wanted_layers
from localctx.forecast.machine import Sizes, cpu_name, machine_of
from localctx.settings import Settings
from localctx.values import ModelInfo, RopeInfo

GB = 10**9


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


def info(n_ctx_train: int = 1048576) -> ModelInfo:
    return ModelInfo("eight", "m", "f", "llama", n_ctx_train, 32, 2000, 0, 131_072, RopeInfo("norm"))


def fitting(header: gguf.GGUFHeader, ram: int, vram: int = 0, layers: int | None = None) -> Fitting:
    return Fitting(header, ContextSettings(), Available(ram), vram, layers)


def test_given_sizes_stand_for_the_machine(tmp_path: Path) -> None:
    machine = machine_of(Sizes("8G", "16G", "50G"), (("a card", 5 * GB),), tmp_path)
    assert (machine.vram_bytes, machine.ram.ram_bytes, machine.disk_bytes) == (8 * GB, 16 * GB, 50 * GB)
    assert machine.is_simulated and machine.gpu == "a card" and machine.ram.limited_by == "--ram"
    here = machine_of(Sizes(), (("a card", 5 * GB), ("another", GB)), tmp_path / "not" / "there")
    assert (here.vram_bytes, here.gpu, here.is_simulated) == (6 * GB, "a card, another", False)
    assert here.disk_bytes > 0 and here.ram.ram_bytes > 0 and here.cpu
    assert machine_of(Sizes(vram="0"), (("a card", 5 * GB),), tmp_path).vram_bytes == 0


@pytest.mark.parametrize("text", ["eight", "8Q", "-1", "", "8 G B", "1e9", "9" * 30])
@pytest.mark.parametrize("name", ["vram", "ram", "disk"])
def test_what_is_no_size_is_named(text: str, name: str) -> None:
    with pytest.raises(UsageError, match=f"--{name} = "):
        Sizes(**{name: text}).check()


def test_the_processors_name(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("flags : avx2\nmodel name\t: A Processor\n")
    assert cpu_name(tmp_path / "cpuinfo") == "A Processor"
    assert cpu_name(tmp_path / "nowhere")


def test_as_many_layers_as_the_gpu_holds(header: gguf.GGUFHeader) -> None:
    assert fitting(header, 64 * GB).layers(8192) == 0
    assert fitting(header, 64 * GB, 80 * GB).layers(8192) == 33
    fit = fitting(header, 64 * GB, GB)
    n = fit.layers(8192)
    assert 0 < n < 33
    assert fit.needed(8192, n).vram_bytes <= GB < fit.needed(8192, n + 1).vram_bytes
    assert fitting(header, 64 * GB, GB, 33).layers(8192) == 33
    assert fit.fits(8192) and not fitting(header, 64 * GB, GB, 33).fits(8192)


def test_the_longest_context_fits_and_the_next_does_not(header: gguf.GGUFHeader) -> None:
    for ram, vram in ((8 * GB, 0), (8 * GB, 8 * GB), (1000 * GB, 0)):
        fit = fitting(header, ram, vram)
        n_ctx = fit.largest_n_ctx(1048576)
        assert fit.fits(n_ctx)
        assert n_ctx == 1048576 or not fit.fits(n_ctx + 256)
    assert fitting(header, 8 * GB, 8 * GB).largest_n_ctx(1 << 20) > fitting(header, 8 * GB).largest_n_ctx(
        1 << 20
    )


def limit(fit: Fitting, **settings: object) -> int:
    return context_limit(fit, info(), RopeOptions(), Settings(**settings), 1)  # type: ignore[arg-type]  # by name


def test_a_limit_is_what_a_run_would_get(header: gguf.GGUFHeader) -> None:
    fit = fitting(header, 8 * GB)
    assert limit(fit) == fit.largest_n_ctx(1048576)
    assert limit(fit, ctx=4096) == 4096
    assert limit(fit, ctx=4 << 20, strategy="stream") == fit.largest_n_ctx(1048576)


def test_what_cannot_fit_is_refused_with_both_sizes(header: gguf.GGUFHeader) -> None:
    with pytest.raises(OutOfMemory, match=r"131,072 tokens needs 1\d\.\d GiB .* left by --ram") as caught:
        context_limit(
            Fitting(header, ContextSettings(), Available(8 * GB, None, "--ram"), 0),
            info(),
            RopeOptions(),
            Settings(ctx=131_072),
            1,
        )
    assert "--ctx" in caught.value.hint
    with pytest.raises(OutOfMemory, match="GPU memory"):
        limit(fitting(header, 64 * GB, GB, 33), ctx=8192)
    with pytest.raises(OutOfMemory):
        limit(fitting(header, 1000))
    with pytest.raises(UsageError, match="trained for"):
        limit(fitting(header, 64 * GB), ctx=2 << 20)


def test_layers_without_a_gpu_are_refused() -> None:
    assert wanted_layers(Settings(), 32, 0) is None
    assert wanted_layers(Settings(gpu_layers="0"), 32, 0) == 0
    assert wanted_layers(Settings(gpu_layers="all"), 32, GB) == 33
    assert wanted_layers(Settings(gpu_layers="7"), 32, GB) == 7
    with pytest.raises(UsageError, match="there is no GPU"):
        wanted_layers(Settings(gpu_layers="all"), 32, 0)
