"""Types of the KV cache against flash attention, the heads, the class of model, the devices, and a trial."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine.tiny_architectures import write_architecture
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf

from localctx.engine import llama, options_trial
from localctx.engine.devices import Device
from localctx.engine.llama import open_model
from localctx.engine.options import EngineOptions
from localctx.errors import ModelError, UsageError


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama with heads of whole blocks."""
    return write_tiny_gguf(tmp_path_factory.mktemp("m") / "w.gguf", bpe_vocabulary(), script={1: 2})


def refusal(path: Path, **options: object) -> str:
    with pytest.raises(UsageError) as caught:
        open_model(path, EngineOptions(**options))  # type: ignore[arg-type]  # as EngineOptions has them
    assert "\n" not in caught.value.message + caught.value.hint
    return f"{caught.value.message} ({caught.value.hint})"


def test_a_quantised_v_needs_flash_attention(wide: Path) -> None:
    line = refusal(wide, type_v="q8_0", flash_attn=False)
    assert line == "type_v=q8_0: a quantised V cache needs flash attention (--flash-attn on, or type_v=f16)"
    for fine in (EngineOptions(type_k="q8_0", flash_attn=False), EngineOptions(type_k="q8_0", type_v="q4_0")):
        with open_model(wide, fine) as model:
            model.open_context(256)


def test_blocks_must_divide_the_heads(tiny_model_path: Path, tmp_path: Path) -> None:
    assert "type_k=q4_0: blocks of 32 values do not divide this model's heads of 16" in refusal(
        tiny_model_path, type_k="q4_0"
    )
    assert "type_v=q5_1: blocks of 32" in refusal(tiny_model_path, type_v="q5_1")
    path = write_architecture(tmp_path / "m.gguf", "deepseek2")
    assert "has one type" in refusal(path, type_k="bf16")


def test_a_model_without_a_cache_has_no_types(tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", "mamba")
    assert "is recurrent and has no KV cache" in refusal(path, type_k="bf16")


def test_pairs_without_a_kernel_on_the_gpu_are_refused(wide: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama.lib, "llama_supports_gpu_offload", lambda: True)
    monkeypatch.setattr(llama, "find_devices", lambda: [Device("CUDA0", "a GPU", "gpu", 1 << 30, 1 << 30)])
    for pair in (("q8_0", "q4_0"), ("q5_1", "q5_1"), ("f16", "q8_0")):
        assert "no attention kernel for this pair" in refusal(wide, type_k=pair[0], type_v=pair[1])
    open_model(wide, EngineOptions(type_k="q8_0", type_v="q4_0", gpu_layers="0")).close()
    open_model(wide, EngineOptions(type_k="q8_0", type_v="q8_0")).close()
    open_model(wide, EngineOptions(type_k="q8_0", type_v="q4_0", force=True)).close()


def test_a_type_that_gives_no_numbers_is_found_on_one_token(
    wide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        options_trial.LlamaDecoder, "logits", lambda self, row: np.full(8, np.nan, np.float32)
    )
    with (
        open_model(wide, EngineOptions(type_k="q8_0")) as model,
        pytest.raises(ModelError, match="q8_0/f16 gives no numbers here"),
    ):
        model.open_context(256)
    with open_model(wide) as model:
        model.open_context(256)  # f16 is not tried


def test_kv_without_flash_attention_is_not_stored(tiny_model_path: Path) -> None:
    with open_model(tiny_model_path, EngineOptions(flash_attn=False)) as model:
        assert "without flash attention" in str(model.kv_refusal())
        model.open_context(256)
