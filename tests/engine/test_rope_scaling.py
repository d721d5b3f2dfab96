"""RoPE options: what llama.cpp is told, how far it reaches, what is refused, what is ignored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine.kv_tools import NOISE, differs, document, logits_after, parts_at, prefill
from engine.tiny_architectures import HEAD, Key, write_architecture

from localctx._native import AbortFlag
from localctx.engine import llama, new_context
from localctx.engine.gguf import GGUFHeader
from localctx.engine.gguf import open_model as open_header
from localctx.engine.llama import open_model
from localctx.engine.options import EngineOptions, RopeOptions
from localctx.engine.rope_scaling import PassedRope, check_rope, longest_context, passed_rope, reach
from localctx.errors import NotComposable, UsageError
from localctx.kv import PrefillPolicy

TRAINED, BASE = 512, 10000.0
FACTORS = {"rope_freqs.weight": np.linspace(1, 9, HEAD // 2).astype(np.float32)}
OF_FILE: dict[str, Key] = {
    "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 128,
}  # fmt: skip
SCALED = {"linear", "ntk", "dynamic-ntk", "yarn"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama trained for 512 tokens."""
    return write_architecture(tmp_path_factory.mktemp("m") / "m.gguf", "llama", n_ctx_train=TRAINED)


@pytest.fixture(scope="module")
def header(path: Path) -> GGUFHeader:
    return open_header(path)


def ntk_base(factor: float) -> float:
    return BASE * factor ** (HEAD / (HEAD - 2))


@pytest.mark.parametrize(
    ("asked", "n_ctx", "wanted"),
    [
        (RopeOptions(), 4096, PassedRope()),
        (RopeOptions("linear"), 512, PassedRope()),
        (RopeOptions("linear"), 2048, PassedRope("linear", "linear", freq_scale=0.25)),
        (RopeOptions("linear", 3.0), 100, PassedRope("linear", "linear", freq_scale=1 / 3)),
        (RopeOptions("linear", freq_scale=0.3), 100, PassedRope("linear", "linear", freq_scale=0.3)),
        (RopeOptions("yarn"), 1024, PassedRope("yarn", "yarn", freq_scale=0.5)),
        (RopeOptions("yarn", yarn_orig_ctx=256), 1024,
         PassedRope("yarn", "yarn", freq_scale=0.25, yarn_orig_ctx=256)),
        (RopeOptions("yarn", 2.0, yarn_beta_fast=16.0), 1024,
         PassedRope("yarn", "yarn", freq_scale=0.5, yarn_beta_fast=16.0)),
        (RopeOptions("ntk", 4.0), 100, PassedRope("ntk", freq_base=ntk_base(4))),
        (RopeOptions("ntk"), 1024, PassedRope("ntk", freq_base=ntk_base(2))),
        (RopeOptions("dynamic-ntk"), 2048, PassedRope("dynamic-ntk", freq_base=ntk_base(4))),
        (RopeOptions("dynamic-ntk", 2.0), 1024, PassedRope("dynamic-ntk", freq_base=ntk_base(3))),
        (RopeOptions("dynamic-ntk", 2.0), 512, PassedRope()),
        (RopeOptions(freq_base=5e5), 100, PassedRope("base", freq_base=5e5)),
        (RopeOptions(freq_base=BASE), 100, PassedRope()),
        (RopeOptions(scale=2.0), 100, PassedRope("linear", "linear", freq_scale=0.5)),
        (RopeOptions("none"), 100, PassedRope()),
    ],
)  # fmt: skip
def test_what_llama_cpp_is_told(
    asked: RopeOptions, n_ctx: int, wanted: PassedRope, header: GGUFHeader
) -> None:
    check_rope(header, asked, force=False)
    found = passed_rope(header, asked, n_ctx)
    assert found.freq_base == (wanted.freq_base and pytest.approx(wanted.freq_base))
    assert [found.method, found.line.split()[::2]] == [wanted.method, wanted.line.split()[::2]]
    for name in ("scaling", "freq_scale", "yarn_orig_ctx", "yarn_beta_fast"):
        assert getattr(found, name) == getattr(wanted, name)


def test_the_best_measured_method_is_auto(header: GGUFHeader) -> None:
    assert passed_rope(header, RopeOptions("auto"), 2048).method in SCALED


