"""Names of runs: what they depend on, and what they do not."""

from __future__ import annotations

import struct
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.kv import KVSpace, PrefillPolicy
from localctx.store import TokenChain, document_key, run_ids, run_spans
from localctx.store.identity import base_id

SPACE = KVSpace("model", "rope", (1, 2))
EXACT, WINDOW = PrefillPolicy("exact"), PrefillPolicy("window", 4096)
INDEPENDENT, LAZY = PrefillPolicy("independent"), PrefillPolicy("lazy", 256)
TOKENS = list(range(1000))
FIRST_ID, LAST_ID = "51a91620426cf316f38ff98ac298ccb9", "2a69cce87b3a6a902a541335d2c3f4d0"
KEY = "7b09aa89530aba7f279ccdd1a4371744"


def chained(tokens: list[int], policy: PrefillPolicy) -> list[bytes]:
    """The definition, written again: one chain over runs of 128."""
    before, ids = base_id(SPACE, policy), []
    for first in range(0, len(tokens), 128):
        run = tokens[first : first + 128]
        before = blake2b(before + struct.pack(f"<{len(run)}i", *run), digest_size=16).digest()
        ids.append(before)
    return ids


@pytest.mark.parametrize("policy", [EXACT, WINDOW])
def test_exact_and_window_are_one_chain(policy: PrefillPolicy) -> None:
    assert run_ids(SPACE, policy, TOKENS) == chained(TOKENS, policy)
    assert len(run_ids(SPACE, policy, TOKENS)) == 8


def test_ids_never_change_between_versions() -> None:
    """Stored KV is found again: a change here needs a new FORMAT_VERSION."""
    ids = run_ids(SPACE, WINDOW, TOKENS)
    assert (ids[0].hex(), ids[-1].hex()) == (FIRST_ID, LAST_ID)
    assert document_key(SPACE, WINDOW, "0" * 32) == KEY


