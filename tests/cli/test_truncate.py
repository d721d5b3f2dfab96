"""`localctx truncate` as a user types it: only the text on stdout, exit codes, JSON, pipes."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localctx.engine import open_model

Run = Callable[..., Any]
FACT = "The lighthouse burns olive oil."
TEXT = " ".join(
    [f"Volume {n} of the register was bound in calf by hand." for n in range(30)]
    + [FACT]
    + [f"Crate {n} on the quay was weighed by two clerks." for n in range(30)]
)
SAMPLE = Path(__file__).parents[2] / "docs" / "samples" / "state-of-the-union.pdf"


@pytest.fixture
def words(smollm2_path: Path) -> list[str]:
    return ["--model", str(smollm2_path), "--store", "off"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "register.txt"
    path.write_text(TEXT)
    return path


@pytest.mark.model
def test_stdout_is_the_text_and_stderr_says_what_was_kept(
    localctx: Run, words: list[str], file: Path, smollm2_path: Path
) -> None:
    asked = ["-q", "What does the lighthouse burn?", "--embedder", "off"]
    result = localctx("truncate", str(file), "--budget", "50", *asked, *words)
    assert result.code == 0
    assert FACT in result.out
    with open_model(smollm2_path) as model:
        n_tokens = len(model.tokenize(result.out))
    assert n_tokens <= 50
    assert result.err.startswith(f"kept {n_tokens} of ")
    assert result.err.count("\n") == 1
    quiet = localctx("truncate", str(file), "--budget", "50", "--quiet", *words)
    assert (quiet.code, quiet.err) == (0, "")


@pytest.mark.model
def test_standard_input_gzipped_or_not(localctx: Run, words: list[str]) -> None:
    plain = localctx("truncate", "-", "--budget", "40", *words, stdin=TEXT.encode())
    packed = localctx("truncate", "-", "--budget", "40", *words, stdin=gzip.compress(TEXT.encode()))
    assert plain.code == 0
    assert plain.out == packed.out
    assert plain.out


@pytest.mark.model
def test_a_text_that_fits_passes_through(localctx: Run, words: list[str], file: Path) -> None:
    assert localctx("truncate", str(file), "--budget", "100000", *words).out == TEXT


@pytest.mark.model
def test_json_has_spans_to_cite(localctx: Run, words: list[str]) -> None:
    value = localctx("truncate", str(SAMPLE), "--budget", "120", "--tail", "0.2", "--json", *words).json
    assert value["schema"] == "localctx.truncate/1"
    assert value["tokens"] == value["coverage"]["tokens_kept"] <= value["budget"] == 120
    assert value["coverage"]["tokens_total"] > 10_000
    whole = localctx("chunk", "--text", str(SAMPLE), *words).out
    pieces = [whole[span["start"] : span["end"]] for span in value["spans"]]
    assert "".join("".join(pieces).split()) == "".join(value["text"].split())
    assert all(span["page"] >= 1 and span["page_label"] for span in value["spans"])


@pytest.mark.model
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--budget", "0"], "leaves nothing"),
        (["--budget", "x"], "--budget"),
        ([], "--budget"),
        (["--budget", "9", "-q", " "], "the question is empty"),
        (["--budget", "9", "--tail", "1.5"], "out of range"),
        (["--budget", "9", "--lora", "x"], "No such option"),
    ],
)
def test_bad_usage(localctx: Run, words: list[str], file: Path, more: list[str], said: str) -> None:
    result = localctx("truncate", str(file), *more, *words)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert result.err.count("\n") == 1


@pytest.mark.model
def test_a_file_without_text_is_refused(localctx: Run, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "blank.txt").write_text(" \n")
    assert localctx("truncate", str(tmp_path / "blank.txt"), "--budget", "9", *words).code == 3


@pytest.mark.model
def test_chunk_cuts_adaptively_when_asked(localctx: Run, words: list[str]) -> None:
    fixed = localctx("chunk", str(SAMPLE), "--json", *words).json
    adaptive = localctx("chunk", str(SAMPLE), "--json", "--blocks", "adaptive", *words).json
    assert adaptive["tokens_total"] == fixed["tokens_total"]
    assert [block["end"] for block in adaptive["blocks"]] != [block["end"] for block in fixed["blocks"]]
    wrong = localctx("chunk", str(SAMPLE), "--blocks", "adaptve", *words)
    assert (wrong.code, "did you mean 'adaptive'?" in wrong.err) == (2, True)


@pytest.mark.model
def test_without_an_embedder_words_decide_and_a_warning_says_so(
    localctx: Run, words: list[str], file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOCALCTX_MODELS_DIR", str(tmp_path))
    monkeypatch.delenv("LOCALCTX_EMBEDDER", raising=False)
    asked = ["truncate", str(file), "--budget", "50", "-q", "What does the lighthouse burn?", *words]
    value = localctx(*asked, "--json").json
    assert "chosen by words alone" in value["warnings"][-1]
    assert value["coverage"]["embedded"] == 0
    off = localctx(*asked, "--embedder", "off")
    assert "words alone" not in off.err
    assert off.out == value["text"]
    assert localctx(*asked, "--embedder", "/nowhere.gguf").code == 1
