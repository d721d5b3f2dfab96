"""`eval rope`: the same tokens, a context once, the table, the plots."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf

from localctx.engine.llama import open_model
from localctx.errors import UsageError
from localctx.eval.plots import Plot, check_plot_file
from localctx.eval.rope import measure, methods_for
from localctx.eval.rope_report import At, Method, Report, Row, Wanted
from localctx.from_settings import ChosenModel
from localctx.settings import Settings
from localctx.values import RopeInfo

TRAINED = 128


@pytest.fixture(scope="module")
def short_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained for 128 tokens."""
    return write_tiny_gguf(
        tmp_path_factory.mktemp("short") / "short.gguf", bpe_vocabulary(), n_ctx_train=TRAINED
    )


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("text") / "book.txt"
    path.write_text("".join(f"In {1800 + n} the clerk of Tannau wrote page {n} again. " for n in range(60)))
    return str(path)


def test_every_method_predicts_the_same_tokens(short_model: Path, text: str) -> None:
    told: list[str] = []
    wanted = Wanted((0.5, 1, 2), 200, text=text)
    report = measure(Settings(threads=1), ChosenModel("short", short_model, None), wanted, told.append)
    labels = [row.method.label for row in report.rows]
    factor = f"{(2 * TRAINED + 201) / TRAINED:.4g}"
    assert labels == [
        "none", "linear", "dynamic-ntk", "yarn", "dynamic-ntk × 2",
        *(f"{name} × {factor}" for name in ("linear", "ntk", "yarn")),
    ]  # fmt: skip
    assert [[at.n_context for at in row.at] for row in report.rows] == [[64, 128, 256]] * 8
    by_label = dict(zip(labels, report.rows, strict=True))
    assert by_label["yarn"].at[-1] == by_label[f"yarn × {factor}"].at[-1]  # measured once
    assert len(told) == 1 + 5 * 3 + 3 * 2
    scales = [at.rope.freq_scale for at in by_label["linear"].at]
    assert scales == pytest.approx([TRAINED / (n + 201) for n in (64, 128, 256)], rel=1e-4)
    n = (64 + 201) / TRAINED
    sharper = by_label["dynamic-ntk × 2"].at[0].rope
    assert sharper.freq_base == pytest.approx(50_000 * (2 * n - 1) ** (16 / 14), rel=1e-4)
    assert {at.rope.freq_base for at in by_label["none"].at} == {50_000.0}
    for row in report.rows:
        assert [at.ratio * report.baseline for at in row.at] == pytest.approx(
            [at.perplexity for at in row.at]
        )


def test_a_second_run_gives_the_same_figures(short_model: Path, text: str) -> None:
    wanted = Wanted((0.5, 2), 120, ("none", "yarn"), text)
    chosen = ChosenModel("short", short_model, None)
    one, other = (measure(Settings(threads=1), chosen, wanted, lambda line: None).to_json() for _ in range(2))
    assert one == other


def test_the_figures_are_those_of_llama_cpp(short_model: Path, text: str) -> None:
    """One short context, inside training: the model's own log-probabilities, token by token."""
    wanted = Wanted((0.25,), 60, ("none",), text)
    report = measure(Settings(threads=1), ChosenModel("short", short_model, None), wanted, lambda line: None)
    with open_model(short_model) as model:
        tokens = model.tokenize(Path(text).read_text())[:92]
        context, losses = model.open_context(128, n_outputs=1), []

        def take(first: int, logits: np.ndarray) -> None:
            if first + 1 < len(tokens):
                row = logits[0].astype(np.float64)
                losses.append(math.log(np.exp(row).sum()) - row[tokens[first + 1]])

        context.score(tokens, take)
    assert report.rows[0].at[0].perplexity == pytest.approx(math.exp(np.mean(losses[31:])), rel=1e-3)
    assert report.best is None


def test_what_cannot_be_measured_is_refused(short_model: Path, text: str) -> None:
    chosen = ChosenModel("short", short_model, None)
    for wanted, said in (
        (Wanted((), 10), "--times"),
        (Wanted((0.0,), 10), "--times"),
        (Wanted((1,), 1), "--targets 1 is out of range"),
        (Wanted((1,), 10, ("yarm",), text), "--methods yarm is not known"),
        (Wanted((100,), 10, text=text), "tokens"),
    ):
        with pytest.raises(UsageError, match=said):
            measure(Settings(threads=1), chosen, wanted, lambda line: None)


def test_methods_are_chosen_by_name() -> None:
    assert methods_for(("ntk",), 5.0) == [Method("ntk", 5.0)]
    assert methods_for(("yarn", "none"), 5.0) == [Method("none"), Method("yarn"), Method("yarn", 5.0)]


def a_report() -> Report:
    def row(name: str, *ratios: float) -> Row:
        at = (At(100, RopeInfo("norm"), 10 * r, r, 0.01, 1.0) for r in ratios)
        return Row(Method(name), tuple(at))

    rows = (row("none", 2.0, 90.0), row("linear", 1.2, 1.6), row("yarn", 1.1, 1.5))
    return Report("m", "f", 100, "a text", Wanted((1, 2), 50), 10.0, rows)


def test_the_best_is_what_a_user_can_name() -> None:
    report = a_report()
    assert report.best == Method("yarn")
    assert report.to_json()["best"] == "yarn"
    assert report.lines[3].split()[:6] == ["none", "20.000", "(2.000", "±", "0.010)", "900.000"]
    assert report.lines[-1] == "best at all lengths together: yarn"


def test_a_terminal_gets_the_plot_as_text() -> None:
    lines = {"one": (1.0, 10.0, 100.0), "two": (1.0, 1.1, 1.2)}
    plot = Plot("title", "x", "y", (1, 2, 4), lines, is_log=True)
    shown = plot.for_terminal(60)
    assert "title" in shown
    assert "one" in shown
    assert "\x1b" not in shown


def test_without_the_libraries_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plot = Plot("t", "x", "y", (1, 2), {"one": (1.0, 2.0)})
    for name, use in (
        ("plotext", lambda: plot.for_terminal(60)),
        ("matplotlib.figure", lambda: plot.to_file(tmp_path / "p.png")),
    ):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(UsageError) as caught:
            use()
        assert "localctx[plot]" in caught.value.hint


def test_where_a_plot_goes_is_checked_beforehand(tmp_path: Path) -> None:
    (tmp_path / "folder.svg").mkdir()
    check_plot_file(tmp_path / "p.svg")
    for name in ("none/p.svg", "folder.svg", "p.bogus"):
        with pytest.raises(UsageError, match="cannot write the plot"):
            check_plot_file(tmp_path / name)