@pytest.mark.parametrize(
    ("asked", "longest", "by_itself"),
    [
        (RopeOptions(), 512, 512),
        (RopeOptions("none"), 512, 512),
        (RopeOptions("yarn"), None, 2048),
        (RopeOptions("dynamic-ntk"), None, 2048),
        (RopeOptions("yarn", 3.0), 1536, 1536),
        (RopeOptions("ntk", 3.0), 1536, 1536),
        (RopeOptions(scale=1.1), 563, 563),
        (RopeOptions(freq_base=ntk_base(4)), 2048, 2048),
        (RopeOptions(freq_base=5000.0), 512, 512),
    ],
)
def test_how_far_it_reaches(
    asked: RopeOptions, longest: int | None, by_itself: int, header: GGUFHeader
) -> None:
    assert reach(header, asked) == (longest and pytest.approx(longest, abs=1))
    assert longest_context(header, asked) == pytest.approx(by_itself, abs=1)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (RopeOptions("ntk", freq_base=5e5), "--rope-scaling ntk and --rope-freq-base would scale twice"),
        (RopeOptions("yarn", 4.0, freq_base=5e5), "--rope-scale and --rope-freq-base would scale twice"),
        (RopeOptions("yarn", freq_base=5e5), "would scale twice"),
        (RopeOptions(scale=2.0, freq_base=5e5), "would scale twice"),
        (RopeOptions(scale=2.0, freq_scale=0.5), "would scale twice"),
        (RopeOptions("ntk", freq_scale=0.5), "would scale twice"),
        (RopeOptions("none", 2.0), "contradict each other"),
        (RopeOptions("linear", yarn_orig_ctx=100), "--yarn-orig-ctx is for YaRN"),
        (RopeOptions(yarn_beta_fast=3.0), "--yarn-beta-fast is for YaRN"),
        (RopeOptions("yarn", yarn_attn_factor=1.2), "--yarn-attn-factor has no effect"),
        (RopeOptions("yarm"), "RoPE scaling 'yarm' is not known"),
        (RopeOptions("yarn", 0.5), "--rope-scale 0.5 is out of range"),
        (RopeOptions("yarn", float("nan")), "--rope-scale nan is out of range"),
        (RopeOptions(freq_base=0.0), "--rope-freq-base 0 is out of range"),
        (RopeOptions("yarn", yarn_ext_factor=-1.0), "--yarn-ext-factor -1 is out of range"),
    ],
)  # fmt: skip
def test_what_is_refused_is_one_line(asked: RopeOptions, said: str, path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_model(path, EngineOptions(rope=asked, force=True))
    assert said in caught.value.message
    assert "\n" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("architecture", "keys", "extra", "brings"),
    [
        ("llama", OF_FILE, {}, "yarn scaling × 4"),
        ("llama", {"rope.scale_linear": 2.0}, {}, "linear scaling × 2"),
        ("llama", {}, FACTORS, "factors of its own (rope_freqs)"),
        ("phi3", {}, {}, "short and long factors"),
    ],
)
def test_a_scaled_file_is_scaled_again_only_by_force(
    architecture: str, keys: dict[str, Key], extra: dict[str, np.ndarray], brings: str, tmp_path: Path
) -> None:
    path = write_architecture(tmp_path / "m.gguf", architecture, keys=keys, extra=extra)
    for asked in (RopeOptions("yarn", 8.0), RopeOptions("dynamic-ntk"), RopeOptions(freq_base=5e5)):
        with pytest.raises(UsageError, match="scaling it again") as caught:
            open_model(path, EngineOptions(rope=asked))
        assert brings in caught.value.message
        open_model(path, EngineOptions(rope=asked, force=True)).close()
    for harmless in (RopeOptions("none"), RopeOptions(freq_base=BASE), RopeOptions()):
        open_model(path, EngineOptions(rope=harmless)).close()


