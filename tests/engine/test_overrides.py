"""Replaced metadata: what is refused before loading, what llama.cpp then has, and what had no effect."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.tiny_architectures import write_architecture
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.engine.gguf import fingerprint
from localctx.engine.gguf import open_model as open_header
from localctx.engine.llama import open_model
from localctx.engine.options import EngineOptions
from localctx.engine.overrides import overridden, parse_overrides
from localctx.errors import UsageError


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["llama.rope.freq_base=int:1000000"], "llama.rope.freq_base is of type float, not int"),
        (["llama.rope.freq_base=float:1e"], "'1e' is no float"),
        (["llama.rope.freq_base=float:nan"], "'nan' is no float"),
        (["llama.rope.freq_base=float:0.5"], "0.5 is out of range"),
        (["llama.rope.freq_base=float:1e300"], "is out of range"),
        (["llama.attention.layer_norm_rms_epsilon=float:-1"], "-1.0 is out of range"),
        (["tokenizer.ggml.add_bos_token=bool:maybe"], "'maybe' is no bool"),
        (["llama.context_length=int:4096.0"], "'4096.0' is no int"),
        (["llama.context_length=int:0"], "0 is out of range"),
        (["llama.context_length=int:4294967296"], "is out of range"),
        (["tokenizer.ggml.eos_token_id=int:100000"], "100000 is out of range"),
        (["tokenizer.ggml.eos_token_id=int:-1"], "-1 is out of range"),
        (["k" * 129 + "=int:1"], "a key of 129 bytes"),
        (["general.name=str:" + "é" * 64], "a text of 128 bytes"),
        (["general.name=str:a", "general.name=str:b"], "general.name is given twice"),
        (["llama.rope.freq_bse=float:1.5"], "did you mean 'llama.rope.freq_base'"),
        (["llama.rope.freq_base=flot:1.5"], "unknown type 'flot'; did you mean 'float'"),
        (["tokenizer.ggml.tokens=str:x"], "tokenizer.ggml.tokens is a list"),
        (["llama.block_count=int:1"], "cannot be replaced"),
        (["general.architecture=str:qwen2"], "cannot be replaced"),
        (["llama.rope.scaling.type=str:yarm"], "'yarm' is no scaling"),
        ([""], "is not understood"),
        (["llama.rope.freq_base"], "is not understood"),
        (["=int:1"], "is not understood"),
        (["general.name=str:a\0b"], "is not understood"),
    ],
)
def test_what_cannot_be_is_one_line_before_loading(
    texts: list[str], said: str, tiny_model_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        open_model(tiny_model_path, EngineOptions(overrides=tuple(texts)))
    line = f"{caught.value.message} ({caught.value.hint})"
    assert said in line
    assert "\n" not in line
    assert len(line) < 300


def test_overrides_are_in_force_and_make_another_model(tiny_model_path: Path) -> None:
    texts = (
        "llama.rope.freq_base=float:123456",
        "llama.context_length=int:512",
        "general.name=str:mine, all",
    )
    with (
        open_model(tiny_model_path, EngineOptions(overrides=texts)) as model,
        open_model(tiny_model_path) as as_is,
    ):
        context = model.open_context(512)
        assert context.rope.freq_base == pytest.approx(123456.0)
        assert (model.info.name, model.info.n_ctx_train) == ("mine, all", 512)
        assert model.info.fingerprint != as_is.info.fingerprint
        assert "base 123456" in model.kv_space(()).rope
        with pytest.raises(UsageError, match="512 tokens"):
            model.open_context(1024)
    header = open_header(tiny_model_path)
    again = overridden(header, parse_overrides(texts[::-1]))
    assert fingerprint(again) == fingerprint(overridden(header, parse_overrides(texts)))


def test_optional_keys_can_be_added_and_bools_have_any_case(tiny_model_path: Path) -> None:
    texts = ("llama.rope.scaling.type=str:yarn", "llama.rope.scaling.factor=float:4")
    with open_model(tiny_model_path, EngineOptions(overrides=texts)) as model:
        context = model.open_context(300)
        assert (context.rope.scaling, context.rope.freq_scale) == ("yarn", 0.25)
    for value, has_bos in (("bool:True", True), ("bool:FALSE", False)):
        options = EngineOptions(overrides=(f"tokenizer.ggml.add_bos_token={value}",))
        with open_model(tiny_model_path, options) as model:
            vocab = model.vocab
            assert bool(vocab._lib.llama_vocab_get_add_bos(vocab._handle)) is has_bos


def test_the_first_space_of_sentencepiece_can_be_replaced(tiny_spm_path: Path) -> None:
    with open_model(tiny_spm_path) as model:
        assert model.vocab.adds_space
    options = EngineOptions(overrides=("tokenizer.ggml.add_space_prefix=bool:false",))
    with open_model(tiny_spm_path, options) as model:
        assert not model.vocab.adds_space
        model.open_context(256)  # localctx reads this key itself


def test_an_override_without_effect_is_an_error(tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", "mamba")
    options = EngineOptions(overrides=("mamba.final_logit_softcapping=float:30",))
    with open_model(path, options) as model:
        with pytest.raises(UsageError, match="final_logit_softcapping had no effect"):
            model.open_context(256)
        assert model._weights is None


@settings(deadline=None, max_examples=60)
@given(
    st.text(max_size=150), st.sampled_from(["int", "float", "bool", "str", "", "INT"]), st.text(max_size=150)
)
def test_any_text_is_an_override_or_one_line(key: str, kind: str, value: str) -> None:
    try:
        (parsed,) = parse_overrides([f"{key}={kind}:{value}"])
    except UsageError as error:
        assert "\n" not in error.message + error.hint
    else:
        assert len(parsed.key.encode("utf-8", "surrogateescape")) <= 127
