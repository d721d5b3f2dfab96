"""Answers beyond the trained length, as a user types them: in force, kept, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def short_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model trained for 512 tokens."""
    path = tmp_path_factory.mktemp("short") / "short.gguf"
    return str(write_tiny_gguf(path, bpe_vocabulary(), n_ctx_train=512))


@pytest.fixture
def book(tmp_path: Path) -> str:
    """Some 800 tokens."""
    path = tmp_path / "book.txt"
    path.write_text(
        "".join(f"In the year {1800 + n} the clerk of Tannau wrote page {n}. " for n in range(40))
    )
    return str(path)


def test_with_one_factor_the_second_question_evaluates_only_itself(
    localctx: Run, short_model: str, book: str
) -> None:
    words = [
        "-m",
        short_model,
        "-n",
        "4",
        "--json",
        "--rope-scaling",
        "yarn",
        "--rope-scale",
        "8",
        "-c",
        "2560",
    ]
    first = localctx("ask", book, "-q", "Who wrote page 7?", *words)
    second = localctx("ask", book, "-q", "Who wrote page 9?", *words)
    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert first.json["strategy"] == second.json["strategy"] == "exact"
    assert first.json["coverage"]["tokens_total"] > 512
    assert second.json["tokens"]["restored"] > 512 > 150 > second.json["tokens"]["evaluated"]
    assert second.json["model"]["rope"]["scaling"] == "yarn"
    assert second.json["model"]["rope"]["freq_scale"] == 0.125
    assert second.json["model"]["requested"] == {"ctx": 2560, "rope_scaling": "yarn", "rope_scale": 8.0}
    other = localctx("ask", book, "-q", "Who wrote page 9?", *words[:6], "ntk", *words[7:])
    assert other.json["tokens"]["evaluated"] > 512  # another rotation is another store


def test_a_context_takes_the_factor_it_needs_and_says_that_nothing_is_kept(
    localctx: Run, short_model: str, book: str, tmp_path: Path
) -> None:
    words = ["-q", "Who wrote page 7?", "-m", short_model, "-n", "4", "--rope-scaling", "dynamic-ntk"]
    long = localctx("ask", book, *words, "-c", "2560", "--json")
    assert long.code == 0, long.err
    assert long.json["strategy"] == "exact"
    rope = long.json["model"]["rope"]
    assert rope["scaling"] == "dynamic-ntk"
    assert 50_000 < rope["freq_base"] < 50_000 * 6
    assert any("a factor of its own (dynamic-ntk), its KV is not kept" in w for w in long.json["warnings"])
    (tmp_path / "short.txt").write_text("The clerk of Tannau wrote page 7.")
    short = localctx("ask", str(tmp_path / "short.txt"), *words, "-c", "2560", "--json")
    assert short.json["model"]["rope"]["freq_base"] == 50_000  # inside training nothing is scaled
    streamed = localctx("ask", book, *words, "-c", "2560", "--strategy", "stream", "--json")
    assert streamed.json["model"]["rope"]["freq_base"] == 50_000
    assert streamed.json["model"]["n_ctx"] <= 512
    told = localctx("ask", book, *words, "-v")
    assert "rope norm, scaling dynamic-ntk, base " in told.err
    assert "asked for: rope-scaling dynamic-ntk" in told.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-c", "2560"], "--ctx 2560 is more than short was trained for (512 tokens)"),
        (["-c", "2560", "--rope-scaling", "yarn", "--rope-scale", "2"], "reaches (1,024 tokens"),
        (["--rope-scaling", "ntk", "--rope-freq-base", "9e5"], "would scale twice"),
        (["--override-kv", "llama.rope.freq_base=int:1000000"], "is of type float, not int"),
        (["--override-kv", ""], "'' is not understood"),
        (
            ["--override-kv", "llama.rope.scaling.factor=float:4", "--rope-scaling", "yarn"],
            "scaling it again",
        ),
        (["-ctk", "q9_9"], "type_k=q9_9 is not understood"),
        (["-fa", "perhaps"], "flash_attn = 'perhaps' is not understood"),
    ],
)
def test_what_is_refused_is_one_line(
    words: list[str], said: str, localctx: Run, short_model: str, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("The clerk of Tannau wrote page 7.")
    result = localctx("ask", str(tmp_path / "a.txt"), "-q", "Who?", "-m", short_model, "--quiet", *words)
    assert result.code == 2
    assert said in result.err
    assert (result.err.count("\n"), result.out) == (1, "")


def test_overrides_may_be_given_several_times_and_hold_commas(
    localctx: Run, short_model: str, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("The clerk of Tannau wrote page 7.")
    result = localctx(
        "ask", str(tmp_path / "a.txt"), "-q", "Who?", "-m", short_model, "-n", "4", "--json",
        "--override-kv", "llama.rope.freq_base=float:70000,general.name=str:a, b",
        "--override-kv", "llama.context_length=int:640",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert result.json["model"]["rope"]["freq_base"] == 70_000
    assert result.json["model"]["n_ctx_train"] == 640
