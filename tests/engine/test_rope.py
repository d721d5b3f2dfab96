"""How keys turn, by the header: llama.cpp itself is the oracle, through the trial of open_kv_context()."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from engine.kv_tools import document, prefill
from engine.tiny_architectures import HEAD, Key, write_architecture

from localctx.engine import model_kv
from localctx.engine.gguf import open_model as open_header
from localctx.engine.llama import open_model
from localctx.engine.options import EngineOptions, RopeOptions
from localctx.engine.rope import RopeTable, rope_table
from localctx.errors import ModelError, NotComposable
from localctx.kv import PrefillPolicy

FACTORS = np.linspace(1, 9, HEAD // 2).astype(np.float32)
LONG, SHORT = {"rope_factors_long.weight": FACTORS}, {"rope_factors_short.weight": FACTORS[::-1].copy()}


def table_of(path: Path, options: RopeOptions | None = None, n_ctx: int = 1024) -> RopeTable:
    return rope_table(open_header(path), options or RopeOptions(), n_ctx)


@pytest.mark.parametrize(
    ("architecture", "keys", "extra", "options"),
    [
        ("llama", {"rope.freq_base": 500000.0}, {"rope_freqs.weight": FACTORS}, RopeOptions()),
        ("llama", {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, {}, RopeOptions()),
        ("llama", {"rope.scale_linear": 3.0}, {}, RopeOptions()),
        ("llama", {"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, {}, RopeOptions()),
        ("llama", {}, {}, RopeOptions(freq_base=123456.0)),
        ("llama", {}, {}, RopeOptions(scaling="linear", freq_scale=0.3)),
        ("llama", {}, {}, RopeOptions(scaling="yarn", freq_scale=0.25)),
        ("llama", {}, {}, RopeOptions(scaling="yarn", freq_scale=0.125, yarn_orig_ctx=300)),
        (
            "qwen3",
            {
                "rope.scaling.type": "yarn",
                "rope.scaling.factor": 4.0,
                "rope.scaling.original_context_length": 512,
            },
            {},
            RopeOptions(),
        ),
        ("phi3", {"rope.dimension_count": 8}, {}, RopeOptions()),
        ("phi3", {}, LONG | SHORT, RopeOptions()),
    ],
)
def test_keys_turn_as_llama_cpp_turns_them(
    architecture: str,
    keys: dict[str, Key],
    extra: dict[str, np.ndarray],
    options: RopeOptions,
    tmp_path: Path,
) -> None:
    path = write_architecture(tmp_path / "m.gguf", architecture, keys=keys, extra=extra, n_ctx_train=4096)
    with open_model(path, EngineOptions(rope=options)) as model:
        assert model.kv_refusal() is None
        model.open_kv_context(256)  # tried 4,000 positions apart


@pytest.mark.parametrize("off", [1.01, 0.9])
def test_a_frequency_that_is_a_little_off_is_noticed(
    off: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_architecture(tmp_path / "m.gguf", "llama", n_ctx_train=4096)

    def wrong(*arguments: object) -> RopeTable:
        table = rope_table(*arguments)  # type: ignore[arg-type]  # passed on
        table.frequencies[-2] *= off
        return table

    monkeypatch.setattr(model_kv, "rope_table", wrong)
    with open_model(path) as model, pytest.raises(NotComposable, match="layer 0's keys") as caught:
        model.open_kv_context(256)
    assert caught.value.message.startswith("tiny changes with its position")
    assert "exact" in caught.value.hint


def test_a_rotation_that_llama_cpp_reports_otherwise_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_architecture(tmp_path / "m.gguf", "llama")

    def wrong(header: object, options: object, n_ctx: int) -> RopeTable:
        return rope_table(header, RopeOptions(freq_base=20000.0), n_ctx)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(model_kv, "rope_table", wrong)
    with open_model(path) as model, pytest.raises(NotComposable, match=r"norm 10000\.0 1, not by norm 20000"):
        model.open_kv_context(256)


@pytest.mark.parametrize(
    ("architecture", "options", "wanted"),
    [
        ("llama", RopeOptions(scaling="yarn", freq_scale=0.25), 1 + 0.1 * math.log(4)),
        ("phi3", RopeOptions(), 1.25),
        ("phi3", RopeOptions(scaling="yarn", freq_scale=0.5), 1.25 * (1 + 0.1 * math.log(2))),
    ],
)
def test_the_magnitude_is_what_keys_are_multiplied_by(
    architecture: str, options: RopeOptions, wanted: float, tmp_path: Path
) -> None:
    """Keys of the first layer at position 0 are not turned: their size against one with magnitude 1."""
    extra = LONG | SHORT if architecture == "phi3" else {}
    plain: dict[str, Key] = {"rope.scaling.attn_factor": 1.0, "rope.scaling.type": "none"}
    sizes, magnitudes = [], []
    for rope, keys in ((options, {}), (RopeOptions(), plain)):
        path = write_architecture(tmp_path / "m.gguf", architecture, keys=keys, extra=extra)
        magnitudes.append(table_of(path, rope).magnitude)
        with open_model(path, EngineOptions(rope=rope, force=True)) as model:
            context = model.open_kv_context(600)
            state = prefill(context, (), document(model, 20), PrefillPolicy("exact"))[0].state
            sizes.append(np.linalg.norm(state.keys(0)[0].astype(np.float64)))
    assert magnitudes == pytest.approx([wanted, 1.0])
    assert sizes[0] / sizes[1] == pytest.approx(wanted, rel=2e-3)


def test_short_and_long_factors_are_chosen_by_the_context_and_stored_kv_has_the_long_ones(
    tmp_path: Path,
) -> None:
    path = write_architecture(tmp_path / "m.gguf", "phi3", extra=LONG | SHORT)
    base = 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD)
    assert table_of(path, n_ctx=512).frequencies == pytest.approx(base / FACTORS[::-1], rel=1e-6)
    assert table_of(path, n_ctx=768).frequencies == pytest.approx(base / FACTORS, rel=1e-6)
    with open_model(path) as model:
        assert model.open_kv_context(100).n_ctx == 513
        assert model.kv_space(()).rope == table_of(path, n_ctx=768).line
    short_only = write_architecture(tmp_path / "s.gguf", "phi3", extra=LONG | SHORT, n_ctx_train=512)
    with open_model(short_only) as model:  # trained for no more than that
        assert model.open_kv_context(100).n_ctx == 100
        assert model.kv_space(()).rope == table_of(short_only, n_ctx=256).line


def test_the_line_tells_every_setting_apart(tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", "llama")
    lines = [
        table_of(path, options).line
        for options in (
            RopeOptions(),
            RopeOptions(freq_base=1e6),
            RopeOptions(scaling="linear", freq_scale=0.5),
            RopeOptions(scaling="yarn", freq_scale=0.5),
            RopeOptions(scaling="yarn", freq_scale=0.5, yarn_orig_ctx=1000),
        )
    ]
    factors = write_architecture(tmp_path / "f.gguf", "llama", extra={"rope_freqs.weight": FACTORS})
    other = write_architecture(tmp_path / "o.gguf", "llama", extra={"rope_freqs.weight": FACTORS + 1})
    lines += [table_of(factors).line, table_of(other).line]
    assert len(set(lines)) == len(lines)
    assert lines[0] == "norm 16/16, base 10000, scale 1"
    assert "\n" not in "".join(lines)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_factors_that_cannot_be_are_refused(value: float, tmp_path: Path) -> None:
    broken = FACTORS.copy()
    broken[3] = value
    path = write_architecture(tmp_path / "m.gguf", "llama", extra={"rope_freqs.weight": broken})
    with pytest.raises(ModelError, match="cannot be factors"):
        table_of(path)


def test_factors_of_another_length_and_odd_dimensions_are_refused(tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", "llama", extra={"rope_freqs.weight": FACTORS[:5]})
    with pytest.raises(ModelError, match="rope_freqs"):
        table_of(path)
    path = write_architecture(tmp_path / "n.gguf", "qwen3", keys={"rope.dimension_count": 24})
    with pytest.raises(ModelError, match="24 rotary dimensions in heads of 16"):
        table_of(path)
