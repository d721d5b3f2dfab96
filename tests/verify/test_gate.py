"""The gate on tiny models: exact where nothing is lost, worse with fewer bits, refused by name."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from engine.tiny_gguf import TRAINING_TEXT

from localctx.engine import EngineOptions, open_model
from localctx.engine.echo import EchoModel
from localctx.errors import UsageError
from localctx.session.verdicts import VERDICT_FACT, passes
from localctx.verify.compare import Setting, compare, spans_of
from localctx.verify.gate import Gate, Report, _judged, run_gate

WORDS = TRAINING_TEXT.split()


def prose(n_words: int) -> str:
    """Words of the tiny models' vocabulary, shuffled."""
    source = random.Random(1)
    return " ".join(source.choice(WORDS) for _ in range(n_words))


@pytest.fixture(scope="module")
def figures(tiny_model_path: Path) -> dict[str, dict]:
    """Codecs and a window beside exact attention."""
    settings = [Setting(codec, codec) for codec in ("f16", "int8", "int4", "int2")]
    settings.append(Setting("window", "f16", 128))
    with open_model(tiny_model_path, EngineOptions(n_batch=128)) as model:
        tokens = model.tokenize(prose(1500))
        context = model.open_kv_context(1024, n_outputs=32)
        found = compare(context, model.tokenize("Read this."), list(spans_of(tokens, 384, 96, 2)), settings)
    return {row["name"]: row for row in (one.as_json() for one in found)}


def test_f16_loses_nothing_that_matters(figures: dict[str, dict]) -> None:
    assert figures["f16"]["kl"] < 1e-4
    assert abs(figures["f16"]["perplexity_rise"]) < 1e-3
    assert figures["f16"]["n_tokens"] == 2 * 95


def test_fewer_bits_are_worse_and_smaller(figures: dict[str, dict]) -> None:
    by_bits = [figures[name] for name in ("f16", "int8", "int4", "int2")]
    assert [row["kl"] for row in by_bits] == sorted(row["kl"] for row in by_bits)
    sizes = [row["bytes_per_token"] for row in by_bits]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 4


def test_a_window_changes_the_predictions(figures: dict[str, dict]) -> None:
    assert figures["window"]["kl"] > 10 * figures["f16"]["kl"]


def test_long_steps_do_not_widen_the_window(tiny_model_path: Path) -> None:
    gate = Gate(1, 512, 96, ("f16",), 128, n_documents=0)
    rows = []
    for n_batch in (128, 1024):  # a processor's and a GPU's, by what they are to the text
        with open_model(tiny_model_path, EngineOptions(n_batch=n_batch)) as model:
            rows.append({row["name"]: row for row in run_gate(model, gate, prose(1500)).settings})
    short, long = rows
    assert long["window 128"]["kl"] == pytest.approx(short["window 128"]["kl"], rel=0.2)
    assert long["window 128"]["kl"] > 10 * long["f16"]["kl"]


def test_a_tenth_of_the_tokens_is_judged_apart(figures: dict[str, dict]) -> None:
    assert figures["int4"]["needy"]["n_tokens"] == 2 * round(0.1 * 95)


def test_a_whole_gate(tiny_model_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    gate = Gate(1, 384, 64, ("f16", "int4"), 128, n_documents=0)
    with open_model(tiny_model_path, EngineOptions(n_batch=128)) as model:
        report = run_gate(model, gate, prose(1500), lambda *seen: told.append(seen))
    assert report.refusal is None
    assert [row["name"] for row in report.settings] == ["f16", "int4", "window 128"]
    assert told[-1] == ("comparing", 1, 1)
    facts = {VERDICT_FACT: report.verdict}
    assert passes(facts) is report.verdict["stream"]["passes"]


def test_a_model_that_keeps_no_kv_is_refused_by_name() -> None:
    report = run_gate(EchoModel(), Gate(1, 384, 64, ("int4",), 128), "text")
    assert report.refusal
    assert passes({VERDICT_FACT: report.verdict}) is False


def test_a_text_that_is_too_short_is_refused(tiny_model_path: Path) -> None:
    with open_model(tiny_model_path) as model, pytest.raises(UsageError, match="are needed"):
        run_gate(model, Gate(4, 384, 64, ("int4",), 128), prose(100))


def row(name: str, passes_it: bool, window: int | None = None) -> dict:
    """A row of the comparison as the verdict reads it."""
    return {"name": name, "passes": passes_it, "window": window}


def test_the_verdict_names_the_smallest_codec_that_passes() -> None:
    rows = (row("f16", True), row("int8", True), row("int4", False), row("window 512", True, 512))
    assert Report("m", "f", None, rows).verdict["stream"] == {"passes": True, "codec": "int8"}


def test_a_window_that_fails_fails_the_model() -> None:
    rows = (row("int4", True), row("window 512", False, 512))
    assert Report("m", "f", None, rows).verdict["stream"]["passes"] is False


def test_agreement_is_judged_by_that_of_unchanged_kv() -> None:
    noisy = {"top1": 0.91, "perplexity_rise": 0.004}
    assert _judged(noisy, floor=0.92)["passes"]
    assert not _judged(noisy, floor=1.0)["passes"]
    assert not _judged({"top1": 0.92, "perplexity_rise": 0.021}, floor=0.92)["passes"]


@pytest.mark.slow
def test_questions_are_counted_for_every_mode(tiny_model_path: Path) -> None:
    gate = Gate(1, 384, 64, ("f16", "int4"), 128, n_documents=1, n_questions=1)
    with open_model(tiny_model_path) as model:
        report = run_gate(model, gate, prose(4000))
    assert [row["n"] for row in report.questions] == [1] * len(report.questions)
    by_name = {row["name"]: row["n_evaluated"] for row in report.questions}
    shares = [by_name[f"stored, refresh {share}%"] for share in (0, 10, 33, 100)]
    assert shares == sorted(shares)
    assert shares[0] < shares[2] < shares[3]
