"""`eval ruler`: what is handed on names the model, the class of machine, the figures, and nothing private."""

from __future__ import annotations

import getpass
import json
import platform
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from engine.tiny_bert import write_tiny_bert

from localctx.engine.gguf import fingerprint, open_embedding_model
from localctx.eval.benchmark_renderers import tables_of
from localctx.eval.results import Result

Ran = tuple[int, str, str]
USER, NODE = "zachariah-quill", "quills-own-node"


@pytest.fixture
def ruler(eval_command: Callable[..., Ran]) -> Callable[..., Ran]:
    return partial(eval_command, "ruler")


def test_a_submission_names_nothing_private(
    ruler: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: USER)
    monkeypatch.setattr(platform, "node", lambda: NODE)
    (tmp_path / USER).mkdir()
    embedder = write_tiny_bert(tmp_path / USER / "tiny-bert.gguf")
    file = tmp_path / "mine.json"
    words = ("--lengths", "2k", "--tasks", "single,cwe", "--questions", "4", "--max-tokens", "6")
    words += ("--seed", "3", "--embedder", str(embedder))
    words += ("--modes", "exact,oracle-text,oracle-stored,stream-lexical")
    code, out, err = ruler(*words, "--submit", str(file), "--quiet", "--data", str(tmp_path / "data"))
    assert (code, err) == (0, "")
    assert "oracle-text" in out
    text = file.read_text("utf-8")
    shown = json.loads(text)
    assert (shown["schema"], shown["note"], shown["left_out"]) == ("localctx.result/1", "", [])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", shown["date"])
    assert set(shown["versions"]) == {"python", "localctx", "llama_cpp_python"}
    assert shown["command"].startswith("localctx eval ruler --lengths 2048 --languages en --tasks single,")
    assert "--seed 3" in shown["command"]
    assert "--embedder tiny-bert.gguf" in shown["command"]
    result = shown["result"]
    assert result["embedder"] == {
        "name": "tiny-bert.gguf",
        "fingerprint": fingerprint(open_embedding_model(embedder)),
    }
    assert (result["schema"], result["command"]) == ("localctx.eval.ruler/1", shown["command"])
    assert set(result["model"]) >= {"name", "fingerprint", "size_bytes", "n_ctx_train"}
    assert "machine" not in result
    assert Result.of_file(file).schema == "localctx.eval.ruler"
    assert "oracle-text" in tables_of(result)[0].markdown
    assert (result["seed"], result["tasks"], result["haystack"]) == (3, ["single", "cwe"], "made prose")
    rows = {row["task"]: row["modes"] for row in result["rows"]}
    assert {"exact", "oracle-text", "oracle-stored", "stream-lexical"} <= set(rows["single"])
    assert all("ttft_ms" in mode for modes in rows.values() for mode in modes.values())
    assert [one["stored"]["seconds"] > 0 for one in result["documents"]] == [True, True]
    for private in (str(tmp_path), str(Path.home()), NODE, USER, "--data"):
        assert private not in text, private


def test_without_a_file_the_table_or_the_same_object_is_printed(ruler: Callable[..., Ran]) -> None:
    words = ("--lengths", "2k", "--tasks", "multikey", "--questions", "4", "--max-tokens", "4")
    code, out, err = ruler(*words, "--modes", "stream-lexical", "--json")
    assert (code, err) == (0, "")
    shown = json.loads(out)
    assert shown["embedder"] is None and "--embedder off" in shown["command"]
    assert (shown["schema"], shown["modes"]) == ("localctx.eval.ruler/1", ["stream-lexical"])
    assert shown["rows"][0]["modes"]["stream-lexical"]["n"] == 4
    code, out, _ = ruler(*words, "--modes", "select", "--quiet")
    assert (code, "right passages among the first" in out) == (0, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--submit", "nowhere/at/all.json"), "nowhere/at/all.json"),
        (("--submit", "x.json", "--haystack", "own.txt"), "--submit is for the made prose"),
        (("--strategy", "exact"), "--strategy is not for eval ruler"),
        (("--reranker", "some.gguf"), "--reranker is not for eval ruler"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_measured(
    ruler: Callable[..., Ran], words: tuple[str, ...], said: str
) -> None:
    code, out, err = ruler(*words, "--quiet")
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
