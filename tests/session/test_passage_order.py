"""Which of many passages are led by header lines, and where the others stand."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from session.test_header_lines import TOKENS, passage
from session.test_kept_kv import Place, chapters

from localctx.assemble import BEST_LAST_FROM, NewTokens, Piece, StoredTokens
from localctx.session import placing, streaming
from localctx.session.passage_order import ordered
from localctx.session.whole_runs import MANY_PASSAGES

GAP = 5 * TOKENS
RUN: Any = SimpleNamespace(tokens_of=lambda number: (0, GAP * number, GAP * number + TOKENS))
SECTIONS = chapters(26)
QUESTION = "What is the code of gate 3, gate 9, gate 12 and gate 15?"


def order(numbers: Sequence[int], ranked: Sequence[int], n_named: int) -> tuple[list[int], int]:
    """The numbers of the blocks as they are put in, and how many are unnamed."""
    passages = [passage(number, f"Part {number}", GAP * number) for number in numbers]
    found, unnamed = ordered(RUN, passages, numbers, ranked, n_named)
    return [one.first_token // GAP for one in found], len(unnamed)


def test_what_ranks_low_comes_first_and_the_best_last() -> None:
    numbers, ranked = [1, 2, 3, 4, 5, 6], [4, 9, 2, 6, 1, 3]
    assert len(numbers) == BEST_LAST_FROM
    assert order(numbers, ranked, 2) == ([1, 3, 6, 2, 5, 4], 3)
    assert order(numbers, ranked, 6) == ([1, 2, 3, 5, 6, 4], 0)
    assert order(numbers, ranked, 1) == ([1, 2, 3, 6, 5, 4], 4)
    assert order(numbers, [], 1) == (numbers, 0)


def test_passages_without_a_rank_are_named() -> None:
    assert order([1, 2, 3, 4, 5, 6], [4, 2, 6], 1) == ([2, 6, 1, 3, 5, 4], 2)


def test_what_follows_a_named_passage_stays_with_it() -> None:
    run: Any = SimpleNamespace(tokens_of=lambda number: (0, TOKENS * number, TOKENS * number + TOKENS))
    numbers = [0, 1, 2, 5, 6, 9, 11]
    passages = [passage(number, "Part", TOKENS * number) for number in numbers]
    found, unnamed = ordered(run, passages, numbers, [1, 6, 9, 11, 0, 2, 5], 2)
    assert [one.first_token // TOKENS for one in found] == [9, 11, 5, 6, 0, 1, 2]
    assert sorted(one.first_token // TOKENS for one in unnamed) == [0, 2, 5, 9, 11]


def test_a_widened_stretch_may_begin_in_the_middle_of_its_block() -> None:
    passages = [passage(0, "One", 3), passage(1, "Two", GAP + 3)]
    assert ordered(RUN, passages, [0, 1], [1, 0], 1) == (passages, {passages[0]})


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory, tiny_model_path: Any) -> tuple[Place, str]:
    """A text of many sections, in a store."""
    place = Place(tmp_path_factory.mktemp("sections"), tiny_model_path)
    file = place.write(SECTIONS)
    place.index(file)
    return place, file


@pytest.mark.parametrize(
    ("kv", "n_named"),
    [
        (f"budget={64 * (MANY_PASSAGES + 8)},block=64,refresh=0", 3),
        (f"budget={64 * (MANY_PASSAGES + 8)},block=64,refresh=100%", None),
        (f"budget={64 * MANY_PASSAGES},block=64,refresh=0", None),
    ],
)
def test_header_lines_lead_the_best_of_many_where_nothing_is_evaluated_again(
    indexed: tuple[Place, str], monkeypatch: pytest.MonkeyPatch, kv: str, n_named: int | None
) -> None:
    seen: list[list[Piece]] = []
    lay_out = placing.lay_out

    def watched(prefix: Sequence[int], pieces: Sequence[Piece], *rest: Any, **more: Any) -> Any:
        seen.append(list(pieces))
        return lay_out(prefix, pieces, *rest, **more)

    monkeypatch.setattr(placing, "lay_out", watched)
    monkeypatch.setattr(streaming, "N_NAMED", 3)
    monkeypatch.setattr(streaming, "_have_room", lambda *_: False)  # passages as they are
    place, file = indexed
    answer = place.ask(file, question=QUESTION, strategy="stream", kv=f"rank=lexical,{kv}")
    pieces = seen[-1]
    headers = [
        at for at, piece in enumerate(pieces) if isinstance(piece, NewTokens) and len(piece.tokens) > 2
    ]
    firsts = [piece.first for piece in pieces if isinstance(piece, StoredTokens)]
    n_before = sum(isinstance(piece, StoredTokens) for piece in pieces[: headers[0]])
    assert len(firsts) >= 8
    if n_named is None:
        assert n_before == 0
        assert len(headers) > 3
    else:
        assert 0 < len(headers) <= n_named
        assert 0 < n_before < len(firsts)
        assert firsts[:n_before] == sorted(firsts[:n_before])
        assert answer.tokens.evaluated < 30 * len(headers) + 60
    assert answer.coverage.tokens_attended <= 64 * (MANY_PASSAGES + 8)
