"""`localctx eval rope` as a user types it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf

Run = Callable[..., Any]


@pytest.fixture
def short_model(tmp_path: Path) -> Path:
    """A model trained for 128 tokens."""
    return write_tiny_gguf(tmp_path / "short.gguf", bpe_vocabulary(), n_ctx_train=128)


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "book.txt"
    path.write_text("".join(f"In {1800 + n} the clerk of Tannau wrote page {n} again. " for n in range(60)))
    return str(path)


def test_the_command_prints_a_table_and_writes_a_picture(
    localctx: Run, short_model: Path, text: str, tmp_path: Path
) -> None:
    words = ["eval", "rope", "-m", str(short_model), "-t", "1", "--text", text, "--targets", "60"]
    words += ["--times", "0.5,1", "--methods", "none,dynamic-ntk"]
    shown = localctx(*words, "--plot", str(tmp_path / "p.svg"))
    assert shown.code == 0, shown.err
    assert "inside training" in shown.out
    assert "dynamic-ntk" in shown.out
    assert "dynamic-ntk: 60 tokens after 128" in shown.err
    assert "<svg" in (tmp_path / "p.svg").read_text()
    told = localctx(*words, "--json")
    assert told.json["schema"] == "localctx.eval.rope/1"
    assert told.json["best"] == "dynamic-ntk"
    assert [len(row["at"]) for row in told.json["methods"]] == [2, 2, 2]
    assert told.err == ""
    for wrong, said in (
        (["--rope-scaling", "yarn"], "--rope-scaling is not for eval rope"),
        (["--times", "one"], "--times one is not understood"),
        (["--plot", str(tmp_path / "no" / "p.svg")], "cannot write the plot"),
    ):
        result = localctx(*words, *wrong)
        assert (result.code, said in result.err) == (2, True), result.err
