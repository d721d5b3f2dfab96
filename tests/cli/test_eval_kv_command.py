"""`localctx eval kv` as a user types it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "book.txt"
    path.write_text("".join(f"In {1800 + n} the clerk of Tannau wrote page {n} again. " for n in range(90)))
    return str(path)


def test_a_table_a_picture_and_json(localctx: Run, tiny_model_path: Path, text: str, tmp_path: Path) -> None:
    words = ["eval", "kv", "-m", str(tiny_model_path), "-t", "1", "--text", text, "--tokens", "32"]
    words += ["--context", "512", "--target", "32", "--windows", "exact,128", "--modes", "all,local"]
    words += ["--codecs", "f16,int4,int2"]
    shown = localctx(*words, "--plot", str(tmp_path / "p.svg"))
    assert shown.code == 0, shown.err
    assert "32 tokens behind 512 each" in shown.out
    assert "knee: int4" in shown.out
    assert "stretch 1 of 1" in shown.err
    assert "<svg" in (tmp_path / "p.svg").read_text()
    told = localctx(*words, "--json")
    assert told.err == ""
    assert told.json["schema"] == "localctx.eval.kv/1"
    assert told.json["command"].startswith("localctx")
    assert told.json["text"] == text
    assert told.json["long"] is None
    assert len(told.json["matrix"]["arms"]) == 2 * (3 + 1)
    assert {arm["budget"] for arm in told.json["matrix"]["arms"]} == {None, 256}


def test_one_text_at_every_step(localctx: Run, tiny_model_path: Path, text: str, tmp_path: Path) -> None:
    words = ["eval", "kv", "-m", str(tiny_model_path), "-t", "1", "--text", text, "--target", "16"]
    words += ["--lengths", "1k", "--step", "512", "--windows", "256", "--modes", "local,local-text"]
    told = localctx(*words, "--json", "--plot", str(tmp_path / "p.svg"))
    assert told.code == 0, told.err
    assert told.json["matrix"] is None
    assert [point["n_tokens"] for point in told.json["long"]["points"]] == [512, 1024]
    assert [one["mode"] for one in told.json["long"]["points"][0]["modes"]] == ["local", "local text"]
    assert "<svg" in (tmp_path / "p.svg").read_text()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--strategy", "exact"], 2, "--strategy is not for eval kv"),
        (["--kv", "window=256"], 2, "--kv is not for eval kv"),
        (["--windows", "wide"], 2, "--windows wide is not understood"),
        (["--budget", "-5"], 2, "--budget -5 is not understood"),
        (["--codecs", ","], 2, "--codecs: none is named"),
        (["--step", "1k"], 2, "--step is for --lengths"),
        (["--lengths", "1k", "--tokens", "100"], 2, "--tokens is not for --lengths"),
        (["--lengths", "1k", "--windows", "exact"], 2, "--windows exact is not for --lengths"),
        (["--lengths", "1k", "--windows", "128,256"], 2, "--windows: one alone"),
        (["--lengths", "1k", "--codecs", "int5"], 2, "--codecs int5 is not known"),
        (["--lengths", ","], 2, "--lengths: none is named"),
        (["--lengths", "1m", "--step", "0"], 2, "--step 0 is out of range"),
        (["--lengths", "far"], 2, "--lengths 'far' is not understood"),
        (["--text", "nowhere.txt"], 3, "nowhere.txt"),
        (["--plot", "none/p.svg"], 2, "cannot write the plot"),
        (["--plot", "p.svg", "--modes", "local"], 2, "--plot draws what codecs cost"),
        (["--plot", "p.svg", "--windows", "256"], 2, "--plot draws what codecs cost"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    localctx: Run, tiny_model_path: Path, words: list[str], code: int, said: str
) -> None:
    result = localctx("eval", "kv", "-m", str(tiny_model_path), *words)
    assert (result.code, said in result.err, result.out) == (code, True, ""), result.err
