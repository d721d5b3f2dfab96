"""`eval kv` on a real tiny model: arms beside exact attention, hit rates, the knee, figures twice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from engine.kv_tools import document
from engine.test_query_capture import HEAD_DIM, first_layer
from engine.tiny_gguf import TRAINING_TEXT

from localctx.engine import EngineOptions, open_model
from localctx.engine.echo import EchoModel
from localctx.engine.llama import LlamaModel
from localctx.errors import NotComposable, UsageError
from localctx.eval.benchmark_renderers import tables_of
from localctx.eval.kv import measure
from localctx.eval.kv_arms import MODES, Arm, Wanted, arms_of, attended
from localctx.eval.kv_curve import Point, curve_of, knee_of
from localctx.eval.kv_mass import Mass, asked_of, hits_of
from localctx.eval.kv_matrix import chunks_of, prefix_runs, runs_of
from localctx.eval.kv_spans import spans_in
from localctx.kv import RUN_TOKENS
from localctx.selection.routing import LexicalRouter
from localctx.settings import Settings

PROSE = TRAINING_TEXT.split()
WANTED = Wanted(64, 512, 32, ("f16", "int4", "int2"), (None, 128), MODES, (256,))


@pytest.fixture(scope="module")
def model(tiny_model_path: Path) -> Iterator[LlamaModel]:
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as opened:
        yield opened


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Prose of the tiny models' vocabulary."""
    source = random.Random(1)
    path = tmp_path_factory.mktemp("text") / "book.txt"
    path.write_text(" ".join(source.choice(PROSE) for _ in range(1200)))
    return str(path)


@pytest.fixture(scope="module")
def found(model: LlamaModel, text: str) -> dict:
    """The JSON of one measurement."""
    report = measure(model, Settings(threads=1), replace(WANTED, text=text), "a command", lambda line: None)
    whole = report.to_json()
    return {**whole["matrix"], "lines": report.lines, "tables": tables_of(whole)}


def arm(found: dict, codec: str | None, window: int | None = None, mode: str = "all") -> dict:
    """One arm's figures."""
    (one,) = (
        one for one in found["arms"] if (one["codec"], one["window"], one["mode"]) == (codec, window, mode)
    )
    return one


def test_every_codec_and_window_and_every_mode_with_one_codec(found: dict) -> None:
    names = [(one["codec"], one["window"], one["mode"]) for one in found["arms"]]
    assert len(set(names)) == len(names) == 2 + 2 * (3 + 4)
    assert {mode for codec, window, mode in names if codec == "int4" and window == 128} == {
        "all", "local", "selected", "random", "refreshed",
    }  # fmt: skip
    assert arm(found, None, mode="text")["bytes_per_token"] is None
    full = arms_of(replace(WANTED, is_full=True, budgets=(256, 384)))
    assert len(full) == 4 + 2 * 3 * (1 + 4 * 2)


def test_unchanged_kv_loses_nothing_and_fewer_bits_more(found: dict) -> None:
    by_bits = [arm(found, codec) for codec in ("f16", "int4", "int2")]
    assert found["n_tokens"] == 64
    assert by_bits[0]["all_tokens"]["kl"] < 1e-4
    assert by_bits[0]["all_tokens"]["top1"] >= 1 - 2 / 64  # two tokens may be as likely as each other
    assert abs(by_bits[0]["all_tokens"]["rise"]) < 1e-3
    kls = [one["all_tokens"]["kl"] for one in by_bits]
    assert kls == sorted(kls)
    assert arm(found, "f16", 128)["all_tokens"]["kl"] > 10 * kls[0]
    sizes = [one["bytes_per_token"] for one in by_bits]
    assert sizes == sorted(sizes, reverse=True)


def test_tokens_that_need_long_context_are_judged_apart(found: dict) -> None:
    assert found["long_context"]["n_tokens"] == round(0.1 * 64)
    assert found["long_context"]["least_gain"] > 0
    exact, short = found["exact"], found["short"]
    assert exact["perplexity_long_context"] < short["perplexity_long_context"] / 2
    local = arm(found, "int4", mode="local")
    assert local["long_context_tokens"]["rise"] > local["all_tokens"]["rise"]


def test_hits_and_evaluated_tokens_of_every_mode(found: dict) -> None:
    everything = arm(found, "f16")
    assert everything["hit_rate"]["document"] == everything["hit_rate"]["all"] == 1.0
    assert everything["n_evaluated"] == 0
    for mode in ("local", "selected", "random", "refreshed"):
        one = arm(found, "int4", mode=mode)
        assert one["n_attended"] == 256
        assert one["hit_rate"]["cells"] == 0.5
        assert 0.2 < one["hit_rate"]["document"] < one["hit_rate"]["all"] < 1
        assert len(one["hit_rate"]["by_layer"]) == 2
        assert one["n_evaluated"] == (128 if mode == "refreshed" else 0)
    assert arm(found, None, mode="text")["n_evaluated"] == 256


