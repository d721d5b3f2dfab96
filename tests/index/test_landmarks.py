"""Columns find in stored runs what NumPy finds in their keys; they are kept, and built again when damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from store.stored import HEAD_DIM, document_of, encoded_run, segment_files, tokens_of, write

from localctx import _native
from localctx.index import landmarks
from localctx.index.landmarks import HeadSet, LandmarkStream, best_of_blocks
from localctx.kv import RUN_TOKENS
from localctx.store import KVStore

N_TOKENS = 5 * RUN_TOKENS + 40
LAYERS = ((4, 1), (4, 1))  # four query heads share the one KV head of the runs
TOKENS = tokens_of(N_TOKENS)
STARTS = np.array([0, 100, 100, 300, 520, N_TOKENS], np.int64)


def heads_of(*heads: tuple[int, int]) -> HeadSet:
    """A set of the runs' model."""
    found = HeadSet.of(heads, LAYERS)
    assert found is not None
    return found


HEADS = heads_of((1, 3), (0, 0), (1, 0))


def questions(n: int = 5, seed: int = 1) -> np.ndarray:
    """Random queries of three heads."""
    return np.random.default_rng(seed).standard_normal((n, 3, HEAD_DIM)).astype(np.float32)


def stored(store: KVStore, name: str = "a.txt") -> LandmarkStream:
    """A document in the store."""
    ids = write(store, name, TOKENS)
    sizes = [RUN_TOKENS] * 5 + [40]
    return LandmarkStream(tuple(zip(ids, sizes, strict=True)), None, document_of(TOKENS, name).key)


def expected(queries: np.ndarray, starts: np.ndarray = STARTS) -> np.ndarray:
    """The same from the runs' decoded keys, in f32."""
    runs = [_native.Run(encoded_run(number, 40 if number == 5 else RUN_TOKENS)) for number in range(6)]
    keys = [np.concatenate([run.keys(layer) for run in runs]).astype(np.float32) for layer in range(2)]
    out = np.full((len(queries), 3, len(starts) - 1), -np.inf, np.float32)
    for head, (layer, _) in enumerate(HEADS.heads):
        for block in range(len(starts) - 1):
            if starts[block + 1] > starts[block]:
                products = queries[:, head] @ keys[layer][starts[block] : starts[block + 1]].T
                out[:, head, block] = products.max(axis=1)
    return out


def check(got: np.ndarray | None) -> None:
    """Equal but for the rounding to INT8."""
    assert got is not None
    np.testing.assert_allclose(got, expected(questions()), atol=0.25)


