"""Passages chosen over several shards are those that one index of everything would choose."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.index import LexicalIndex
from localctx.selection.shards import TermHolders, best_of_shard, common_weights, merged

WORDS = ["harbour", "ship", "salt", "rope", "news", "clerk"]


@dataclass(frozen=True)
class Block:
    """What the index wants of one."""

    text: str
    heading_path: tuple[str, ...] = ()
    page: int | None = None
    page_label: str | None = None


Scored = list[tuple[float, int, int]]


def chosen(shards: list[list[str]], question: str, k: int) -> Scored:
    """(score, shard, block) of what is read, best first."""
    held: list[list[TermHolders]] = []
    for texts in shards:
        with LexicalIndex.build(map(Block, texts)) as index:
            held.append([TermHolders(weight, blocks) for weight, blocks in index.holders(question)])
    terms = [term.weight for term in held[0]]
    weights = common_weights(
        terms, list(map(len, shards)), [[len(term.blocks) for term in one] for one in held]
    )
    _, kept = merged([best_of_shard(one, weights, k) for one in held], k)
    found = [(score, number, block) for number, shard in enumerate(kept) for score, block in shard]
    return sorted(found, key=lambda one: (-one[0], one[1], one[2]))


texts = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), min_size=1, max_size=12
)


@settings(deadline=None, max_examples=60)
@given(
    texts,
    st.integers(1, 4),
    st.integers(1, 6),
    st.sampled_from(["salt and rope?", "ship", "news of a clerk"]),
)
def test_any_split_gives_the_scores_and_passages_of_the_whole(
    blocks: list[str], n_shards: int, k: int, question: str
) -> None:
    whole = chosen([blocks], question, len(blocks))
    parts = [blocks[n::n_shards] for n in range(n_shards)]
    split = chosen([part for part in parts if part], question, k)
    back = sorted(((score, block * n_shards + shard) for score, shard, block in split), reverse=True)
    threshold = whole[min(k, len(whole)) - 1][0] if whole else 1.0
    wanted = sorted(((score, block) for score, _, block in whole if score >= threshold - 1e-9), reverse=True)
    by_block = {block: score for score, block in back}
    for score, block in wanted:
        if score > threshold + 1e-9:
            assert by_block[block] == pytest.approx(score)
    assert len(back) >= min(k, len(whole))
    assert all(score >= threshold - 1e-9 for score, _ in back)


def test_a_term_that_is_common_elsewhere_counts_little() -> None:
    shards = [["salt", "rope"], ["rope " * 3] * 8]
    assert [one[1:] for one in chosen(shards, "salt rope", 1)] == [(0, 0)]


def test_without_any_hit_nothing_is_chosen() -> None:
    assert chosen([["salt"], ["rope"]], "elephant", 3) == []
    assert merged([], 3) == (0.0, [])
