"""Runs by token and tokens by run."""

from __future__ import annotations

from array import array

import pytest

from localctx.kv import KVSpace, PrefillPolicy
from localctx.session.token_stream import TokenStream

SPACE = KVSpace("model", "rope", (1, 2, 3))


@pytest.mark.parametrize(
    ("policy", "units"),
    [(PrefillPolicy("window", 256), ()), (PrefillPolicy("independent", 0), (0, 100, 400)),
     (PrefillPolicy("lazy", 256), ()), (PrefillPolicy("exact", 0), ())],
)  # fmt: skip
def test_each_token_is_in_the_run_that_says_so(policy: PrefillPolicy, units: tuple[int, ...]) -> None:
    stream = TokenStream(array("i", range(700)), SPACE, policy, units)
    assert len(stream.ids) == len(stream.spans) == stream.n_runs
    for token in range(700):
        first, end = stream.spans[stream.run_at(token)]
        assert first <= token < end
    assert list(stream.runs_of(0, 700)) == list(range(stream.n_runs))
    assert list(stream.runs_of(5, 5)) == []
    assert stream.n_tokens_of(range(stream.n_runs)) == 700


def test_units_matter_to_independent_alone() -> None:
    tokens = array("i", range(300))
    window = PrefillPolicy("window", 256)
    assert TokenStream(tokens, SPACE, window, (0, 50)).ids == TokenStream(tokens, SPACE, window).ids
    independent = PrefillPolicy("independent", 0)
    assert TokenStream(tokens, SPACE, independent, (0, 50)).spans[1] == (50, 178)
