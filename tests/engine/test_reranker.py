"""Scores of a tiny cross-encoder, beside the same in NumPy; long questions and passages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from engine.tiny_bert import N_CTX, WORDS, head, token_rows, write_tiny_bert, write_tiny_reranker

from localctx.engine.reranker import Reranker, open_reranker
from localctx.errors import ModelError


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reranker]:
    """The tiny cross-encoder, open."""
    with open_reranker(write_tiny_reranker(tmp_path_factory.mktemp("rerank") / "r.gguf")) as reranker:
        yield reranker


def by_numpy(words: str) -> float:
    """What the model says of one sequence of words."""
    parts = head()
    row = token_rows([WORDS.index(word) for word in words.split()])[0]
    inner = np.tanh(parts["cls.weight"] @ row + parts["cls.bias"])
    value = float((parts["cls.output.weight"] @ inner + parts["cls.output.bias"])[0])
    return 1 / (1 + np.exp(-value))


def test_scores_are_those_of_the_model(tiny: Reranker) -> None:
    passages = ["the river rises near tannau", "silver", "", "mine opened in 1 2"]
    found = tiny.scores("who opened the mine ?", passages)
    wanted = [by_numpy(f"[CLS] who opened the mine ? [SEP] {passage} [SEP]") for passage in passages]
    np.testing.assert_allclose(found, wanted, atol=3e-3)
    assert len({round(value, 3) for value in wanted}) > 2


def test_a_passage_too_long_is_judged_by_its_best_part(tiny: Reranker) -> None:
    words = WORDS[5:22] * 3
    room = N_CTX - 3 - 2
    parts = [" ".join(words[at : at + room]) for at in range(0, len(words), room)]
    wanted = max(by_numpy(f"[CLS] who does [SEP] {part} [SEP]") for part in parts)
    assert tiny.scores("who does", [" ".join(words)])[0] == pytest.approx(wanted, abs=3e-3)


def test_a_question_too_long_leaves_room(tiny: Reranker) -> None:
    found = tiny.scores("the river " * 500, ["mine", "silver " * 300] * 40)
    assert len(found) == 80
    assert all(0 < value < 1 for value in found)
    assert tiny.scores("who", []) == []


def test_an_embedder_is_no_reranker(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not a reranking model"):
        open_reranker(write_tiny_bert(tmp_path / "b.gguf"))
