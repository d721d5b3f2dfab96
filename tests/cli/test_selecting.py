"""`--embedder` and `--reranker` as a user types them: what is said of the selection, of what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine.tiny_bert import write_tiny_bert, write_tiny_reranker

TEXT = "".join(
    f"# Part {n}\n\nThe river of part {n} rises near Tannau. A mine was opened in it.\n\n" for n in range(60)
)
Run = Callable[..., Any]


@pytest.fixture
def asked(localctx: Run, tmp_path: Path, tiny_model_path: Path) -> Run:
    """Ask of the text, by retrieval, with the tiny model."""
    (tmp_path / "book.md").write_text(TEXT)
    common = ["--model", str(tiny_model_path), "--store", str(tmp_path / "store"), "--json", "-n", "4"]

    def call(*words: str) -> Any:
        question = ["-q", "Where was the mine opened?", "--strategy", "retrieve"]
        return localctx("ask", str(tmp_path / "book.md"), *question, *common, *words)

    return call


def test_an_answer_says_how_its_passages_were_chosen(asked: Run, tmp_path: Path) -> None:
    embedder = write_tiny_bert(tmp_path / "bert.gguf")
    answer = asked("--embedder", str(embedder)).json
    assert answer["selection"]["selectors"] == ["lexical", "dense", "maxsim"]
    assert answer["selection"]["embedder"] == "bert"
    assert 10 < answer["selection"]["passages_with_vectors"] < answer["selection"]["passages"]
    judged = asked("--embedder", "off", "--reranker", str(write_tiny_reranker(tmp_path / "r.gguf"))).json
    assert judged["selection"]["selectors"] == ["lexical", "reranker"]
    assert not [line for line in judged["warnings"] if "by words alone" in line]


def test_a_missing_default_warns_and_a_missing_named_one_is_an_error(
    asked: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALCTX_MODELS_DIR", str(tmp_path / "none"))
    monkeypatch.delenv("LOCALCTX_EMBEDDER")
    answer = asked("--offline").json
    assert answer["selection"]["selectors"] == ["lexical"]
    assert [line for line in answer["warnings"] if "localctx models pull all-minilm-l6-v2" in line]
    named = asked("--embedder", "no-such-embedder")
    assert (named.code, "unknown model" in named.out) == (2, True)


def test_index_says_what_it_embedded(localctx: Run, tmp_path: Path, tiny_model_path: Path) -> None:
    (tmp_path / "book.md").write_text(TEXT)
    embedder = write_tiny_bert(tmp_path / "bert.gguf")
    words = ["--model", str(tiny_model_path), "--store", str(tmp_path / "store"), "--embedder", str(embedder)]
    first = localctx("index", str(tmp_path / "book.md"), *words, "--force", "--json").json
    assert first["vectors"]["passages_embedded"] == first["vectors"]["passages"] > 10
    again = localctx("index", str(tmp_path / "book.md"), *words, "--force", "--json").json
    assert again["vectors"]["passages_embedded"] == 0


def test_the_embedder_is_shown(localctx: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALCTX_MODELS_DIR", str(tmp_path))
    write_tiny_bert(tmp_path / "all-minilm-l6-v2.gguf")
    value = localctx("models", "show", "all-minilm-l6-v2", "--json").json
    assert value["file"]["architecture"] == "bert"
    assert value["manifest"]["languages"] == ["en"]
