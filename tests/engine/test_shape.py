"""Operations and bytes of a token are those of the tensors."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.tiny_architectures import write_architecture

from localctx.engine.gguf import open_model
from localctx.engine.shape import Shape, n_worth, shape_of


def test_a_plain_model(tmp_path: Path) -> None:
    header = open_model(write_architecture(tmp_path / "m.gguf", "llama"))
    layers = header.integer("llama.block_count")
    matrices = [t for t in header.tensors if len(t.shape) == 2 and t.name.startswith("blk.")]
    n_weights = sum(t.shape[0] * t.shape[1] for t in matrices)
    shape = shape_of(header)
    assert shape.prefill_flops == 2 * n_weights
    assert shape.decode_flops > shape.prefill_flops  # the output layer
    assert shape.attention_flops == 4 * 4 * 16 * layers
    assert shape.kv_bytes == 2 * 2 * 16 * 2 * layers
    assert n_weights * 2 <= shape.weight_bytes <= header.weights_bytes


def test_layers_with_a_window_do_not_pay_for_depth(tmp_path: Path) -> None:
    shape = shape_of(open_model(write_architecture(tmp_path / "m.gguf", "gemma3")))
    plain = shape_of(open_model(write_architecture(tmp_path / "q.gguf", "qwen3")))
    assert 0 <= shape.attention_flops / shape.prefill_flops < plain.attention_flops / plain.prefill_flops


@pytest.mark.parametrize("architecture", ["mamba", "lfm2"])
def test_recurrent_layers_attend_to_nothing(architecture: str, tmp_path: Path) -> None:
    shape = shape_of(open_model(write_architecture(tmp_path / "m.gguf", architecture)))
    assert shape.prefill_flops > 0
    assert shape.attention_flops == 0 or architecture == "lfm2"


def test_as_many_sequences_as_are_worth_it() -> None:
    small = Shape(2.12e8, 2.69e8, 69_120.0, 8.3e7, 23_040.0)  # SmolLM2-135M
    assert [n_worth(small, n_cells) for n_cells in (100, 400, 2000, 8000)] == [12, 8, 4, 4]
    large = Shape(1.4e10, 1.45e10, 524_288.0, 4e9, 131_072.0)
    assert n_worth(large, 400) == 16 and n_worth(large, 4000) == 4
    recurrent = Shape(2.1e8, 2.7e8, 0.0, 8e7, 0.0)
    assert n_worth(recurrent, 400) > 256
