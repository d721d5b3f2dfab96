"""Planted facts, the heads that find them, and what is told of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from verify.test_gate import prose

from localctx.engine import EngineOptions, open_model
from localctx.engine.echo import EchoModel
from localctx.index.terms import content_words, stem
from localctx.verify import heads
from localctx.verify.heads import HeadModel, HeadReport, find_heads, plant
from localctx.verify.probes import KINDS, PROBES

FEW = PROBES[:4]


def test_facts_differ_and_paraphrases_share_no_content_word() -> None:
    assert len(PROBES) % 2 == 0
    assert len({probe.fact for probe in PROBES}) == len(PROBES)
    for probe in PROBES:
        fact = set(map(stem, content_words(probe.fact)))
        assert len(fact & set(map(stem, content_words(probe.asked)))) >= 2, probe.fact
        assert not fact & set(map(stem, content_words(probe.paraphrased))), probe.fact


def test_planted_facts_stand_whole_in_their_passages(tiny_model_path: Path) -> None:
    with open_model(tiny_model_path) as model:
        planted = plant(prose(1200), FEW, model.tokenize)
        assert list(planted.tokens) == model.tokenize("".join(planted.texts))
        for probe, place in zip(FEW, planted.places, strict=True):
            assert [number for number, text in enumerate(planted.texts) if probe.fact in text] == [place]
        sizes = np.diff(planted.starts)
        assert planted.starts[0] == 0
        for n_tokens, text in zip(sizes, planted.texts, strict=True):  # longer only where it is one sentence
            assert n_tokens <= heads.PASSAGE_TOKENS or not re.search(r"[.!?]\s", text)
        assert planted == plant(prose(1200), FEW, model.tokenize)
        with pytest.raises(ValueError, match="too short"):
            plant(prose(20), FEW, model.tokenize)


@pytest.fixture
def report(tiny_model_path: Path) -> HeadReport:
    """Of a tiny random model, which has no such heads."""
    with open_model(tiny_model_path, EngineOptions(n_batch=128)) as model:
        assert isinstance(model, HeadModel)
        return find_heads(model, prose(1200), FEW)


def test_a_model_that_finds_nothing_has_no_heads(report: HeadReport) -> None:
    assert report.n == 2
    assert report.recall["lexical"]["asked"] == [1.0, 1.0]
    assert report.recall["lexical"]["paraphrased"] == [0.0, 0.0]
    assert set(report.recall) == {"lexical", "landmarks", "lexical+landmarks"}
    found = np.mean([report.recall["landmarks"][kind][1] for kind in KINDS])
    assert bool(report.heads) == (found >= heads.MIN_RECALL)
    assert report.fact["heads"] == [list(head) for head in report.heads]
    assert 0 < report.bytes_per_token <= heads.MAX_HEADS * (16 + 4)


def test_the_heads_that_find_the_choosing_half_are_chosen(
    tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_model(tiny_model_path) as model:
        planted = plant(prose(1200), FEW, model.tokenize)

    def ask_all(self: heads._Asker, probes: object, tell: object) -> dict[str, list[np.ndarray]]:
        """Heads 5 and 2 find the right passage, but in the judged half only head 5 does."""
        scores: dict[str, list[np.ndarray]] = {}
        for kind in KINDS:
            scores[kind] = []
            for number, place in enumerate(planted.places):
                values = np.tile(np.linspace(1, 0, len(planted.texts), dtype=np.float32), (8, 1))
                values[5, place] = 9.0
                if number % 2 == 0:
                    values[2, place] = 9.0
                scores[kind].append(values)
        return scores

    monkeypatch.setattr(heads._Asker, "ask_all", ask_all)
    monkeypatch.setattr(heads, "MAX_HEADS", 2)
    with open_model(tiny_model_path) as model:
        found = find_heads(model, prose(1200), FEW)  # type: ignore[arg-type]  # it is one
    assert found.heads == ((0, 2), (1, 1))
    assert found.recall["landmarks"]["paraphrased"] == [1.0, 1.0]
    assert found.to_json()["bytes_per_token"] == 2 * (16 + 4)


def test_the_echo_engine_is_not_asked() -> None:
    assert not isinstance(EchoModel(), HeadModel)
