"""The generated honesty set: what it holds, and what the support judgement makes of it."""

from __future__ import annotations

from collections import Counter

import pytest

from localctx.engine import EchoModel
from localctx.eval.honesty import measure
from localctx.eval.honesty_asked import Outcome, ask_generated
from localctx.eval.honesty_references import measure_references
from localctx.eval.honesty_texts import LANGUAGES, NOWHERE, SPLITS, texts
from localctx.settings import Settings


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("split", SPLITS)
def test_documents_hold_what_their_cases_say(split: str, language: str) -> None:
    for text in texts(split, language, 2):  # type: ignore[arg-type]  # one of SPLITS
        for case in text.cases:
            section = "".join(b.text for b in text.blocks if b.heading_path[-1:] == (case.entity,))
            assert case.value in section if case.value else case.question_kind in NOWHERE
            if case.answer_kind == "short":
                assert case.gold == "supported" and case.answer.casefold() == case.value.casefold()
        assert "{" not in text.markdown + "".join(case.question + case.answer for case in text.cases)


def test_a_quarter_of_the_questions_is_unanswerable() -> None:
    asked = {(n, c.question): c for n, t in enumerate(texts("judge", "en")) for c in t.cases}
    kinds = Counter(case.question_kind for case in asked.values())
    assert sum(kinds[kind] for kind in NOWHERE) >= sum(kinds.values()) / 4
    assert all(kinds[kind] for kind in NOWHERE)


def test_the_same_seed_is_the_same_document() -> None:
    assert [t.markdown for t in texts("judge", "de", 2)] == [t.markdown for t in texts("judge", "de", 2)]
    assert {t.markdown for t in texts("judge", "en", 2)}.isdisjoint(
        t.markdown for t in texts("calibrate", "en", 2)
    )


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_judgement_keeps_its_rates(language: str) -> None:
    rates = {
        name: n / of for name, (n, of) in measure("judge", n_seeds=1, languages=[language]).rates.items()
    }
    assert rates["false supported"] <= 0.02
    assert rates["false none"] <= 0.05
    assert rates["unanswerable supported"] <= 0.03
    assert rates["unanswerable declined"] >= 0.6
    assert rates["true answers supported"] >= 0.75
    assert rates["citation right"] >= 0.9


def test_a_judge_that_believes_everything_is_seen_through() -> None:
    report = measure("judge", n_seeds=1, languages=["en"], judge=lambda *_: "supported")
    n, of = report.rates["false supported"]
    assert n == of > 0
    assert report.rates["unanswerable declined"][0] == 0
    assert any(line.startswith("false supported") for line in report.lines())
    assert report.to_json()["rates"]["false supported"] == {"n": n, "of": of}


def test_a_model_that_always_says_the_same_is_counted() -> None:
    told: list[Outcome] = []
    model = EchoModel(lambda prompt: "Napoleon Bonaparte sailed to Elba in 1814.")
    report = ask_generated(model, Settings(store="off"), n_seeds=1, told=told.append)
    rates = report.rates()
    assert rates["accuracy"][0] == 0
    assert rates["false answers"] == (0, rates["false answers"][1])
    assert tuple(told) == report.outcomes
    assert len(report.to_json()["answers"]) == len(told) > 20


def test_references_are_followed_to_figures_that_no_search_finds() -> None:
    report = measure_references(EchoModel(), n_seeds=1)
    assert report.n == 12
    assert report.n_without <= 3 and report.n_with >= 11
    assert 0 < report.tokens_pulled < 300
    assert list(report.lines())