def test_the_table_names_the_knee(found: dict) -> None:
    (codecs,) = (curve for curve in found["curves"] if curve["name"] == "codecs")
    assert [point["name"] for point in codecs["points"]] == ["f16", "int4", "int2"]
    assert codecs["knee"] == "int4"
    arms, curves = found["tables"]
    assert [len(row) == len(arms.columns) for row in arms.rows] == [True] * len(found["arms"])
    assert [row[1] for row in curves.rows if row[0] == "codecs" and row[-1] == "knee"] == ["int4"]
    assert any(line.startswith("codecs: f16 ×1.0") and line.endswith("knee: int4") for line in found["lines"])


def without_times(value: object) -> object:
    """JSON values, without what a clock says."""
    if isinstance(value, dict):
        return {name: without_times(one) for name, one in value.items() if name != "latency"}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def test_the_same_seed_gives_the_same_figures_and_another_one_others(
    model: LlamaModel, text: str, found: dict
) -> None:
    wanted = replace(WANTED, text=text, codecs=("int4",), windows=(None,))
    again, other = (
        measure(model, Settings(threads=1), one, "", lambda line: None).to_json()["matrix"]
        for one in (wanted, replace(wanted, seed=1))
    )
    for mode in ("all", "random", "refreshed"):
        assert without_times(arm(again, "int4", mode=mode)) == without_times(arm(found, "int4", mode=mode))
    assert again["exact"] == found["exact"] != other["exact"]


def test_a_set_of_cells_has_the_share_of_the_first_layers_attention(
    tiny_model_path: Path, model: LlamaModel
) -> None:
    """Queries and keys computed here from the weights, turned as Llama does, against the captured ones."""
    tokens, n_target = document(model, 400), 16
    prefix, context = tokens[:8], model.open_kv_context(640)
    asked = asked_of(model, tokens, n_target)
    before = prefix_runs(context, prefix)
    runs = runs_of(chunks_of(context, prefix, tokens[8:392]))
    everything, some = hits_of(asked, context.rope_table, before, runs, [(0, 1, 2), (0, 2)])

    def turned(which: str) -> np.ndarray:
        heads = first_layer(tiny_model_path, tokens, which, norm=False)  # type: ignore[arg-type]  # "q" or "k"
        angles = np.arange(len(tokens))[:, None] * 50_000.0 ** (-np.arange(0, HEAD_DIM, 2) / HEAD_DIM)
        even, odd = heads[..., 0::2], heads[..., 1::2]
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        return np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(heads.shape)

    queries, keys = turned("q")[asked.positions], np.repeat(turned("k"), 2, axis=1)[:392]
    scores = np.exp(np.einsum("qhd,nhd->qhn", queries, keys) / np.sqrt(HEAD_DIM))
    scores /= scores.sum(axis=2, keepdims=True)
    of_document, of_some = scores[..., 8:], np.concatenate([scores[..., 8:136], scores[..., 264:]], axis=2)
    assert some.by_layer[0] == pytest.approx(of_some.sum() / of_document.sum(), rel=5e-3)
    assert some.cells == pytest.approx(2 / 3)
    assert everything.all == pytest.approx(1.0)
    assert everything.document == pytest.approx(1.0)


def test_masses_of_pieces_are_those_of_the_whole() -> None:
    source = np.random.default_rng(1)
    scores = (source.standard_normal((2, 3, 50)) * 30).astype(np.float32)
    members = source.random((2, 50)) < 0.4
    whole, pieces, merged = Mass(2, 3, 2), Mass(2, 3, 2), Mass(2, 3, 2)
    whole.add(scores.copy(), slice(0, 3), members)
    for first in range(0, 50, 20):
        here = slice(first, first + 20)
        pieces.add(scores[..., here].copy(), slice(0, 3), members[:, here])
        part = merged.empty()
        part.add(scores[..., here].copy(), slice(0, 3), members[:, here])
        merged.merge(part)
    np.testing.assert_allclose(pieces.shares(), whole.shares(), rtol=1e-5)
    np.testing.assert_allclose(merged.shares(), whole.shares(), rtol=1e-5)
    wanted = np.exp(scores.astype(np.float64) - scores.max(axis=2, keepdims=True))
    wanted = np.stack([wanted @ mask for mask in members], axis=-1) / wanted.sum(axis=2)[..., None]
    np.testing.assert_allclose(whole.shares(), wanted, rtol=1e-4)


