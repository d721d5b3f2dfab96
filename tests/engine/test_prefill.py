"""Plans of a streaming prefill: what is evaluated when, and what it attends to."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.engine.prefill import chunk_tokens, plan_prefill, unit_groups
from localctx.errors import UsageError
from localctx.kv import RECALL_CHUNK_TOKENS, RUN_TOKENS, PrefillPolicy

SIZES = st.integers(1, 20_000)
RUNS = st.integers(0, 40)
WINDOWS = st.integers(0, 3000)
SINKS = st.integers(0, 1500)
BATCHES = st.sampled_from([48, 128, 512, 1000, 1024])


N_POSITIONS = 9000


def attended(
    policy: PrefillPolicy, n_tokens: int, first: int, n_left: int, n_chunk: int
) -> dict[int, tuple[int, int]]:
    """Each token that is handed out → the first token before it that is in the cache, and its own position
    behind the prefix; the rules of steps are checked.
    """
    plan = plan_prefill(policy, n_tokens, first, n_left, n_chunk, N_POSITIONS)
    held_from = held_to = plan.lead[0].start if plan.lead else plan.left_from
    seen = {}
    for step in plan.lead:
        assert step.start == held_to
        assert step.base == plan.left_base
        assert not step.is_wanted
        held_to = step.end
    assert held_to == plan.left_from
    held_to = first
    assert plan.steps[0].base == plan.left_base or not first
    for step in plan.steps:
        if step.begins_anew:
            held_from = held_to = step.start
        held_from = max(held_from, step.keep_from)
        assert step.start == held_to
        assert 0 < step.end - step.start <= n_chunk
        held_to = step.end
        assert step.base + held_from >= 0
        assert step.base + step.end <= N_POSITIONS
        if step.is_wanted:
            assert step.end == n_tokens or step.end % RUN_TOKENS == 0
            seen |= {token: (held_from, step.base + token) for token in range(step.start, step.end)}
    return seen


@given(SIZES, RUNS, WINDOWS, SINKS, BATCHES)
@settings(deadline=None, max_examples=200)
def test_sinks_stay_and_the_window_moves_behind_them(
    n_tokens: int, run: int, window: int, sinks: int, n_batch: int
) -> None:
    policy = PrefillPolicy("window", window, sinks)
    first = min(run * RUN_TOKENS, (n_tokens - 1) // RUN_TOKENS * RUN_TOKENS)
    n_chunk = chunk_tokens(policy, 7, n_tokens, 10**6, n_batch)
    plan = plan_prefill(policy, n_tokens, 0, 0, n_chunk, N_POSITIONS)
    n_sinks = -(-sinks // RUN_TOKENS) * RUN_TOKENS
    assert plan.n_sinks == n_sinks
    held = -(-window // RUN_TOKENS) * RUN_TOKENS
    for step in plan.steps:
        if step.start <= n_sinks:
            assert (step.keep_from, step.base) == (0, 0)
        else:
            assert step.keep_from == max(n_sinks, step.start - held)
            assert step.base + step.keep_from >= n_sinks  # never on the sinks' places
        assert step.base + step.end <= N_POSITIONS
    for n_left in {first, min(first, n_sinks + held + n_chunk)}:
        rest = plan_prefill(policy, n_tokens, first, n_left, n_chunk, N_POSITIONS)
        wanted = [step for step in plan.steps if step.end > first]
        assert [(s.end, s.keep_from, s.base, s.lift) for s in rest.steps] == [
            (s.end, s.keep_from, s.base, s.lift) for s in wanted
        ]
        assert (rest.left_base, rest.left_lift) == (rest.steps[0].base, rest.steps[0].lift)
        assert rest.left_from == (rest.steps[0].keep_from if first else 0)
        assert rest.left_from == 0 or rest.left_from >= n_sinks


@given(st.integers(1, 100_000), WINDOWS, SINKS, BATCHES, st.integers(N_POSITIONS, 40_000))
@settings(deadline=None, max_examples=100)
def test_the_prefix_follows_the_window_until_positions_are_too_high(
    n_tokens: int, window: int, sinks: int, n_batch: int, highest: int
) -> None:
    policy = PrefillPolicy("window", window, sinks)
    n_chunk = chunk_tokens(policy, 7, n_tokens, 10**6, n_batch)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("localctx.engine.prefill.HIGHEST_POSITION", highest)
        plan = plan_prefill(policy, n_tokens, 0, 0, n_chunk, N_POSITIONS)
    n_lowered = 0
    for before, step in pairwise(plan.steps):
        is_rebased = step.base != before.base
        assert step.lift + step.base + step.end <= highest
        if is_rebased:
            assert step.base + step.keep_from == plan.n_sinks
        stays = step.lift + step.base == before.lift + before.base
        assert stays or (is_rebased and step.lift == 0)
        n_lowered += not stays
    assert plan.n_rebased == len({step.base for step in plan.steps}) - 1
    assert n_lowered <= n_tokens // (highest - N_POSITIONS + 1)


@given(SIZES, RUNS, WINDOWS, BATCHES, st.sampled_from(["exact", "window", "lazy"]))
@settings(deadline=None, max_examples=200)
def test_every_token_is_handed_out_once_and_a_resumed_stream_attends_to_the_same(
    n_tokens: int, run: int, window: int, n_batch: int, kind: str
) -> None:
    policy = PrefillPolicy(kind, window)  # type: ignore[arg-type]  # one of the literals
    n_tokens = min(n_tokens, N_POSITIONS) if kind == "exact" else n_tokens
    first = min(run * RUN_TOKENS, (n_tokens - 1) // RUN_TOKENS * RUN_TOKENS)
    n_chunk = chunk_tokens(policy, 7, n_tokens, 10**6, n_batch)
    whole = attended(policy, n_tokens, 0, 0, n_chunk)
    n_left = first if kind != "lazy" else min(first, run % 5 * RUN_TOKENS)
    rest = attended(policy, n_tokens, first, n_left, n_chunk)
    shorter = attended(policy, max(1, n_tokens - 77), 0, 0, n_chunk)
    assert shorter == {token: seen for token, seen in whole.items() if token < n_tokens - 77} or not first
    assert list(whole) == list(range(n_tokens))
    assert rest == {token: seen for token, seen in whole.items() if token >= first}
    segment = max(RUN_TOKENS, -(-window // RUN_TOKENS) * RUN_TOKENS)
    for token, (seen, position) in whole.items():
        match kind:
            case "exact":
                assert (seen, position) == (0, token)
            case "window":
                assert seen <= max(0, token - window)
                assert token - seen < window + RUN_TOKENS + n_chunk
            case "lazy":
                assert seen == max(0, token // segment - 1) * segment


@given(SIZES, WINDOWS, SINKS, BATCHES, st.integers(0, 300), st.integers(200, 9000))
@settings(deadline=None, max_examples=200)
def test_what_is_held_fits_the_context_or_is_refused(
    n_tokens: int, window: int, sinks: int, n_batch: int, n_prefix: int, n_ctx: int
) -> None:
    for kind in ("exact", "window", "lazy"):
        policy = PrefillPolicy(kind, window, sinks)  # type: ignore[arg-type]  # one of the literals
        try:
            n_chunk = chunk_tokens(policy, n_prefix, n_tokens, n_ctx, n_batch)
        except UsageError as error:
            assert "--ctx" in error.hint
            assert chunk_tokens(policy, n_prefix, n_tokens, 10**6, n_batch)
            continue
        plan = plan_prefill(policy, n_tokens, 0, 0, n_chunk, max(n_ctx, n_tokens) - n_prefix)
        start = 0
        for step in plan.steps:
            start = step.start if step.begins_anew else max(start, step.keep_from)
            n_sinks = plan.n_sinks if start else 0
            assert n_prefix + n_sinks + step.end - start <= n_ctx


@given(SIZES, RUNS, WINDOWS, SINKS, st.integers(1, 6), st.booleans())
@settings(deadline=None, max_examples=200)
def test_there_is_always_room_for_what_is_put_back(
    n_tokens: int, run: int, window: int, sinks: int, routed: int, is_strided: bool
) -> None:
    policy = PrefillPolicy("window", window, sinks, routed, 512 if is_strided else 0, "lexical")
    assert chunk_tokens(policy, 7, n_tokens, 10**6, 2048) == RECALL_CHUNK_TOKENS
    n_held = (
        RECALL_CHUNK_TOKENS + policy.recalled_tokens + sum(-(-n // RUN_TOKENS) for n in (sinks, window)) * 128
    )
    n_positions = max(N_POSITIONS, n_held)
    whole = plan_prefill(policy, n_tokens, 0, 0, RECALL_CHUNK_TOKENS, n_positions)
    for step in whole.steps:
        n_evicted = step.keep_from - whole.n_sinks
        if n_evicted > 0:
            room = step.base + step.keep_from - whole.n_sinks
            assert room >= min(policy.recalled_tokens, n_evicted)
        assert step.start % RECALL_CHUNK_TOKENS == 0
        assert step.base + step.end <= n_positions
    first = min(run * RUN_TOKENS, n_tokens - 1) // RECALL_CHUNK_TOKENS * RECALL_CHUNK_TOKENS
    rest = plan_prefill(policy, n_tokens, first, first, RECALL_CHUNK_TOKENS, n_positions)
    assert rest.steps == tuple(step for step in whole.steps if step.end > first)


def test_left_context_that_is_missing_or_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="256 wanted"):
        plan_prefill(PrefillPolicy("window", 256), 2000, 1024, 128, 512, 4096)
    with pytest.raises(ValueError, match="1024 wanted"):
        plan_prefill(PrefillPolicy("exact"), 2000, 1024, 896, 512, 4096)
    with pytest.raises(ValueError, match="before token 100"):
        plan_prefill(PrefillPolicy("lazy", 256), 2000, 100, 0, 512, 4096)


@given(st.lists(st.integers(1, 700), min_size=1, max_size=30), st.integers(1, 8), st.data())
@settings(deadline=None)
def test_units_come_in_order_within_a_batch_or_alone(
    lengths: list[int], n_seq: int, data: st.DataObject
) -> None:
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    first = data.draw(st.sampled_from(starts))
    groups = list(unit_groups(starts, sum(lengths), first, 512, n_seq))
    units = [unit for group in groups for unit in group]
    assert units == [(a, a + n) for a, n in zip(starts, lengths, strict=True) if a >= first]
    for group in groups:
        assert len(group) <= n_seq
        assert len(group) == 1 or group[-1][1] - group[0][0] <= 512


def test_without_starts_every_run_is_a_unit() -> None:
    units = [unit for group in unit_groups((), 300, 128, 512, 4) for unit in group]
    assert units == [(128, 256), (256, 300)]
    for starts in ([5, 9], [0, 9, 9], [0, 400]):
        with pytest.raises(ValueError, match="units from token"):
            list(unit_groups(starts, 300, 0, 512, 4))
