"""The measurement alone, with summaries made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from localctx.bench.faithfulness import Report, excerpts, faithfulness, run, texts_in
from localctx.bench.faithfulness_modes import PLAIN_PROMPT, Inputs, measure
from localctx.engine.echo import EchoModel
from localctx.errors import ModelError, UsageError
from localctx.settings import Settings
from localctx.values import Section

SOURCE = "Abraham Lincoln spoke at Gettysburg on November 19, 1863, for 2 minutes."


class Text:
    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def n_code_points(self) -> int:
        return len(self.text)

    def read(self, start: int, end: int) -> str:
        return self.text[start:end]

    def stream(self, start: int = 0, end: int | None = None) -> Iterator[str]:
        yield self.text[start:end]


def test_counts_numbers_and_names() -> None:
    figures = faithfulness("Then Abraham Lincoln spoke at Gettysburg in 1864 near Baltimore.", SOURCE)
    assert (figures.n_claims, figures.n_supported) == (4, 2)
    assert figures.examples == ("1864", "Baltimore")
    assert figures.share == 0.5
    assert faithfulness("He spoke well.", SOURCE).share is None


def report(tmp_path: Path) -> Report:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text(SOURCE)

    def summarise(path: Path, mode: str) -> str:
        if mode == "rewrite" and path.name == "two.txt":
            raise ModelError("the model is gone")
        return (
            "It was Abraham Lincoln in 1863." if mode == "extract" else "It was Lincoln in 1999 with Grant."
        )

    def read(path: Path) -> Iterable[str]:
        return [path.read_text()[:20], path.read_text()[20:]]

    seen: list[str] = []
    result = run(
        texts_in(tmp_path), ["extract", "rewrite"], summarise, read, lambda row: seen.append(row.text)
    )
    assert seen == ["one.txt", "two.txt"] * 2
    return result


def test_modes_are_summed_and_failures_named(tmp_path: Path) -> None:
    extract, rewrite = report(tmp_path).modes
    assert (extract.mode, extract.n_texts, extract.share, extract.worst_share) == ("extract", 2, 1.0, 1.0)
    assert (rewrite.n_texts, rewrite.n_failed, rewrite.n_claims, rewrite.n_supported) == (1, 1, 3, 1)
    assert rewrite.worst_text == "one.txt"
    assert report(tmp_path).texts[-1].error == "the model is gone"


def test_json_has_a_row_for_each_text_and_mode(tmp_path: Path) -> None:
    shown = report(tmp_path).as_json()
    assert shown["schema"] == "localctx.bench.faithfulness/1"
    assert [row["mode"] for row in shown["texts"]] == ["extract", "extract", "rewrite", "rewrite"]
    assert shown["texts"][0]["share"] == 1.0 and shown["modes"][1]["share"] == pytest.approx(1 / 3)


def test_nothing_to_do_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no files"):
        texts_in(tmp_path)
    with pytest.raises(UsageError, match="not a folder"):
        texts_in(tmp_path / "missing")
    with pytest.raises(UsageError, match="no texts"):
        run([], ["mode"], lambda path, mode: "", lambda path: [""])


def test_excerpts_are_sections_spread_over_the_document() -> None:
    text = Text("".join(f"Speech {i}\n" + "word " * 800 for i in range(30)))
    length = len("Speech 0\n" + "word " * 800)
    starts = [text.text.index(f"Speech {i}\n") for i in range(30)]
    sections = [Section(1, "Book", 0, len(text.text))]
    sections += [Section(2, f"Speech {i}", start, start + length) for i, start in enumerate(starts)]
    cut = list(excerpts(text, sections, 10, max_characters=3000))
    assert [title for title, _ in cut] == [f"Speech {i}" for i in range(0, 30, 3)]
    assert all(0 < len(piece) <= 3000 and piece.startswith(title) for title, piece in cut)


def test_excerpts_without_sections_are_slices() -> None:
    cut = list(excerpts(Text("word " * 10_000), [], 10))
    assert len(cut) == 10 and "".join(piece for _, piece in cut) == "word " * 10_000
    assert len(list(excerpts(Text("short"), [], 10))) == 1


def test_a_context_too_small_for_the_plain_prompt_is_an_error_and_no_endless_loop(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(SOURCE * 40)
    inputs = Inputs(texts=str(tmp_path))
    with EchoModel() as model:
        small = measure(model, Settings(ctx=200), inputs, [PLAIN_PROMPT], lambda row: None)
        large = measure(model, Settings(ctx=600), inputs, [PLAIN_PROMPT], lambda row: None)
    assert "too small for the plain prompt" in small.texts[0].error
    assert (large.texts[0].error, large.texts[0].n_words > 0) == ("", True)


def test_texts_are_cut_from_a_sample_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sample.txt").write_text("One sentence of words. " * 1000)
    assert len(Inputs(sample=str(tmp_path / "sample.txt"), count=3).paths(tmp_path)) == 3
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="only the source tree has it"):
        Inputs().check()
    with pytest.raises(UsageError, match="--count 0"):
        Inputs(texts=".", count=0).check()