def test_modes_attend_to_what_they_say() -> None:
    tokens = [*range(1000, 1000 + 8 * RUN_TOKENS)]
    tokens[2 * RUN_TOKENS : 2 * RUN_TOKENS + 50] = tokens[-50:]  # run 2 shares what the last tokens hold
    router = LexicalRouter(tokens)

    def runs(mode: str, budget: int | None = 4 * RUN_TOKENS) -> tuple[tuple[int, ...], set[int]]:
        one = attended(mode, 8, budget, router, "seed")  # type: ignore[arg-type]  # a name of MODES
        return one.runs, set(one.again)

    assert runs("all", None) == (tuple(range(8)), set())
    assert runs("local") == ((4, 5, 6, 7), set())
    assert runs("local text") == ((4, 5, 6, 7), {4, 5, 6, 7})
    assert runs("selected") == ((2, 6, 7), set())  # no other run has evidence
    assert runs("text") == ((2, 6, 7), {2, 6, 7})
    assert runs("random") == runs("random")
    assert runs("random")[0][-2:] == (6, 7)
    assert len(runs("random")[0]) == 4
    everything = [*range(1000, 1000 + RUN_TOKENS)] * 8
    router = LexicalRouter(everything)
    assert len(runs("refreshed", 6 * RUN_TOKENS)[1]) == 1


def test_the_knee_is_where_the_curve_bends_most() -> None:
    assert knee_of([0, 1, 2, 3], [0.0, 0.1, 0.2, 5.0]) == 2
    assert knee_of([0, 1, 4, 5], [0.0, 1.0, 4.0, 5.0]) is None  # a line over uneven places
    assert knee_of([0, 1], [0.0, 1.0]) is None
    points = [Point("a", 100, 1, 0.0), Point("b", 50, 2, 0.2), Point("c", 50, 2, 0.1), Point("d", 25, 4, 5.0)]
    beaten = Point("beaten", 60, 1.7, 0.3)
    curve = curve_of("codecs", [*points, beaten])
    assert [point.name for point in curve.points] == ["a", "c", "d"]
    assert curve.knee == 1


def test_no_token_is_predicted_twice() -> None:
    wanted = Wanted(256, 256, 32)
    spans = spans_in(range(1000), wanted, "a text")
    assert len(spans) == 8
    assert all(span.context[-1] + 1 == span.target[0] for span in spans)
    predicted = [token for span in spans for token in span.target[1:]]
    assert len(set(predicted)) == len(predicted) == 256
    assert (
        spans == spans_in(range(1000), wanted, "a text") != spans_in(range(1000), replace(wanted, seed=1), "")
    )
    with pytest.raises(UsageError, match="a text has 500 tokens, 513 are needed"):
        spans_in(range(500), wanted, "a text")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_tokens": 1}, "--tokens 1 is out of range"),
        ({"n_target": 5000}, "--target 5000 is out of range"),
        ({"n_context": 500}, "--context 500 is no multiple of 128"),
        ({"codecs": ("int5",)}, "--codecs int5 is not known"),
        ({"codecs": ()}, "--codecs: none is named"),
        ({"modes": ("most",)}, "--modes most is not known"),
        ({"windows": (100,)}, "--windows 100 is out of range"),
        ({"windows": (512,)}, "a window of 512 tokens holds all of a context of 512"),
        ({"windows": ()}, "--windows: none is named"),
        ({"budgets": (512,)}, "--budget 512 is out of range"),
        ({"budgets": ()}, "--budget  is out of range"),
    ],
)
def test_what_cannot_be_compared_is_refused(change: dict, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        replace(WANTED, **change).check()


def test_models_and_texts_that_do_not_do_are_refused(model: LlamaModel, tmp_path: Path) -> None:
    with pytest.raises(NotComposable, match="KV"):
        measure(EchoModel(), Settings(), WANTED, "", lambda line: None)
    with pytest.raises(UsageError, match="takes 2,048"):
        measure(model, Settings(), replace(WANTED, n_context=2048), "", lambda line: None)
    short = tmp_path / "short.txt"
    short.write_text("The harbour lies open to the west.")
    with pytest.raises(UsageError, match=r"short.txt has \d+ tokens, 577 are needed"):
        measure(model, Settings(), replace(WANTED, text=str(short)), "", lambda line: None)


def test_an_arm_of_evaluated_text_has_no_codec() -> None:
    arms = arms_of(Wanted(modes=("text", "all"), codecs=("int8",), windows=(None,)))
    assert arms == [Arm(None, None, "text", 512), Arm("int8", None, "all")]


@pytest.mark.model
def test_a_real_model_keeps_most_of_its_attention_near(smollm2_path: Path) -> None:
    wanted = Wanted(32, 384, 32, ("int8", "int2"), (None,), ("all", "local", "random"), (256,))
    with open_model(smollm2_path) as smollm2:
        report = measure(smollm2, Settings(), wanted, "", lambda line: None)
    found = report.to_json()["matrix"]
    assert 2 < found["exact"]["perplexity"] < 60
    assert found["exact"]["perplexity"] < found["short"]["perplexity"]
    small, large = (arm(found, codec)["all_tokens"] for codec in ("int8", "int2"))
    assert small["kl"] < 0.03 < large["kl"]
    assert small["top1"] >= 0.9
    local, anywhere = (arm(found, "int8", mode=mode)["hit_rate"] for mode in ("local", "random"))
    assert local["cells"] == anywhere["cells"] == round(2 / 3, 6)
    assert local["cells"] < local["document"] < local["all"] < 1
    assert len(local["by_layer"]) == 30
