"""What stands where: positions are contiguous, every token is restored or evaluated, budgets hold."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.assemble import Budget, NewTokens, Piece, StoredTokens, lay_out
from localctx.errors import UsageError

ROOMY = Budget(n_ctx=100_000, n_prefix=0, n_suffix=0, n_answer=0)

spans = st.tuples(st.integers(0, 400), st.integers(0, 60)).map(lambda pair: (pair[0], pair[0] + pair[1]))
new = st.lists(st.integers(0, 9), max_size=12).map(lambda tokens: NewTokens(tuple(tokens)))
stored = st.builds(
    lambda document, first, n, refresh: StoredTokens(
        document, first, tuple(1000 * document + at for at in range(first, first + n)), tuple(refresh)
    ),
    st.integers(1, 3),
    st.integers(0, 300),
    st.integers(1, 200),
    st.lists(spans, max_size=4),
)
pieces = st.lists(st.one_of(new, stored), max_size=8)


@settings(deadline=None, max_examples=200)
@given(pieces, st.lists(st.integers(0, 9), max_size=40), st.booleans())
def test_every_token_is_restored_or_evaluated_once(
    chosen: list[Piece], prefix: list[int], prefix_is_stored: bool
) -> None:
    layout = lay_out(prefix, chosen, ROOMY, prefix_is_stored=prefix_is_stored)
    assert list(layout.tokens) == prefix + [token for piece in chosen for token in piece.tokens]
    restored = [at for s in layout.restored for at in range(s.position, s.position + s.n_tokens)]
    evaluated = [at for start, end in layout.evaluated for at in range(start, end)]
    assert sorted(restored + evaluated) == list(range(len(layout.tokens)))
    assert (layout.n_restored, layout.n_evaluated) == (len(restored), len(evaluated))
    assert restored == sorted(restored)
    ends, at = [], len(prefix)
    for piece in chosen:
        at += len(piece.tokens)
        ends += [(piece.document, at)] if isinstance(piece, StoredTokens) else []
    assert list(layout.ends) == ends


@settings(deadline=None, max_examples=200)
@given(pieces)
def test_a_restored_token_is_the_documents_own(chosen: list[Piece]) -> None:
    layout = lay_out([7, 7, 7], chosen, ROOMY)
    for stretch in layout.restored[1:]:
        assert stretch.document is not None
        wanted = [1000 * stretch.document + stretch.first + k for k in range(stretch.n_tokens)]
        assert list(layout.tokens[stretch.position : stretch.position + stretch.n_tokens]) == wanted


@settings(deadline=None, max_examples=200)
@given(pieces)
def test_what_is_refreshed_is_evaluated(chosen: list[Piece]) -> None:
    layout = lay_out([], chosen, ROOMY)
    evaluated = {at for start, end in layout.evaluated for at in range(start, end)}
    at = 0
    for piece in chosen:
        for offset in range(len(piece.tokens)):
            if isinstance(piece, NewTokens):
                assert at in evaluated
            else:
                place = piece.first + offset
                asked = any(start <= place < end for start, end in piece.refresh)
                assert (at in evaluated) is asked
            at += 1


@settings(deadline=None, max_examples=100)
@given(pieces, st.integers(0, 50), st.integers(0, 50))
def test_the_budget_is_respected_to_the_token(chosen: list[Piece], n_suffix: int, n_answer: int) -> None:
    prefix = [1, 2, 3]
    n_body = sum(len(piece.tokens) for piece in chosen)
    fits = Budget(len(prefix) + n_body + n_suffix + n_answer, len(prefix), n_suffix, n_answer)
    assert len(lay_out(prefix, chosen, fits).tokens) == len(prefix) + n_body
    short = Budget(fits.n_ctx - 1, len(prefix), n_suffix, n_answer)
    with pytest.raises(UsageError, match="room for"):
        lay_out(prefix, chosen, short)


def test_neighbours_of_one_document_are_one_stretch() -> None:
    layout = lay_out([0], [StoredTokens(1, 10, (1, 2)), StoredTokens(1, 12, (3,))], ROOMY)
    assert [(s.first, s.n_tokens, s.position) for s in layout.restored[1:]] == [(10, 3, 1)]
    assert all(a.position + a.n_tokens <= b.position for a, b in pairwise(layout.restored))


def test_documents_with_equal_places_stay_apart() -> None:
    layout = lay_out([], [StoredTokens(1, 0, (1, 2)), StoredTokens(2, 2, (3,))], ROOMY)
    assert [s.document for s in layout.restored] == [1, 2]
