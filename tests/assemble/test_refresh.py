"""Which sentences are evaluated again: the best ones, within the number of tokens allowed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.assemble import RefreshCandidate, pick_refresh

candidates = st.lists(
    st.builds(
        lambda start, n, score: RefreshCandidate(0, start, start + n, float(score)),
        st.integers(0, 100),
        st.integers(0, 40),
        st.integers(0, 3),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(candidates, st.integers(0, 400))
def test_the_limit_holds_and_order_stays(given_ones: list[RefreshCandidate], n_tokens: int) -> None:
    picked = pick_refresh(given_ones, n_tokens)
    assert sum(candidate.n_tokens for candidate in picked) <= n_tokens
    places = iter(given_ones)
    assert all(any(candidate is other for other in places) for candidate in picked)


@settings(deadline=None)
@given(candidates)
def test_all_are_taken_where_all_fit(given_ones: list[RefreshCandidate]) -> None:
    assert pick_refresh(given_ones, sum(c.n_tokens for c in given_ones)) == given_ones


def test_the_best_come_first() -> None:
    low, high, long = (
        RefreshCandidate(0, 0, 10, 1.0),
        RefreshCandidate(0, 10, 20, 2.0),
        RefreshCandidate(1, 0, 30, 3.0),
    )
    assert pick_refresh([low, high, long], 10) == [high]
    assert pick_refresh([low, high, long], 39) == [long]
    assert pick_refresh([low, high, long], 40) == [high, long]
