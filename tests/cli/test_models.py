"""`localctx models` as typed: what is listed, shown, checked and removed."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine.tiny_architectures import write_architecture
from registry.fake_hub import FakeHub

Run = Callable[..., Any]
"""Call with the command's words."""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty models folder, and no other tool's."""
    for name in ("OLLAMA_MODELS", "LLAMA_CACHE", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "none" / name))
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("LOCALCTX_MODELS_DIR", str(folder))
    return folder


def test_pull_then_ls_show_verify_and_rm(
    localctx: Run, folder: Path, tmp_path: Path, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = tmp_path / "hub" / "someone" / "tiny-GGUF"
    repo.mkdir(parents=True)
    shutil.copy(tiny_model_path, repo / "tiny-Q4_K_M.gguf")
    spec, target = "hf:someone/tiny-GGUF", folder / "hf" / "someone" / "tiny-GGUF" / "tiny-Q4_K_M.gguf"
    with FakeHub(tmp_path / "hub") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        pulled = localctx("models", "pull", spec, "--json")
    assert (pulled.code, pulled.json["path"]) == (0, str(target))
    assert "fetching tiny-Q4_K_M.gguf" in pulled.err
    rows = {row["name"]: row for row in localctx("models", "ls", "--json").json["models"]}
    row = rows[f"{spec}:tiny-Q4_K_M.gguf"]
    assert (row["path"], row["where"], row["problem"]) == (str(target), "models folder", None)
    for name in (spec, row["name"], f"{spec}:Q4_K_M"):
        assert localctx("models", "path", name).out == f"{target}\n"
    assert localctx("models", "show", spec, "--json").json["file"]["architecture"] == "llama"
    assert localctx("models", "verify", spec).out.startswith(
        f"ok      {spec}: SHA-256 as someone/tiny-GGUF at "
    )
    data = bytearray(target.read_bytes())
    data[-1] ^= 1
    target.write_bytes(bytes(data))
    damaged = localctx("models", "verify")
    assert (damaged.code, damaged.err.count("\n")) == (1, 1)
    assert f"damaged {row['name']}: SHA-256 is not" in damaged.out
    as_json = localctx("models", "verify", "--json")
    assert (as_json.code, as_json.json["models"][0]["status"]) == (1, "damaged")
    unsure = localctx("models", "rm", spec)
    assert (unsure.code, "--yes" in unsure.err, target.exists()) == (2, True, True)
    removed = localctx("models", "rm", spec, "--yes", "--json").json["removed"]
    assert removed[0]["paths"][0] == str(target)
    assert list(folder.iterdir()) == []
    gone = localctx("models", "rm", spec, "--yes")
    assert (gone.code, "is not here" in gone.err) == (1, True)


class Terminal(io.TextIOWrapper):
    """A reader that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("said", "code", "stays"), [("n\n", 1, True), ("\n", 1, True), ("y\n", 0, False)])
def test_rm_asks_on_a_terminal(
    folder: Path, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int, stays: bool
) -> None:
    from localctx.cli.main import run

    shutil.copy(tiny_model_path, folder / "mine.gguf")
    output = Terminal(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(said.encode())))
    monkeypatch.setattr(sys, "stderr", output)
    with pytest.raises(SystemExit) as done:
        run(["models", "rm", "mine"])
    output.flush()
    shown = output.buffer.getvalue().decode()  # type: ignore[attr-defined]  # a BytesIO
    assert "remove mine (" in shown
    assert (done.value.code, (folder / "mine.gguf").exists()) == (code, stays)


