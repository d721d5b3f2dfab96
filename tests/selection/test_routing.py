"""Which earlier runs are put back: by rare tokens, at strides, the same wherever a stream began."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.kv import MAX_ANCHORS, RUN_TOKENS, PrefillPolicy
from localctx.selection import LexicalRouter, recalled_runs
from localctx.selection.routing import anchor_runs

RARE = 5000
COMMON = range(40)


def stream_with(rare_in: dict[int, int], n_runs: int = 20) -> list[int]:
    """Common tokens; run r holds rare_in[r] once."""
    source = random.Random(1)
    tokens = [source.choice(COMMON) for _ in range(n_runs * RUN_TOKENS)]
    for run, token in rare_in.items():
        tokens[run * RUN_TOKENS + 17] = token
    return tokens


def recalled(tokens: list[int], policy: PrefillPolicy, start: int, first: int = 0) -> list[int]:
    return recalled_runs(
        policy, LexicalRouter(tokens), first, start - policy.window, start, min(start + 256, len(tokens))
    )


def test_the_run_that_shares_a_rare_token_comes_first() -> None:
    tokens = stream_with({3: RARE, 7: RARE + 1, 18: RARE})
    by_one = PrefillPolicy("window", 256, routed=1)
    assert recalled(tokens, by_one, 18 * RUN_TOKENS) == [3]
    tokens[18 * RUN_TOKENS + 200] = RARE + 1
    assert recalled(tokens, PrefillPolicy("window", 256, routed=2), 18 * RUN_TOKENS) == [3, 7]


def test_of_equals_the_later_and_none_without_evidence_or_outside() -> None:
    tokens = [n % 10 for n in range(20 * RUN_TOKENS)]
    for run in (2, 5, 9):
        tokens[run * RUN_TOKENS : (run + 1) * RUN_TOKENS] = [RARE] * RUN_TOKENS
    tokens[18 * RUN_TOKENS :] = [RARE] * (2 * RUN_TOKENS)
    policy = PrefillPolicy("window", 256, routed=2)
    assert recalled(tokens, policy, 18 * RUN_TOKENS) == [5, 9]
    assert recalled(tokens, PrefillPolicy("window", 256, routed=9), 18 * RUN_TOKENS) == [2, 5, 9]
    assert recalled(tokens, policy, 18 * RUN_TOKENS, first=6 * RUN_TOKENS) == [9]
    assert recalled(tokens, PrefillPolicy("window", 10 * RUN_TOKENS, routed=2), 18 * RUN_TOKENS) == [2, 5]


@given(st.integers(0, 40), st.integers(0, 400), st.integers(1, 9))
@settings(deadline=None)
def test_anchors_stand_at_multiples_and_are_few(first: int, n_runs: int, strides: int) -> None:
    end, stride = first + n_runs, strides * RUN_TOKENS
    found = anchor_runs(stride, first, end)
    assert len(found) <= MAX_ANCHORS
    assert all(first <= run < end and run % strides == 0 for run in found)
    if n_runs > strides:
        assert found
    if len(range(-(-first // strides) * strides, end, strides)) > MAX_ANCHORS:
        assert len(found) >= MAX_ANCHORS // 2  # spread over all of it


def test_anchors_and_routed_runs_are_different_ones_in_order() -> None:
    tokens = stream_with({4: RARE, 7: RARE, 18: RARE})
    policy = PrefillPolicy("window", 256, routed=2, stride=512)
    found = recalled(tokens, policy, 18 * RUN_TOKENS)
    assert found == sorted(set(found))
    assert {0, 4, 8, 12} < set(found)
    assert 7 in found
    assert len(found) == 6
    assert recalled_runs(PrefillPolicy("window", 256, stride=512), None, 0, 1024, 1280, 1536) == [0, 4]


def test_what_comes_later_and_where_the_stream_began_change_nothing() -> None:
    source = random.Random(3)
    tokens = [int(source.expovariate(0.01)) for _ in range(24 * RUN_TOKENS + 50)]
    policy = PrefillPolicy("window", 256, routed=3)
    whole = LexicalRouter(tokens)
    for start in range(512, len(tokens), 256):
        end = min(start + 256, len(tokens))
        wanted = recalled_runs(policy, whole, 0, start - 256, start, end)
        for other in (LexicalRouter(tokens[:end]), LexicalRouter([*tokens[:end], *range(700)])):
            assert recalled_runs(policy, other, 0, start - 256, start, end) == wanted
    again = recalled_runs(policy, whole, 0, 256, 512, 768)  # an earlier chunk, asked for last
    assert again == recalled_runs(policy, LexicalRouter(tokens), 0, 256, 512, 768)


@pytest.mark.parametrize("tokens", [[], [7], [7] * 5000])
def test_streams_that_say_nothing(tokens: list[int]) -> None:
    scores = LexicalRouter(tokens).scores(0, len(tokens), len(tokens) // RUN_TOKENS)
    assert scores.shape == (len(tokens) // RUN_TOKENS,)
    assert np.isfinite(scores).all()