@given(st.integers(0, 900), st.integers(0, 900), st.sampled_from([EXACT, WINDOW, LAZY]))
@settings(deadline=None, max_examples=50)
def test_what_is_appended_changes_only_the_tail(n_old: int, n_more: int, policy: PrefillPolicy) -> None:
    old = run_ids(SPACE, policy, TOKENS[:n_old])
    new = run_ids(SPACE, policy, TOKENS[:n_old] + [7] * n_more)
    assert new[: n_old // 128] == old[: n_old // 128]
    assert len(set(new)) == len(new) or policy == LAZY  # equal words after equal words are one run


def test_every_part_of_the_identity_counts() -> None:
    spaces = [
        SPACE,
        replace(SPACE, model="other"),
        replace(SPACE, rope="other"),
        replace(SPACE, prefix=(1,)),
        replace(SPACE, prefix=(12,)),
        KVSpace("modelr", "ope", (1, 2)),
    ]
    policies = [EXACT, WINDOW, PrefillPolicy("window", 1024), INDEPENDENT, LAZY, PrefillPolicy("lazy", 512)]
    firsts = {run_ids(space, policy, TOKENS)[0] for space in spaces for policy in policies}
    assert len(firsts) == len(spaces) * len(policies)
    changed = [*TOKENS[:500], -1, *TOKENS[501:]]
    old, new = run_ids(SPACE, WINDOW, TOKENS), run_ids(SPACE, WINDOW, changed)
    assert [a == b for a, b in zip(old, new, strict=True)] == [True] * 3 + [False] * 5


def test_a_window_counts_only_where_it_changes_the_numbers() -> None:
    for kind in ("exact", "independent"):
        short, long = (run_ids(SPACE, PrefillPolicy(kind, window), TOKENS) for window in (128, 4096))  # type: ignore[arg-type]  # a literal
        assert short == long


def test_independent_runs_begin_anew_at_each_unit_and_equal_clauses_share_them() -> None:
    clause = list(range(5000, 5300))
    first = run_ids(SPACE, INDEPENDENT, TOKENS[:200] + clause, [0, 200])
    second = run_ids(SPACE, INDEPENDENT, clause + TOKENS[:77], [0, 300])
    assert first[2:] == second[:3]
    assert run_spans(500, INDEPENDENT, [0, 200]) == [(0, 128), (128, 200), (200, 328), (328, 456), (456, 500)]
    assert run_ids(SPACE, INDEPENDENT, TOKENS) == chained(TOKENS, INDEPENDENT)  # one unit


def test_a_lazy_run_is_chained_from_the_cell_before_its_own() -> None:
    ids = run_ids(SPACE, LAZY, TOKENS)
    for run, run_id in enumerate(ids):
        cell = run * 128 // LAZY.window
        start = max(0, cell - 1) * LAZY.window
        assert run_id == chained(TOKENS[start : (run + 1) * 128], LAZY)[-1], run
    moved = run_ids(SPACE, LAZY, [9] * 512 + TOKENS)  # the same left context at another place
    assert ids[4:] == moved[8:]


def test_a_lazy_grid_that_begins_later_is_that_of_a_text_that_begins_there() -> None:
    plain, shifted = run_ids(SPACE, LAZY, TOKENS), run_ids(SPACE, LAZY, TOKENS, offset=128)
    assert shifted[:3] == plain[:3]
    for run, run_id in enumerate(shifted[3:], 3):
        start = 128 + ((run - 1) * 128 // LAZY.window - 1) * LAZY.window
        assert run_id == chained(TOKENS[start : (run + 1) * 128], LAZY)[-1], run
    assert not set(shifted[3:]) & set(plain)
    for n_tokens in (0, 1, 128, 300, 384, 385):
        assert len(run_ids(SPACE, LAZY, TOKENS[:n_tokens], offset=128)) == len(run_spans(n_tokens, LAZY))
    for offset in (-128, 1, 256):
        with pytest.raises(ValueError, match="offset"):
            run_ids(SPACE, LAZY, TOKENS, offset=offset)


@pytest.mark.parametrize("policy", [EXACT, WINDOW, LAZY, INDEPENDENT])
@pytest.mark.parametrize("n_tokens", [0, 1, 127, 128, 129, 1000])
def test_spans_cover_the_document(policy: PrefillPolicy, n_tokens: int) -> None:
    spans = run_spans(n_tokens, policy)
    assert [token for first, end in spans for token in range(first, end)] == list(range(n_tokens))
    assert len(run_ids(SPACE, policy, TOKENS[:n_tokens])) == len(spans)


@pytest.mark.parametrize("units", [[3, 2], [0, 0], [-1], [1000], [0, 1000]])
def test_units_that_are_no_offsets_are_refused(units: list[int]) -> None:
    with pytest.raises(ValueError, match="units"):
        run_ids(SPACE, INDEPENDENT, TOKENS, units)


@pytest.mark.parametrize("window", [0, 100, 200])
def test_a_lazy_window_is_whole_runs(window: int) -> None:
    with pytest.raises(ValueError, match="multiple of 128"):
        run_ids(SPACE, PrefillPolicy("lazy", window), TOKENS)


def span_after(*steps: tuple[Any, ...], space: KVSpace = SPACE, n_tokens: int = 2) -> bytes:
    """The id of the last tokens of a chain: (tokens) evaluated, or (tokens, source, row) restored."""
    chain = TokenChain(space)
    for step in steps:
        if len(step) == 1:
            chain.add_evaluated(*step)
        else:
            chain.add_restored(*step)
    return chain.span_id(n_tokens)


def test_a_span_is_known_by_all_that_it_saw() -> None:
    restored = (TOKENS[:50], b"run int4", 3)
    ids = [
        span_after(restored, (TOKENS[50:60],)),
        span_after(restored, (TOKENS[50:60],), n_tokens=3),
        span_after(restored, (TOKENS[50:61],)),
        span_after((TOKENS[:50], b"run int8", 3), (TOKENS[50:60],)),
        span_after((TOKENS[:50], b"run int4", 4), (TOKENS[50:60],)),
        span_after((TOKENS[:49], b"run int4", 3), (TOKENS[49:60],)),
        span_after((TOKENS[:49], b"run int4", 3), (TOKENS[49:50], b"run int4", 52), (TOKENS[50:60],)),
        span_after((TOKENS[:60],)),
        span_after((TOKENS[:60],), space=replace(SPACE, model="other")),
        span_after((TOKENS[:60],), space=replace(SPACE, rope="other")),
        span_after((TOKENS[:60],), space=replace(SPACE, prefix=(1,))),
    ]
    assert len(set(ids)) == len(ids)


def test_evaluated_tokens_count_alone_in_however_many_steps_they_came() -> None:
    whole = span_after((TOKENS[:60],))
    assert whole == span_after((TOKENS[:7],), (TOKENS[7:58],), (TOKENS[58:60],))
    chain = TokenChain(SPACE)
    chain.add_evaluated(TOKENS[:60])
    assert [chain.span_id(2), chain.span_id(2)] == [whole, whole]  # asking changes nothing
    chain.add_evaluated(TOKENS[60:61])
    assert chain.span_id(2) != whole


def test_sinks_count_where_there_are_any_and_older_ids_stay() -> None:
    plain, none, some, more = (
        run_ids(SPACE, policy, TOKENS)
        for policy in (WINDOW, *(PrefillPolicy("window", 4096, sinks) for sinks in (0, 128, 256)))
    )
    assert plain == none
    assert not set(plain) & set(some)
    assert not set(some) & set(more)
    assert run_ids(SPACE, PrefillPolicy("exact", 0, 128), TOKENS) == run_ids(SPACE, EXACT, TOKENS)


def test_where_runs_are_put_back_all_of_a_chunk_counts_for_each_of_its_runs() -> None:
    routed = PrefillPolicy("window", 4096, 0, 4, 0, "lexical")
    old, longer = run_ids(SPACE, routed, TOKENS), run_ids(SPACE, routed, [*TOKENS, 7])
    assert longer[:6] == old[:6]  # three whole chunks of two runs
    assert not set(longer[6:]) & set(old)
    changed = run_ids(SPACE, routed, [*TOKENS[:200], 7, *TOKENS[201:]])
    assert not set(changed) & set(old)
    equal = run_ids(SPACE, routed, [7] * 512)
    assert len(set(equal)) == 4


def test_what_is_put_back_counts_where_there_is_any_and_older_ids_stay() -> None:
    none = PrefillPolicy("window", 4096, 0, 0, 0, "")
    assert run_ids(SPACE, none, TOKENS) == run_ids(SPACE, WINDOW, TOKENS)
    others = [
        PrefillPolicy("window", 4096, 0, 4, 0, "lexical"),
        PrefillPolicy("window", 4096, 0, 4, 0, "other"),
        PrefillPolicy("window", 4096, 0, 5, 0, "lexical"),
        PrefillPolicy("window", 4096, 0, 0, 512),
        PrefillPolicy("window", 4096, 0, 0, 1024),
        PrefillPolicy("window", 4096, 128, 0, 1024),
    ]
    firsts = {run_ids(SPACE, policy, TOKENS)[0] for policy in (WINDOW, *others)}
    assert len(firsts) == len(others) + 1


@pytest.mark.parametrize("tokens", [[2**31], [-(2**31) - 1]])
def test_tokens_beyond_32_bits_are_no_tokens(tokens: list[int]) -> None:
    with pytest.raises(OverflowError):
        run_ids(SPACE, EXACT, tokens)
