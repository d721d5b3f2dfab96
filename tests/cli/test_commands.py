"""models, doctor and bench as a user runs them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localctx.settings import DEFAULT_MODEL

Run = Callable[..., Any]


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_model_path: Path) -> Path:
    """A models folder that holds one unknown model."""
    folder = tmp_path / "models"
    folder.mkdir()
    shutil.copy(tiny_model_path, folder / "mine.gguf")
    monkeypatch.setenv("LOCALCTX_MODELS_DIR", str(folder))
    return folder


def test_models_are_listed_with_what_is_here(localctx: Run, models: Path) -> None:
    rows = {row["name"]: row["path"] for row in localctx("models", "ls", "--json").json["models"]}
    assert rows["mine"] == str(models / "mine.gguf")
    assert rows[DEFAULT_MODEL] is None
    text = localctx("models", "ls").out
    assert str(models / "mine.gguf") in text
    assert "not installed" in text


def test_a_family_and_a_model_that_is_not_here_are_shown(localctx: Run, models: Path) -> None:
    family = localctx("models", "show", "qwen3")
    assert (family.code, family.err) == (0, "")
    assert "name: qwen3" in family.out
    value = localctx("models", "show", DEFAULT_MODEL, "--json").json
    assert (value["name"], "file" in value) == (DEFAULT_MODEL, False)
    assert localctx("models", "show", "mine", "--json").json["file"]["architecture"] == "llama"
    unknown = localctx("models", "show", "qwen33")
    assert (unknown.code, "did you mean" in unknown.err) == (2, True)


def test_paths_are_told_as_a_line_or_an_object(localctx: Run, models: Path) -> None:
    path = str(models / "mine.gguf")
    assert localctx("models", "path", "mine").out == path + "\n"
    assert localctx("models", "path", "mine", "--json").json == {
        "schema": "localctx.model-path/1", "name": "mine", "path": path,
    }  # fmt: skip
    family = localctx("models", "path", "qwen3", "--json")
    assert (family.code, family.json["error"]["type"]) == (2, "UsageError")


@pytest.mark.parametrize("how", ["option", "variable", "file"])
def test_pull_honours_offline_wherever_it_is_set(
    localctx: Run, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    words = ["models", "pull", "--json"]
    if how == "option":
        words.append("--offline")
    elif how == "variable":
        monkeypatch.setenv("LOCALCTX_OFFLINE", "1")
    else:
        (tmp_path / "my.toml").write_text("offline = true\n")
        words += ["--config", str(tmp_path / "my.toml")]
    result = localctx(*words)
    assert result.code == 1
    assert f"{DEFAULT_MODEL} is not installed and --offline is set" in result.json["error"]["message"]


@pytest.mark.model
def test_pull_of_what_is_there(localctx: Run, smollm2_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALCTX_MODELS_DIR", str(smollm2_path.parent))
    result = localctx("models", "pull", "--json")
    assert (result.code, result.json["path"]) == (0, str(smollm2_path))
    assert "is there" in result.err
    quiet = localctx("models", "pull", DEFAULT_MODEL, "--quiet")
    assert (quiet.out, quiet.err) == (f"{smollm2_path}\n", "")


@pytest.mark.parametrize("how", ["option", "variable", "file"])
def test_doctor_tries_the_model_that_is_set(
    localctx: Run, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    words = ["doctor", "--json"]
    if how == "option":
        words += ["--model", "no-such-model"]
    elif how == "variable":
        monkeypatch.setenv("LOCALCTX_MODEL", "no-such-model")
    else:
        (tmp_path / "my.toml").write_text('model = "no-such-model"\n')
        words += ["--config", str(tmp_path / "my.toml")]
    result = localctx(*words)
    findings = {finding["name"]: finding for finding in result.json["findings"]}
    assert (result.code, result.json["status"], findings["trial"]["status"]) == (1, "fail", "fail")
    assert "no-such-model" in findings["trial"]["detail"]


def test_doctor_in_lines(localctx: Run, models: Path) -> None:
    result = localctx("doctor", "--model", str(models / "mine.gguf"))
    assert result.code in (0, 1)
    assert "ok   python: localctx" in result.out
    assert f"models pull {DEFAULT_MODEL}" in result.out
    assert "trial: " in result.out


@pytest.mark.parametrize("option", ["--quiet", "-v", "--verbose"])
def test_options_that_would_do_nothing_are_not_taken(localctx: Run, option: str) -> None:
    for words in (["models", "ls"], ["models", "show", "qwen3"], ["models", "path", "mine"], ["doctor"]):
        result = localctx(*words, option)
        assert (result.code, "No such option" in result.err) == (2, True)


def test_text_and_json_exclude_each_other(localctx: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    result = localctx("chunk", str(tmp_path / "a.txt"), "--text", "--json")
    assert (result.code, result.json["error"]["type"]) == (2, "UsageError")


@pytest.mark.parametrize("scale", ["nan", "0", "-1", "inf", "1e300"])
def test_a_scale_that_makes_no_sense(localctx: Run, scale: str) -> None:
    result = localctx("bench", "document", "--scale", scale)
    assert (result.code, result.out) == (2, "")
    assert "--scale" in result.err
    assert result.err.count("\n") == 1


def test_bench_document_counts(localctx: Run) -> None:
    value = localctx("bench", "document", "--only", "pdf", "--scale", "0.001", "--json").json
    assert value["schema"] == "localctx.bench.document/1"
    assert [(row["name"], row["n_items"]) for row in value["results"]] == [("pdf", 2)]
    assert "bench" not in localctx("bench", "document", "--only", "pdf", "--scale", "0.001").err
    assert "no such benchmark" in localctx("bench", "document", "--only", "speed").err


def test_bench_faithfulness_needs_texts(
    localctx: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    result = localctx("bench", "faithfulness", "--model", str(tiny_model_path))
    assert (result.code, result.out) == (2, "")
    assert "pass --texts DIR or --sample FILE" in result.err
    none = localctx("bench", "faithfulness", "--texts", ".", "--count", "0")
    assert (none.code, "--count 0" in none.err) == (2, True)


def test_bench_faithfulness_measures(localctx: Run, tmp_path: Path, tiny_model_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("Abraham Lincoln spoke at Gettysburg in 1863. " * 8)
    words = ["bench", "faithfulness", "--texts", str(tmp_path / "texts"), "--model", str(tiny_model_path)]
    value = localctx(*words, "--mode", "condense", "--json", "--quiet").json
    assert [(row["mode"], row["n_texts"]) for row in value["modes"]] == [("condense", 1)]
    lines = localctx(*words, "--mode", "plain-prompt", "--ctx", "1024")
    assert lines.code == 0
    assert "plain-prompt" in lines.out
    assert "plain-prompt: a.txt" in lines.err
    small = localctx(*words, "--mode", "plain-prompt", "--ctx", "200", "--json").json
    assert "too small for the plain prompt" in small["texts"][0]["error"]
    unknown = localctx(*words, "--mode", "condens")
    assert "did you mean 'condense'?" in unknown.err
