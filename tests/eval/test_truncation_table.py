"""The comparison of truncation: its questions, its baselines, its table."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from blocks.text_cases import GPT2_WORDS, WordRules

from localctx.eval.truncation import FACTS, baselines, measure, plant, render
from localctx.index.terms import content_words, stem

TOKENIZE = WordRules(GPT2_WORDS)
TEXT = " ".join(f"Volume {n} of the register was bound in calf by hand." for n in range(400))


def terms(text: str) -> set[str]:
    return set(map(stem, content_words(text)))


def test_half_of_the_questions_share_no_content_word_with_their_fact() -> None:
    assert len(FACTS) == 50
    for fact in FACTS:
        assert not terms(fact.fact) & terms(fact.paraphrased), fact
        assert terms(fact.fact) & terms(fact.asked), fact
    assert all(one.fact != other.fact for one, other in combinations(FACTS, 2))


def test_facts_are_planted_whole_in_an_order_of_their_own() -> None:
    planted = plant(TEXT, FACTS, 3)
    assert all(planted.count(fact.fact) == 1 for fact in FACTS)
    assert planted == plant(TEXT, FACTS, 3) != plant(TEXT, FACTS, 4)
    places = [planted.index(fact.fact) for fact in FACTS]
    assert places != sorted(places)


def test_the_baselines_use_their_budget() -> None:
    ways = baselines(TEXT, TOKENIZE, 400)
    assert ways["head"].startswith("Volume 0 ")
    assert ways["tail"].endswith("Volume 399 of the register was bound in calf by hand.")
    assert "Volume 0 " in ways["middle cut"]
    assert "Volume 399 " in ways["middle cut"]
    for name, left in ways.items():
        assert 330 <= len(TOKENIZE(left, True)) <= 400, name


def test_every_way_is_measured_within_the_budget() -> None:
    facts = FACTS[:6]

    def embed(some: list[str]) -> np.ndarray:  # type: ignore[type-arg]  # of floats
        """A vector that knows which fact a text belongs to."""
        known = [[text in (f.fact, f.asked, f.paraphrased) for f in facts] for text in some]
        rows = np.array([[*row, not any(row)] for row in known], np.float32)
        return rows

    report = measure(TEXT, TOKENIZE, 0.1, embed, facts=facts)  # type: ignore[arg-type]  # lists only
    rows = {row.name: row for row in report.rows}
    assert [row.asked for name, row in rows.items() if "condense" in name] == [6, 6]
    assert rows["condense, words and meaning"].paraphrased == 6
    assert rows["head"].asked <= 3
    assert all(row.n_tokens <= report.budget for row in report.rows)
    assert rows["condense, words"].terms > rows["uniform"].terms
    assert render(report).count("\n") == 3 + len(report.rows)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_seed_says_where(seed: int) -> None:
    assert plant(TEXT, FACTS[:3], seed).index(FACTS[0].fact) > 0
