"""`localctx serve` as typed: what cannot be is one line, before a model is loaded."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--host", "0.0.0.0"], 2, "lets anyone on the network use this server"),
        (["--api-key-file", "nowhere.toml"], 2, "cannot read the key file nowhere.toml"),
        (["--timeout", "0"], 2, "--timeout 0 is out of range"),
        (["--max-queue", "-1"], 2, "--max-queue -1 is out of range"),
        (["--max-body", "much"], 2, "--max-body"),
        (["--port", "99999"], 2, "cannot listen on 127.0.0.1:99999"),
        (["--model", "nowhere.gguf"], 1, "nowhere.gguf"),
    ],
)
def test_what_cannot_be_is_one_line(
    localctx: Run, tiny_model_path: Path, words: list[str], code: int, said: str
) -> None:
    result = localctx("serve", "--model", str(tiny_model_path), *words)
    assert (result.code, result.out) == (code, "")
    assert said in result.err
    assert result.err.count("\n") == 1


def test_a_missing_library_is_named(localctx: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "localctx.cli.commands.serve.find_spec", lambda name: None if name == "uvicorn" else find_spec(name)
    )
    result = localctx("serve")
    assert result.code == 1
    assert "uvicorn, which is not installed (pip install 'localctx[serve]')" in result.err