def test_the_files_own_scaling_can_be_turned_off_or_replaced(tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", "llama", keys=OF_FILE, n_ctx_train=512)
    wanted = {
        RopeOptions(): (512, 0.25, "yarn"),
        RopeOptions("none"): (128, 1.0, "none"),
        RopeOptions("yarn", 8.0): (1024, 0.125, "yarn"),
    }
    for asked, (longest, scale, method) in wanted.items():
        assert reach(open_header(path), asked) == longest
        with open_model(path, EngineOptions(rope=asked, force=True)) as model:
            rope = model.open_context(100).rope
            assert (rope.freq_scale, rope.scaling) == (scale, method)


# --- contexts ---------------------------------------------------------------------------------------------


def test_nothing_is_passed_unless_asked(path: Path) -> None:
    with open_model(path) as model:
        sizes = new_context.ContextSizes(256)
        parameters = new_context._parameters(llama.lib, model, sizes, AbortFlag(), None)
        plain = llama.lib.llama_context_default_params()
        for name in ("rope_scaling_type", *new_context._ROPE_PARAMETERS.values()):
            assert getattr(parameters, name) == getattr(plain, name), name


def test_four_times_the_trained_length_differs_by_method_and_says_what_is_in_force(path: Path) -> None:
    rows, told = {}, {}
    for method in (None, *sorted(SCALED)):
        with open_model(path, EngineOptions(rope=RopeOptions(method), force=True)) as model:
            context = model.open_context(4 * TRAINED, n_outputs=64)
            last: list[bytes] = []
            context.score(document(model, 900), lambda _, logits, last=last: last.append(logits.tobytes()))
            rows[method], told[method] = last[-1], context.rope
            assert model.info.rope == context.rope
            assert model.open_context(200).rope.freq_scale == 1.0  # a short one needs nothing
            assert model.info.rope.scaling == "none"
    assert {method: rope.scaling for method, rope in told.items() if method} == {m: m for m in SCALED}
    assert [told[name].freq_scale for name in ("linear", "yarn", "ntk", None)] == [0.25, 0.25, 1.0, 1.0]
    assert told["dynamic-ntk"].freq_base == told["ntk"].freq_base == pytest.approx(ntk_base(4), rel=1e-5)
    assert len(set(rows.values())) == 4
    assert rows["ntk"] == rows["dynamic-ntk"]  # which ntk is without a factor


def test_beyond_what_is_provided_for_is_refused(path: Path) -> None:
    for asked, said in (
        (RopeOptions(), "--ctx 2048 is more than tiny was trained for (512 tokens)"),
        (RopeOptions("yarn", 2.0), "--ctx 2048 is more than tiny reaches (1,024 tokens"),
        (RopeOptions(freq_base=20000.0), "is more than tiny reaches (9"),
    ):
        with open_model(path, EngineOptions(rope=asked)) as model:
            for refused in (model.open_context, model.usable_n_ctx):
                with pytest.raises(UsageError) as caught:
                    refused(2048)
                assert said in caught.value.message
    with open_model(path, EngineOptions(rope=RopeOptions("yarn"))) as model:
        assert model.usable_n_ctx() == 4 * TRAINED
        assert model.usable_n_ctx(2048) == 2048


# --- stored KV --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        RopeOptions("linear", 4.0),
        RopeOptions("ntk", 4.0),
        RopeOptions("yarn", 4.0),
        RopeOptions("yarn", 8.0, yarn_orig_ctx=256, yarn_beta_fast=8.0, yarn_beta_slow=0.5),
        RopeOptions("yarn", 4.0, yarn_ext_factor=0.0, yarn_attn_factor=1.3),
        RopeOptions("yarn", 4.0, yarn_ext_factor=0.5),
        RopeOptions(freq_base=ntk_base(4)),
    ],
)
def test_kv_of_contexts_with_one_factor_is_stored_right(asked: RopeOptions, path: Path) -> None:
    with open_model(path, EngineOptions(rope=asked, n_batch=128)) as model:
        context, prefix = model.open_kv_context(1300, n_outputs=8), model.tokenize("Read this: ")
        tokens, question = document(model, 1100), model.tokenize(" What did the clerk write?")
        chunks = prefill(context, prefix, tokens, PrefillPolicy("window", 4096))
        context.place([*prefix, *tokens], parts_at(chunks, len(prefix)))
        got = logits_after(context, question)
        context.place([*prefix, *tokens], ())
        assert differs(got, logits_after(context, question)) < NOISE
        assert model.kv_space(()).rope != model_line(path, RopeOptions())


def model_line(path: Path, asked: RopeOptions) -> str:
    with open_model(path, EngineOptions(rope=asked)) as model:
        return model.kv_space(()).rope


@pytest.mark.parametrize("method", sorted(SCALED))
def test_kv_of_a_context_with_a_factor_of_its_own_is_refused_by_name(method: str, path: Path) -> None:
    asked = RopeOptions(method)
    assert model_line(path, asked) == model_line(path, RopeOptions())  # inside training they share the store
    with open_model(path, EngineOptions(rope=asked)) as model:
        model.open_kv_context(TRAINED).close()
        with pytest.raises(NotComposable, match=rf"a factor of its own \({method}\)") as caught:
            model.open_kv_context(TRAINED + 1)
        assert "--rope-scale" in caught.value.hint


# --- what is ignored --------------------------------------------------------------------------------------


def test_a_method_that_changes_nothing_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = new_context._ROPE_PARAMETERS
    cases = {
        RopeOptions("ntk", 4.0): ["freq_base"],
        RopeOptions("linear", 4.0): ["freq_scale"],
        RopeOptions("yarn", 4.0): ["yarn_beta_fast", "yarn_beta_slow"],  # scaled, but without its ramp
    }
    for asked, ignored in cases.items():
        left = {name: value for name, value in told.items() if name not in ignored}
        monkeypatch.setattr(new_context, "_ROPE_PARAMETERS", left)
        with open_model(path, EngineOptions(rope=asked)) as model:
            with pytest.raises(UsageError, match=f"ignores --rope-scaling {asked.scaling}: .*llama"):
                model.open_context(256)
            with pytest.raises(UsageError, match="ignores"):
                model.open_kv_context(256)
        monkeypatch.setattr(new_context, "_ROPE_PARAMETERS", told)
        with open_model(path, EngineOptions(rope=asked)) as model:
            model.open_context(256)


def test_an_architecture_without_rotary_positions_is_refused(tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", "mamba")
    with pytest.raises(UsageError, match="mamba has no rotary positions"):
        open_model(path, EngineOptions(rope=RopeOptions("yarn", 2.0)))


@pytest.mark.parametrize(
    "architecture", ["llama", "qwen3", "smollm3", "gemma3", "lfm2", "deepseek2", "qwen2vl"]
)
def test_every_rotary_architecture_takes_every_method(architecture: str, tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", architecture, n_ctx_train=256)
    for method in sorted(SCALED):
        with open_model(path, EngineOptions(rope=RopeOptions(method))) as model:
            assert model.open_context(512).rope.scaling == method
