"""The scan finds, in INT8 columns of un-rotated keys, what NumPy finds in f32."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx._native import Rope, Run, State, encode, scan, scan_encode
from native import twin

HEAD_DIM = 32
TABLE = 0.7 ** np.arange(HEAD_DIM / 2)
HEADS = [(1, 0), (0, 1), (0, 0)]


def state_of(n_tokens: int, rotation: Rope, seed: int = 0) -> tuple[State, list[np.ndarray]]:
    """Two layers of two heads; and the keys before they were rotated."""
    random = np.random.default_rng(seed)
    plain = [random.standard_normal((n_tokens, 2 * HEAD_DIM)).astype(np.float16) for _ in range(2)]
    positions = np.sort(random.choice(9 * n_tokens, n_tokens, replace=False)).astype(np.int32)
    keys = [rotation.turn(rows, positions) for rows in plain]
    return State(twin.write_blob(twin.Blob(positions, keys, plain))), plain


@pytest.mark.parametrize("neox", [False, True])
def test_columns_hold_unrotated_keys_of_states_and_runs(neox: bool) -> None:
    rotation = Rope(TABLE, HEAD_DIM, neox=neox, magnitude=1.2)
    state, plain = state_of(300, rotation)
    run = Run(encode(state, 100, 100, rotation, "f16"))
    for source, first, offset in ((state, 100, 0), (run, 0, 100)):
        codes, scales = scan_encode(source, first, 100, rotation, HEADS)
        assert codes.shape == (100, 3, HEAD_DIM)
        assert codes.dtype == np.int8
        assert scales.shape == (100, 3)
        assert scales.dtype == np.float32
        for index, (layer, head) in enumerate(HEADS):
            rows = slice(first + offset, first + offset + 100)
            expected = plain[layer][rows, head * HEAD_DIM : (head + 1) * HEAD_DIM].astype(np.float32)
            got = codes[:, index] * scales[:, index, None]
            assert np.abs(got - expected).max() < np.abs(expected).max() / 127
            assert np.abs(codes[:, index]).max(axis=1).tolist() == [127] * 100


def test_pieces_concatenate() -> None:
    rotation = Rope(TABLE, HEAD_DIM, neox=True)
    state, _ = state_of(290, rotation)
    whole = scan_encode(state, 0, 290, rotation, HEADS, n_threads=1)
    pieces = [scan_encode(state, first, n, rotation, HEADS) for first, n in ((0, 128), (128, 128), (256, 34))]
    for part in (0, 1):
        np.testing.assert_array_equal(np.concatenate([piece[part] for piece in pieces]), whole[part])


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 3),
    st.integers(1, 20),
    st.sampled_from([3, 16, 24, 64, 80]),
    st.integers(0, 12),
    st.integers(0, 99),
)
def test_scores_are_numpys(n_heads: int, n_queries: int, head_dim: int, n_blocks: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    codes = random.integers(-127, 128, (200, n_heads, head_dim), np.int8)
    scales = random.random((200, n_heads), np.float32)
    queries = random.standard_normal((n_queries, n_heads, head_dim)).astype(np.float32)
    starts = np.sort(random.integers(0, 201, n_blocks + 1))
    got = scan(codes, scales, queries, starts)
    assert got.shape == (n_queries, n_heads, n_blocks)
    keys = codes.astype(np.float32) * scales[..., None]
    rounding = np.abs(queries).max() / 2**16 * np.abs(keys).sum(axis=2).max()  # of queries to 16 bits
    scores = np.einsum("thd,qhd->qht", keys, queries)
    for block in range(n_blocks):
        inside = scores[:, :, starts[block] : starts[block + 1]]
        if inside.shape[2]:
            np.testing.assert_allclose(got[:, :, block], inside.max(axis=2), rtol=1e-5, atol=rounding)
        else:
            assert (got[:, :, block] == -np.inf).all()


def test_a_planted_key_is_found() -> None:
    rotation = Rope(TABLE, HEAD_DIM, neox=True)
    state, plain = state_of(2000, rotation)
    codes, scales = scan_encode(state, 0, 2000, rotation, HEADS)
    queries = np.stack(
        [
            [
                3 * plain[layer][token, head * HEAD_DIM : (head + 1) * HEAD_DIM].astype(np.float32)
                for layer, head in HEADS
            ]
            for token in (5, 700, 1999)
        ]
    )
    best = scan(codes, scales, queries, np.arange(0, 2001, 100)).argmax(axis=2)
    assert best.tolist() == [[0] * 3, [7] * 3, [19] * 3]


def test_what_cannot_be_scanned_is_refused() -> None:
    rotation = Rope(TABLE, HEAD_DIM, neox=True)
    state, _ = state_of(10, rotation)
    for first, n, heads, message in (
        (0, 11, HEADS, "rows"),
        (-1, 2, HEADS, "count from 0"),
        (0, 2, [(2, 0)], "no head 0 of layer 2"),
        (0, 2, [(0, 2)], "no head 2 of layer 0"),
        (0, 2, [(0, -1)], "count from 0"),
    ):
        with pytest.raises(ValueError, match=message):
            scan_encode(state, first, n, rotation, heads)
    codes, scales = scan_encode(state, 0, 10, rotation, HEADS)
    queries = np.ones((2, 3, HEAD_DIM), np.float32)
    starts = np.array([0, 10])
    for arguments in (
        (codes, scales[:9], queries, starts),
        (codes, scales, queries[:, :2], starts),
        (codes, scales, queries[:, :, :8], starts),
        (codes, scales, queries, starts[:0]),
        (codes, scales, queries, np.array([0, 11])),
        (codes, scales, queries, np.array([3, 2])),
        (codes, scales, queries * np.nan, starts),
    ):
        with pytest.raises((ValueError, TypeError)):
            scan(*map(np.ascontiguousarray, arguments))
    with pytest.raises(TypeError):
        scan(codes.astype(np.float32), scales, queries, starts)


REPEAT = """
import sys
import numpy as np
from localctx._native import scan
random = np.random.default_rng(3)
for dim in (64, 40):
    codes = random.integers(-127, 128, (999, 5, dim), np.int8)
    scales = random.random((999, 5), np.float32)
    queries = random.standard_normal((13, 5, dim)).astype(np.float32)
    sys.stdout.buffer.write(scan(codes, scales, queries, np.arange(0, 1000, 37)).tobytes())
"""


def test_all_instructions_give_the_same_bytes() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", REPEAT],
            env={**os.environ, "LOCALCTX_SIMD": level},
            capture_output=True,
            check=True,
        ).stdout
        for level in ("scalar", "")
    }
    assert len(outputs) == 1
