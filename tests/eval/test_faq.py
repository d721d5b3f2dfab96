"""Pairs read from pages, and the ranks of the right passages."""

from __future__ import annotations

from pathlib import Path

import pytest

from localctx.errors import UsageError
from localctx.eval import faq
from localctx.eval.faq import Pair, read_pairs, reciprocal_ranks
from localctx.values import Scores

PAGE = """<html><body><section id="a"><h1>All</h1>
<section><h2>Who built the mine?<a>¶</a></h2><p>Anna Feld built it, long ago.</p></section>
<section><h2>On rivers</h2><section><h3>How long is the Orle?</h3><p>212 km.</p></section>
<section><h3>No question</h3><p>Nothing.</p></section></section>
<section><h2>Empty?</h2></section></section></body></html>"""


def test_pairs_are_the_innermost_sections_that_ask(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(PAGE)
    (tmp_path / "b.html").write_text(PAGE)
    assert read_pairs(tmp_path) == [
        Pair("Who built the mine?", "Anna Feld built it, long ago."),
        Pair("How long is the Orle?", "212 km."),
    ]


def test_a_folder_without_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no questions"):
        read_pairs(tmp_path)


def test_the_first_right_passage_counts_and_none_without_evidence() -> None:
    scores = {"a": Scores("a", (0.1, 0.9, 0.5)), "b": Scores("b", (0.0, 1.0, 0.0))}
    assert reciprocal_ranks(scores, (0, 2)) == {"a": 0.5, "b": 0.0}
    assert reciprocal_ranks(scores, (1,)) == {"a": 1.0, "b": 1.0}


@pytest.mark.model
def test_the_table_of_a_few_pairs(
    minilm_path: Path, smollm2_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCALCTX_EMBEDDER")
    assert minilm_path.exists() and smollm2_path.exists()
    pairs = [
        Pair(f"How are {things} made?", f"A workshop for {things} stands in {town}. " * 20)
        for things, town in (("boats", "Tannau"), ("bells", "Quarz"), ("gloves", "Orle"), ("clocks", "Feld"))
    ]
    rows = faq.measure(pairs)
    assert {row.selector for row in rows} >= {"lexical", "dense", "lexical+dense", "fused"}
    assert sum(row.n_questions for row in rows if row.selector == "fused") == len(pairs)
    assert all(row.mrr == 1.0 for row in rows if row.selector == "fused")
