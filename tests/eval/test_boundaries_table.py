"""The comparison of block policies: known topic changes, equal mean sizes, the answer's blocks."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from blocks.text_cases import GPT2_WORDS, WordRules

from localctx.eval.boundaries import main, measure, render, topics_of

TOKENIZE = WordRules(GPT2_WORDS, word_part=50)
NOUNS = ["ship captain", "oven baker", "violin soloist", "glacier climber", "verdict witness", "cider farmer"]
TOPICS = [
    "\n\n".join(
        f"The {' and the '.join(nouns.split())} were seen on day {day}; the {nouns.split()[0]} was praised."
        for day in range(3 + place % 3)
    )
    for place, nouns in enumerate(NOUNS)
]


def test_both_policies_at_the_same_mean_size() -> None:
    questions = [f"Who praised the {nouns.split()[0]}?" for nouns in NOUNS]
    fixed, adaptive = measure(TOPICS, questions, TOKENIZE, 60)
    assert (fixed.policy, adaptive.policy) == ("fixed", "adaptive")
    assert adaptive.mean_tokens == pytest.approx(fixed.mean_tokens, rel=0.25)
    assert adaptive.cut >= fixed.cut
    assert adaptive.purity > 0.7
    assert adaptive.first is not None
    assert adaptive.first >= 0.8
    assert render((fixed, adaptive)).count("\n") == 3


def test_a_block_of_two_topics_is_not_pure() -> None:
    fixed, _ = measure(TOPICS, [], TOKENIZE, 1000)
    assert fixed.n_blocks == 1
    assert fixed.cut == 0
    assert fixed.purity == pytest.approx(max(map(len, TOPICS)) / len("\n\n".join(TOPICS)), abs=0.01)
    assert fixed.first is None


def test_topics_are_drawn_by_their_seed_and_never_twice_in_a_row() -> None:
    text = "".join(
        f"# Part {n}\n\n" + "\n\n".join(f"{n} " * 100 for _ in range(6)) + "\n\n" for n in range(5)
    )
    topics = topics_of(text, 1, 40)
    assert topics == topics_of(text, 1, 40) != topics_of(text, 2, 40)
    assert all(a.split()[0] != b.split()[0] for a, b in pairwise(topics))


def test_topics_of_a_file_stand_between_lines_of_a_percent_sign(
    tmp_path: Path, tiny_model_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sprueche"
    path.write_text("\n%\n".join(["100 % der Kapitäne segeln.\n\nAlle.", *TOPICS]) + "\n%\n", "utf-8")
    main([str(path), "--language", "de", "--tokens", "64", "--model", str(tiny_model_path), "--json"])
    fixed, adaptive = json.loads(capsys.readouterr().out)
    assert fixed["n_blocks"] > len(TOPICS)
    assert adaptive["cut"] > 0
