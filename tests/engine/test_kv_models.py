"""Which models' KV can be cut: exact, or refused by name and served as before, with whole states kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine.conftest import ask, collect, text_of
from engine.kv_tools import NOISE, differs, document, logits_after, parts_at, prefill
from engine.tiny_architectures import ARCHITECTURES, write_architecture

from localctx.engine import composable
from localctx.engine.echo import EchoModel
from localctx.engine.llama import open_model
from localctx.engine.options import EngineOptions
from localctx.errors import ModelError, NotComposable, UsageError
from localctx.kv import PrefillPolicy
from localctx.values import Prompt, Request, Sampling

FACTORS = np.linspace(1, 9, 8).astype(np.float32)
EXTRA = {
    "llama with rope factors": {"rope_freqs.weight": FACTORS},
    "phi3": {"rope_factors_long.weight": FACTORS, "rope_factors_short.weight": FACTORS[::-1].copy()},
}
REFUSED = {
    "gemma3": "sliding-window layers",
    "mamba": "is recurrent",
    "lfm2": "recurrent layers",
    "deepseek2": "MLA",
    "qwen2vl": "M-RoPE",
    "smollm3": "layers without rotary positions",
}


@pytest.mark.parametrize("name", ["llama", "llama with rope factors", "qwen3", "phi3"])
def test_stored_kv_answers_as_plain_decoding_does(name: str, tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", name.split(maxsplit=1)[0], extra=EXTRA.get(name))
    with open_model(path, EngineOptions(n_batch=128)) as model:
        context, prefix = model.open_kv_context(600, n_outputs=8), model.tokenize("Read this: ")
        tokens, question = document(model, 500), model.tokenize(" What did the clerk write?")
        chunks = prefill(context, prefix, tokens, PrefillPolicy("window", 4096))
        assert len(chunks) == 4
        assert context.place([*prefix, *tokens], parts_at(chunks, len(prefix))) == len(prefix)
        got = logits_after(context, question)
        context.place([*prefix, *tokens], ())
        assert differs(got, logits_after(context, question)) < NOISE


def test_every_architecture_is_exact_or_refused() -> None:
    assert set(ARCHITECTURES) == {"llama", "qwen3", "phi3", *REFUSED}


@pytest.mark.parametrize("architecture", REFUSED)
def test_what_cannot_be_cut_is_refused_by_name_and_served_as_before(
    architecture: str, tmp_path: Path
) -> None:
    path = write_architecture(tmp_path / "m.gguf", architecture)
    with open_model(path) as model:
        reason = model.kv_refusal()
        assert reason is not None
        assert REFUSED[architecture] in reason
        for refused in (lambda: model.open_kv_context(256), lambda: model.kv_space(())):
            with pytest.raises(NotComposable) as caught:
                refused()
            assert caught.value.message == f"tiny {reason}"
        assert model._weights is None  # nothing was loaded to find that out
        pieces = collect(model.open_context(256), [ask(model, "The harbour", max_tokens=4)])[0]
        assert pieces[-1].finish_reason in ("length", "stop")


@pytest.mark.parametrize("architecture", [*REFUSED, "llama"])
def test_a_whole_state_answers_the_next_question_elsewhere(architecture: str, tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", architecture)
    with open_model(path) as model:
        tokens, question = document(model, 300), model.tokenize(" What did the clerk write?")
        request = Request(Prompt((*tokens, *question)), Sampling(max_tokens=12))
        fresh = collect(model.open_context(512), [request])[0]
        context = model.open_context(512)
        blob = context.snapshot(tokens)
        assert blob is not None
        saved = bytes(blob)
        assert collect(context, [request])[0][-1].n_evaluated == len(question)
    with open_model(path) as model:
        context = model.open_context(512)
        for _ in range(2):
            context.restore_snapshot(tokens, np.frombuffer(saved, np.uint8))
            restored = collect(context, [request])[0]
            assert text_of(restored) == text_of(fresh)
            assert restored[-1].n_evaluated == len(question)
        other = Request(Prompt((*tokens[:-1], *question)), Sampling(max_tokens=4))
        context.restore_snapshot(tokens, np.frombuffer(saved, np.uint8))
        wanted = collect(model.open_context(512), [other])[0]
        assert text_of(collect(context, [other])[0]) == text_of(wanted)  # not the same beginning


def test_snapshots_stop_and_refuse_what_is_not_theirs(tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", "mamba")
    with open_model(path, EngineOptions(n_batch=64)) as model:
        context, tokens = model.open_context(512), document(model, 300)
        assert context.snapshot(tokens, lambda done, total: context.cancel()) is None
        request = Request(Prompt(tuple(tokens[:70])), Sampling(max_tokens=1))
        assert collect(context, [request])[0][-1].n_evaluated == 70
        for blob in (b"", b"\0" * 100):
            with pytest.raises(ModelError, match="refuses the KV"):
                context.restore_snapshot(tokens, np.frombuffer(blob, np.uint8))
            assert collect(context, [request])[0][-1].n_evaluated == 70
        with pytest.raises(UsageError, match="do not fit"):
            context.snapshot(document(model, 512))


def test_the_trial_finds_layers_that_do_not_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composable, "_PARTLY_TURNED", frozenset())
    path = write_architecture(tmp_path / "m.gguf", "smollm3")
    with open_model(path) as model:
        assert model.kv_refusal() is None
        with pytest.raises(NotComposable, match="layer 3's keys"):
            model.open_kv_context(256)
        assert not model._contexts  # it was closed


def test_the_trial_finds_a_cache_it_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localctx.engine.model_kv.kv_refusal", lambda *_: None)
    path = write_architecture(tmp_path / "m.gguf", "gemma3")
    with (
        open_model(path) as model,
        pytest.raises(NotComposable, match=r"plain attention KV \(attention, window\)"),
    ):
        model.open_kv_context(256)


def test_the_trial_is_made_once_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_architecture(tmp_path / "m.gguf", "llama")
    with open_model(path) as model:
        model.open_kv_context(256).close()
        monkeypatch.setattr("localctx.engine.model_kv.try_moving", lambda *_: pytest.fail("tried again"))
        context = model.open_kv_context(512)
        assert len(prefill(context, (), document(model, 200), PrefillPolicy())) == 1


def test_quantised_caches_are_refused(tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", "llama")
    with open_model(path, EngineOptions(type_k="bf16")) as model:
        assert "bf16/f16: only f16" in str(model.kv_refusal())


def test_the_echo_engine_says_that_it_keeps_none() -> None:
    with EchoModel() as model:
        assert model.kv_refusal() == "keeps no KV"
        with pytest.raises(NotComposable, match="echo keeps no KV"):
            model.open_kv_context(256)
        with pytest.raises(NotComposable, match="echo keeps no KV"):
            model.kv_space((1,))