@pytest.fixture
def few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of two runs."""
    monkeypatch.setattr(landmarks, "GROUP_RUNS", 2)


@pytest.mark.parametrize("group", [1, 2, 128])
def test_blocks_are_matched_as_numpy_matches_them(
    group: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landmarks, "GROUP_RUNS", group)
    with KVStore.open(tmp_path) as store:
        got = best_of_blocks(store, stored(store), HEADS, questions(), STARTS)
        check(got)
        assert got is not None
        assert np.isneginf(got[:, :, 1]).all()  # the empty block


def test_columns_are_kept_in_one_file_and_read_from_it(
    tmp_path: Path, few_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KVStore.open(tmp_path) as store:
        stream = stored(store)
        n_files, size_before = len(segment_files(tmp_path)), store.size_bytes
        first = best_of_blocks(store, stream, HEADS, questions(), STARTS)
        assert len(segment_files(tmp_path)) == n_files + 1
        n_column = N_TOKENS * HEADS.bytes_per_token(HEAD_DIM)
        assert n_column <= store.size_bytes - size_before < n_column + 3 * 1024
        monkeypatch.setattr(_native, "scan_encode", lambda *_: pytest.fail("built again"))
        again = best_of_blocks(store, stream, HEADS, questions(), STARTS)
        np.testing.assert_array_equal(first, again)
    with KVStore.open(tmp_path) as store:
        np.testing.assert_array_equal(first, best_of_blocks(store, stream, HEADS, questions(), STARTS))


def test_they_go_with_their_document(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        stream = stored(store)
        best_of_blocks(store, stream, HEADS, questions(), STARTS)
        assert stream.document is not None
        store.remove(stream.document)
        assert segment_files(tmp_path) == []


def test_another_set_of_heads_has_columns_of_its_own(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        stream = stored(store)
        check(best_of_blocks(store, stream, HEADS, questions(), STARTS))
        n_files = len(segment_files(tmp_path))
        best_of_blocks(store, stream, heads_of((0, 1)), questions()[:, :1], STARTS)
        assert len(segment_files(tmp_path)) == n_files + 1
        shared = heads_of((1, 2), (0, 3), (1, 1))  # other query heads, the same keys
        assert shared.name == HEADS.name
        best_of_blocks(store, stream, shared, questions(), STARTS)
        assert len(segment_files(tmp_path)) == n_files + 1


def test_a_damaged_column_is_built_again(tmp_path: Path, few_runs: None) -> None:
    told: list[str] = []
    with KVStore.open(tmp_path) as store:
        stream = stored(store)
        before = set(segment_files(tmp_path))
        best_of_blocks(store, stream, HEADS, questions(), STARTS)
        (column,) = set(segment_files(tmp_path)) - before
    data = bytearray(column.read_bytes())
    data[-50] ^= 0x40
    column.write_bytes(data)
    with KVStore.open(tmp_path, warn=told.append) as store:
        check(best_of_blocks(store, stream, HEADS, questions(), STARTS))
        assert len(told) == 1
        assert "1 landmarks" in told[0]
        check(best_of_blocks(store, stream, HEADS, questions(), STARTS))
        assert len(told) == 1


@pytest.mark.parametrize("data", [b"", b"x" * 63, b"\0" * 64, b"LCTXLMK1" + b"\1\0\0\0" * 14])
def test_what_is_no_column_is_replaced(data: bytes, tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        stream = stored(store)
        key = landmarks._key(HEADS, stream.runs, stream.codec)
        store.put_artifacts(landmarks.ARTIFACT_KIND, {key: data}, stream.document)
        check(best_of_blocks(store, stream, HEADS, questions(), STARTS))
        with store.reading_artifacts(landmarks.ARTIFACT_KIND, [key]) as found:
            assert len(found[key]) > len(data)


def test_columns_read_in_a_codec_are_kept_apart(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        stream = stored(store)
        codecs = {run.codec for run in store.lookup([run_id for run_id, _ in stream.runs]).values()}
        streams = [stream, *(LandmarkStream(stream.runs, codec, stream.document) for codec in codecs)]
        for n_columns, one in enumerate(streams, 1):
            check(best_of_blocks(store, one, HEADS, questions(), STARTS))
            check(best_of_blocks(store, one, HEADS, questions(), STARTS))
            assert len(kept_columns(store)) == n_columns
        assert n_columns > 1


def kept_columns(store: KVStore) -> list[tuple[str]]:
    """Keys of the columns that the store holds."""
    return store.catalogue.query("SELECT key FROM artifacts WHERE kind = ?", [landmarks.ARTIFACT_KIND])


def test_without_a_run_there_is_no_column(tmp_path: Path, few_runs: None) -> None:
    with KVStore.open(tmp_path) as store:
        stream = stored(store)
        absent = LandmarkStream((*stream.runs[:4], (bytes(16), RUN_TOKENS)), None, stream.document)
        assert best_of_blocks(store, absent, HEADS, questions(), STARTS[:4]) is None
        assert best_of_blocks(store, LandmarkStream(stream.runs, "f16"), HEADS, questions(), STARTS) is None
        check(best_of_blocks(store, stream, HEADS, questions(), STARTS))


def test_a_full_store_is_told_once_and_costs_only_the_time(tmp_path: Path, few_runs: None) -> None:
    told: list[str] = []
    with KVStore.open(tmp_path) as store:
        stream = stored(store)
        size = store.size_bytes
    with KVStore.open(tmp_path, limit_bytes=size + 1, warn=told.append) as store:
        for _ in range(2):
            check(best_of_blocks(store, stream, HEADS, questions(), STARTS))
        assert all("landmark column is not kept" in text for text in told)
        assert len(told) == 2


@given(
    st.lists(
        st.lists(st.one_of(st.integers(-2, 5), st.booleans(), st.floats(), st.text(max_size=2)), max_size=3),
        max_size=6,
    )
)
def test_only_heads_that_the_model_has_make_a_set(heads: list[list[int]]) -> None:
    found = HeadSet.of(heads, LAYERS)
    is_set = (
        bool(heads)
        and all(len(h) == 2 and all(type(part) is int for part in h) for h in heads)
        and all(0 <= h[0] < 2 and 0 <= h[1] < 4 for h in heads)
        and len({tuple(h) for h in heads}) == len(heads)
    )
    assert (found is not None) == is_set


def test_query_heads_find_their_kv_head() -> None:
    found = HeadSet.of([(0, 5), (0, 0), (1, 2)], [(6, 3), (3, 3)])
    assert found is not None
    assert found.kv_heads == (2, 0, 2)
    assert found.pairs == ((0, 2), (0, 0), (1, 2))
    assert found.bytes_per_token(64) == 3 * 68
    assert HeadSet.of([(0, 0)], [(5, 2)]) is None  # not shared evenly