def test_other_tools_models_are_listed_and_never_removed(
    localctx: Run, folder: Path, tmp_path: Path, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tiny_model_path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    ollama = tmp_path / "ollama"
    manifest = ollama / "manifests" / "registry.ollama.ai" / "library" / "tiny" / "latest"
    blob = ollama / "blobs" / f"sha256-{digest}"
    for path in (manifest, blob):
        path.parent.mkdir(parents=True, exist_ok=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}
    manifest.write_text(json.dumps({"layers": [layer]}))
    blob.write_bytes(data)
    monkeypatch.setenv("OLLAMA_MODELS", str(ollama))
    assert f"Ollama: {blob}" in localctx("models", "ls").out
    assert localctx("models", "verify", "ollama:tiny").out.startswith("ok ")
    result = localctx("models", "rm", "ollama:tiny", "--yes")
    assert (result.code, "ollama rm tiny" in result.err, blob.exists()) == (1, True, True)
    (tmp_path / "a.txt").write_text("The code is 7734.\n")
    asked = localctx(
        "ask",
        str(tmp_path / "a.txt"),
        "-q",
        "code?",
        "-m",
        "ollama:tiny",
        "-n",
        "4",
        "--store",
        "off",
        "--json",
    )
    assert (asked.code, asked.json["model"]["name"]) == (0, "tiny:latest")


def test_the_folder_that_model_names_is_listed(
    localctx: Run, folder: Path, tmp_path: Path, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    path = Path(shutil.copy(tiny_model_path, tmp_path / "work" / "w.gguf"))
    (tmp_path / "work" / "page.gguf").write_text("<html>")
    rows = localctx("models", "ls", "--model", str(tmp_path / "work"), "--json").json["models"]
    given = {row["path"]: row["problem"] for row in rows if row["where"] == "--model"}
    assert given[str(path)] is None
    assert "HTML" in given[str(tmp_path / "work" / "page.gguf")]
    monkeypatch.setenv("LOCALCTX_MODEL", str(path))
    assert f"--model: {path}" in localctx("models", "ls").out
    monkeypatch.delenv("LOCALCTX_MODEL")
    assert str(path) not in localctx("models", "ls").out


def test_show_says_what_follows_for_context_cache_template_and_store(
    localctx: Run, folder: Path, tiny_model_path: Path, tiny_gemma_template_path: Path
) -> None:
    file = localctx("models", "show", str(tiny_model_path), "--json").json["file"]
    assert (file["n_ctx_train"], file["rope"]["type"], file["rope"]["freq_base"]) == (2048, "norm", 50_000.0)
    assert file["kv_bytes_per_token_by_type"]["f16"] == 2 * 2 * (32 + 32)  # layers, bytes, K and V
    assert file["kv_bytes_per_token_by_type"]["q8_0"] == 2 * 2 * 34
    assert file["stored_bytes_per_token_by_codec"]["int4"] == round(256 * 0.29)
    assert file["template"] == {"source": "file", "system_role": "native", "thinking": [], "notices": []}
    assert file["store"]["serves"] is True
    gemma = localctx("models", "show", str(tiny_gemma_template_path), "--json").json["file"]
    assert gemma["template"]["system_role"] == "folded"
    assert "no system role" in gemma["template"]["notices"][0]


def test_show_is_a_page_and_json_has_all(localctx: Run, tiny_model_path: Path) -> None:
    shown = localctx("models", "show", str(tiny_model_path)).out
    assert len(shown.splitlines()) <= 20
    for wanted in ("architecture: llama, 2 layers", "context: 2,048 tokens trained", "f16 ", "int4 "):
        assert wanted in shown
    assert "block store: yes (" in shown


@pytest.mark.parametrize(
    ("architecture", "why"),
    [("gemma3", "sliding-window layers"), ("mamba", "is recurrent"), ("deepseek2", "MLA")],
)
def test_show_says_why_the_store_cannot_serve(
    localctx: Run, folder: Path, tmp_path: Path, architecture: str, why: str
) -> None:
    path = write_architecture(tmp_path / "m.gguf", architecture)
    result = localctx("models", "show", str(path))
    assert result.code == 0
    assert "block store: no (" in result.out
    assert why in result.out


def test_a_file_that_is_no_model_is_one_line(localctx: Run, folder: Path, tmp_path: Path) -> None:
    path = folder / "page.gguf"
    path.write_text("<!doctype html><title>Log in</title>")
    assert "cannot be used: an HTML or XML page" in localctx("models", "ls").out
    shown = localctx("models", "show", "page")
    assert (shown.code, shown.err.count("\n")) == (1, 1)
    assert "an HTML or XML page" in shown.err
    checked = localctx("models", "verify", "page")
    assert (checked.code, "damaged page: not a GGUF model" in checked.out) == (1, True)
