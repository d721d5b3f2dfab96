"""Models that other tools have downloaded: found by name, checked by their first bytes, never changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from localctx.errors import LocalctxError, ModelError, UsageError
from localctx.registry import list_models, resolve
from localctx.registry.elsewhere import Places, find_elsewhere

DATA = b"GGUF" + bytes(100)
REGISTRY = "registry.ollama.ai"
MODEL_LAYER = "application/vnd.ollama.image.model"
TWO_LAYERS = [{"mediaType": MODEL_LAYER, "digest": f"sha256:{'0' * 64}"}] * 2


def put(path: Path, data: bytes = DATA) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def ollama(root: Path, name: str, data: bytes = DATA, **other: object) -> Path:
    """A model as Ollama keeps it: HOST/NAMESPACE/NAME/TAG."""
    digest = hashlib.sha256(data).hexdigest()
    layer = {
        "mediaType": "application/vnd.ollama.image.model",
        "digest": f"sha256:{digest}",
        "size": len(data),
    }
    template = {
        "mediaType": "application/vnd.ollama.image.template",
        "digest": f"sha256:{'a' * 64}",
        "size": 1,
    }
    manifest = {"schemaVersion": 2, "layers": [template, layer], **other}
    put(root / "manifests" / name, json.dumps(manifest).encode())
    return put(root / "blobs" / f"sha256-{digest}", data)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "hub", (tmp_path / "ollama",), (tmp_path / "studio",), (tmp_path / "llama",))


def names(places: Places) -> dict[str, tuple[Path, str, str | None]]:
    return {found.name: (found.path, found.where, found.problem) for found in find_elsewhere(places)}


def test_each_tools_models_have_names(places: Places, tmp_path: Path) -> None:
    small = ollama(places.ollama[0], f"{REGISTRY}/library/llama3.2/1b")
    mine = ollama(places.ollama[0], f"{REGISTRY}/joe/mine/latest", DATA + b"1")
    hub = ollama(places.ollama[0], "hf.co/bartowski/Qwen-GGUF/Q4_K_M", DATA + b"2")
    studio = put(places.lm_studio[0] / "lmstudio-community" / "Phi-4-GGUF" / "phi-4-Q4_K_M.gguf")
    put(places.lm_studio[0] / "lmstudio-community" / "Phi-4-GGUF" / "mmproj-phi-4.gguf")
    llama = put(places.llama_cpp[0] / "ggml-org_gemma.gguf")
    root = places.hub / "models--Qwen--Qwen3-0.6B-GGUF"
    link = root / "snapshots" / "abc" / "Qwen3-0.6B-Q8_0.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(put(root / "blobs" / "0123"))
    assert names(places) == {
        "hf:Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf": (link, "Hugging Face cache", None),
        "ollama:hf.co/bartowski/Qwen-GGUF:Q4_K_M": (hub, "Ollama", None),
        "ollama:joe/mine:latest": (mine, "Ollama", None),
        "ollama:llama3.2:1b": (small, "Ollama", None),
        "lmstudio:lmstudio-community/Phi-4-GGUF/phi-4-Q4_K_M.gguf": (studio, "LM Studio", None),
        "llama.cpp:ggml-org_gemma.gguf": (llama, "llama.cpp's cache", None),
    }


def test_what_is_no_model_is_said_so(places: Places) -> None:
    ollama(places.ollama[0], f"{REGISTRY}/library/pickled/latest", b"PK\x03\x04archive/data.pkl")
    gone = ollama(places.ollama[0], f"{REGISTRY}/library/gone/latest", DATA + b"x")
    gone.unlink()
    put(places.llama_cpp[0] / "page.gguf", b"<!doctype html>")
    put(places.llama_cpp[0] / "m-00002-of-00002.gguf")
    found = {name: problem or "" for name, (_, _, problem) in names(places).items()}
    assert "PyTorch" in found["ollama:pickled:latest"]
    assert "cannot be read" in found["ollama:gone:latest"]
    assert "an HTML or XML page" in found["llama.cpp:page.gguf"]
    assert "m-00001-of-00002.gguf" in found["llama.cpp:m-00002-of-00002.gguf"]


@pytest.mark.parametrize(
    "manifest",
    [
        b"", b"[]", b"{}", b'{"layers": 1}', b'{"layers": [1]}', b'{"layers": []}', b"[" * 100_000, b"\xff",
        b'{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../x"}]}',
        b'{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": 7}]}',
        json.dumps({"layers": TWO_LAYERS}).encode(),
        b" " * 2_000_000,
    ],
)  # fmt: skip
def test_manifests_are_not_believed(places: Places, manifest: bytes) -> None:
    put(places.ollama[0] / "manifests" / REGISTRY / "library" / "evil" / "latest", manifest)
    put(places.ollama[0] / "manifests" / "stray", manifest)
    assert names(places) == {}


def test_the_names_are_what_model_takes(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "HOME": tmp_path / "home", "OLLAMA_MODELS": places.ollama[0], "LLAMA_CACHE": places.llama_cpp[0],
        "HF_HUB_CACHE": places.hub,
    }.items():  # fmt: skip
        monkeypatch.setenv(name, str(value))
    blob = ollama(places.ollama[0], f"{REGISTRY}/library/llama3.2/latest")
    llama = put(places.llama_cpp[0] / "x.gguf")
    studio = put(tmp_path / "home" / ".lmstudio" / "models" / "a" / "b" / "c.gguf")
    moved = put(tmp_path / "moved" / "models" / "a" / "b" / "d.gguf")
    assert resolve("ollama:llama3.2").path == resolve("ollama:llama3.2:latest").path == blob
    assert resolve("ollama:llama3.2").name == "llama3.2:latest"
    assert resolve("llama.cpp:x.gguf").path == llama
    assert resolve("lmstudio:a/b/c.gguf").path == studio
    (tmp_path / "home" / ".lmstudio-home-pointer").write_text(str(tmp_path / "moved") + "\n")
    assert resolve("lmstudio:a/b/d.gguf").path == moved
    with pytest.raises(UsageError, match=r"did you mean 'ollama:llama3\.2:latest'"):
        resolve("ollama:llama3.2:7b")
    blob.unlink()
    with pytest.raises(ModelError, match="Ollama has no file"):
        resolve("ollama:llama3.2")
    for spec in ("ollama:../../etc/passwd", "lmstudio:../x.gguf", "llama.cpp:/etc/passwd"):
        with pytest.raises(LocalctxError):
            resolve(spec)


def test_the_list_says_whose_each_file_is(places: Places, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    put(folder / "smollm2-135m.gguf")
    put(folder / "mine.gguf", b"version https://git-lfs.github.com/spec/v1\n")
    shards = [put(folder / "hf" / "a" / "b" / f"Q8/m-0000{n}-of-00002.gguf") for n in (1, 2)]
    given = put(tmp_path / "elsewhere" / "x.gguf")
    ollama(places.ollama[0], f"{REGISTRY}/library/llama3.2/1b")
    root = places.hub / "models--Qwen--Qwen3-8B-GGUF" / "snapshots" / "abc"
    cached = put(root / "Qwen3-8B-Q4_K_M.gguf")
    rows = {row.name: row for row in list_models(folder, places=places, given=given.parent)}
    where = {name: row.where for name, row in rows.items() if row.installed}
    assert where == {
        "smollm2-135m": "models folder", "qwen3-8b": "Hugging Face cache", "mine": "models folder",
        "hf:a/b:Q8/m-00001-of-00002.gguf": "models folder", str(given): "--model",
        "ollama:llama3.2:1b": "Ollama",
    }  # fmt: skip
    assert rows["qwen3-8b"].path == cached
    assert "Git LFS pointer" in (rows["mine"].problem or "")
    sharded = rows["hf:a/b:Q8/m-00001-of-00002.gguf"]
    assert (sharded.path, sharded.size_bytes) == (shards[0], 2 * len(DATA))
    assert [row.path for row in list_models(folder, places=places, given=given)].count(given) == 1


def test_looking_changes_nothing(places: Places, tmp_path: Path) -> None:
    ollama(places.ollama[0], f"{REGISTRY}/library/llama3.2/1b")
    put(places.lm_studio[0] / "a" / "b" / "c.gguf")
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
    list_models(tmp_path / "models", places=places)
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before
