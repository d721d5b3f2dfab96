"""--backend openai:URL as typed: what cannot be is one line, before any document is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import localctx as library
from localctx.errors import UsageError

Run = Callable[..., Any]


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "harbours.md"
    path.write_text("The harbour of Tannau was built in 1871 by Anna Feld.")
    return path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--backend", "openai:nowhere"], "is not understood"),
        (["--backend", "ollama"], "is not understood"),
        (["--backend", "openai:http://127.0.0.1:9/v1"], "cannot be reached"),
        (["--backend", "openai:https://example.invalid", "--offline"], "is another machine"),
        (
            ["--backend", "openai:http://127.0.0.1:9/v1", "--strategy", "stream"],
            "--strategy stream is for a local",
        ),
        (["--backend", "openai:http://127.0.0.1:9/v1", "--threads", "2"], "--threads is for a local model"),
        (["--backend", "openai:http://127.0.0.1:9/v1", "--lora", "x"], "--lora is for a local model"),
    ],
)
def test_what_cannot_be_is_one_line(localctx: Run, document: Path, words: list[str], said: str) -> None:
    result = localctx("ask", str(document), "-q", "When?", *words)
    assert result.code in (1, 2)
    assert said in result.err
    assert (result.err.count("\n"), result.out) == (1, "")


def test_commands_that_need_a_model_here_say_so(localctx: Run, document: Path) -> None:
    for words in (["index", str(document)], ["verify"], ["serve"]):
        result = localctx(*words, "--backend", "openai:http://127.0.0.1:9/v1")
        assert (result.code, "is for ask and summarize" in result.err) == (2, True)
    with pytest.raises(UsageError):
        library.open(document, backend="openai:nowhere")
