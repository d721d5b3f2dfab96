"""Vectors on disk: mapped, partly there, in parts, damaged; similarities and tokens as NumPy has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from localctx.index.vector_parts import BlocksPart, TokensPart
from localctx.index.vectors import PART_BLOCKS, BlockVectors, Place
from localctx.store.derived import DerivedFiles

TEXT, KEY = "a" * 32, "b" * 32
N, DIM = 7, 32


def some(n: int = N, n_dim: int = DIM, seed: int = 0) -> np.ndarray:
    """Rows of length 1."""
    rows = np.random.default_rng(seed).standard_normal((n, n_dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def place_of(folder: Path, limit_bytes: int | None = None, key: str = KEY) -> Place:
    return Place(DerivedFiles(folder, limit_bytes), TEXT, key)


def add(vectors: BlockVectors, *numbers: int, n_tokens: int = 3) -> None:
    """Blocks, each with the row and the tokens of its number."""
    rows = some(200, vectors.n_dim)
    vectors.add(
        {number: rows[number] for number in numbers},
        {number: some(n_tokens + number % 3, vectors.n_dim, number) for number in numbers},
    )


def loaded(folder: Path, n_blocks: int = N, n_dim: int = DIM) -> BlockVectors:
    return BlockVectors.load(n_blocks, n_dim, place_of(folder))


def test_what_was_kept_comes_back_mapped(tmp_path: Path) -> None:
    add(loaded(tmp_path), 0, 2, 6)
    found, rows = loaded(tmp_path), some(200)
    assert np.flatnonzero(found.is_there).tolist() == [0, 2, 6]
    assert not found._parts[0].rows.flags.owndata
    likeness = found.similarities(rows[2])
    assert np.isnan(likeness[[1, 3, 4, 5]]).all()
    np.testing.assert_allclose(likeness[[0, 2, 6]], rows[[0, 2, 6]] @ rows[2], atol=2e-3)
    row = found.row(6)
    assert row is not None
    np.testing.assert_allclose(row, rows[6], atol=1e-3)
    assert found.row(1) is None


def test_tokens_come_back_as_near_as_eight_bits_are(tmp_path: Path) -> None:
    add(loaded(tmp_path), 0, 2, 6)
    add(loaded(tmp_path), 5, 1)
    found = loaded(tmp_path)
    for number in (0, 1, 2, 5, 6):
        tokens, made = found.tokens(number), some(3 + number % 3, DIM, number)
        assert tokens is not None
        assert tokens.shape == made.shape
        assert (np.abs(tokens - made).max(axis=1) <= np.abs(made).max(axis=1) / 127 * 0.6).all()
    assert found.tokens(3) is None


def test_tokens_of_zeros_and_blocks_without_tokens() -> None:
    vectors = BlockVectors(3, 4)
    rows = some(3, 4)
    vectors.add(
        dict(enumerate(rows)),
        {0: np.zeros((2, 4), np.float32), 1: np.zeros((0, 4), np.float32), 2: rows[:1]},
    )
    first, second, third = (vectors.tokens(number) for number in range(3))
    assert first is not None
    assert second is not None
    assert third is not None
    assert not first.any()
    assert second.shape == (0, 4)
    np.testing.assert_allclose(third, rows[:1], atol=0.01)


def test_few_blocks_join_the_last_part_and_many_begin_another(tmp_path: Path) -> None:
    vectors = loaded(tmp_path, 200)
    add(vectors, 0, 1)
    add(vectors, 5)
    assert len(list((tmp_path / "index").iterdir())) == 2  # rows and tokens of one part
    add(vectors, *range(50, 50 + PART_BLOCKS))
    add(vectors, *range(120, 120 + 2 * 30))
    found = loaded(tmp_path, 200)
    assert [len(part.numbers) for part in found._parts] == [3, 64, 60]
    assert np.flatnonzero(found.is_there).tolist() == [0, 1, 5, *range(50, 114), *range(120, 180)]
    for number in (0, 5, 50, 113, 179):
        tokens = found.tokens(number)
        assert tokens is not None
        np.testing.assert_allclose(tokens, some(3 + number % 3, DIM, number), atol=0.01)


def test_another_process_may_add_meanwhile(tmp_path: Path) -> None:
    early, late = loaded(tmp_path), loaded(tmp_path)
    add(early, 0, 1)
    add(late, 1, 4)
    assert np.flatnonzero(late.is_there).tolist() == [0, 1, 4]
    assert np.flatnonzero(early.is_there).tolist() == [0, 1]  # its map is of the file before
    assert np.flatnonzero(loaded(tmp_path).is_there).tolist() == [0, 1, 4]
    assert early.tokens(1) is not None


def test_another_dimension_key_or_fewer_blocks_are_a_miss(tmp_path: Path) -> None:
    add(loaded(tmp_path), 0, 6)
    assert not loaded(tmp_path, 6).is_there.any()
    assert not loaded(tmp_path, N, 16).is_there.any()
    assert not BlockVectors.load(N, DIM, place_of(tmp_path, key="c" * 32)).is_there.any()


@pytest.mark.parametrize("place", [0, 9, 70, 130, -3])
def test_damage_is_a_miss_and_is_made_again(tmp_path: Path, place: int) -> None:
    add(loaded(tmp_path), 0, 3)
    for path in (tmp_path / "index").iterdir():
        data = bytearray(path.read_bytes())
        data[place] ^= 1
        path.write_bytes(data)
    assert not loaded(tmp_path).is_there.any()
    add(loaded(tmp_path), 3)
    assert np.flatnonzero(loaded(tmp_path).is_there).tolist() == [3]


def test_tokens_that_are_gone_leave_the_vectors(tmp_path: Path) -> None:
    add(loaded(tmp_path), 0, 3)
    largest = max((tmp_path / "index").iterdir(), key=lambda path: path.stat().st_size)
    largest.unlink()
    found = loaded(tmp_path)
    assert found.is_there.sum() == 2
    assert found.tokens(3) is None
    add(found, 4)  # a part of its own, since the other one has no tokens
    assert loaded(tmp_path).tokens(4) is not None
    assert loaded(tmp_path).is_there.sum() == 3


def test_tokens_of_other_blocks_than_the_part_has_are_not_taken(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    tokens = TokensPart.of({1: some(4)})
    place.write("tokens", 0, tokens.packed())
    place.write("blocks", 0, BlocksPart(np.array([2], np.int32), some(1).astype(np.float16), 4).packed())
    found = loaded(tmp_path)
    assert np.flatnonzero(found.is_there).tolist() == [2]
    assert found.tokens(2) is None


def test_the_tokens_of_a_document_take_a_quarter_at_most(tmp_path: Path) -> None:
    limit_bytes = 100_000
    vectors = BlockVectors.load(200, DIM, place_of(tmp_path, limit_bytes))
    for first in range(0, 200, PART_BLOCKS):
        add(vectors, *range(first, min(200, first + PART_BLOCKS)), n_tokens=5)
    assert vectors.is_there.all()
    n_kept = sum(vectors.tokens(number) is not None for number in range(200))
    assert PART_BLOCKS <= n_kept < 100
    assert sum(path.stat().st_size for path in (tmp_path / "index").iterdir()) < limit_bytes


def test_a_full_store_costs_time_only(tmp_path: Path) -> None:
    vectors = BlockVectors.load(N, DIM, place_of(tmp_path, 10))
    add(vectors, 0, 1)
    add(vectors, 2)
    assert np.flatnonzero(vectors.is_there).tolist() == [0, 1, 2]
    assert not list((tmp_path / "index").iterdir()) if (tmp_path / "index").exists() else True


def test_no_blocks_are_no_rows() -> None:
    assert BlockVectors(0, 8).similarities(some(1, 8)[0]).shape == (0,)
    assert BlockVectors(3, 8).tokens(0) is None


def best_window(queries: np.ndarray, tokens: np.ndarray) -> float:
    """MaxSim with the likeliest 20 tokens in a row, in steps of 10."""
    windows = [tokens[first : first + 20] for first in range(0, len(tokens), 10)]
    return max(float((queries @ window.T).max(axis=1).mean()) for window in windows)


@pytest.mark.parametrize("n_tokens", [7, 10, 21, 64])
@pytest.mark.parametrize("n_dim", [32, 384, 1024])
def test_the_likeliest_window_of_every_block_is_found_as_numpy_finds_it(
    tmp_path: Path, n_dim: int, n_tokens: int
) -> None:
    add(loaded(tmp_path, 100, n_dim), 0, 2, *range(20, 90), n_tokens=n_tokens)
    vectors, queries = loaded(tmp_path, 100, n_dim), some(5, n_dim, seed=9)
    found = vectors.max_sims(queries)
    assert found is not None
    assert np.flatnonzero(~np.isnan(found)).tolist() == [0, 2, *range(20, 90)]
    for number in (0, 2, 20, 57, 89):
        tokens = vectors.tokens(number)
        assert tokens is not None
        assert found[number] == pytest.approx(best_window(queries, tokens), abs=1e-4)


def test_what_stands_together_is_liker_than_what_is_strewn() -> None:
    """Both blocks hold all that is asked for, one of them in one place."""
    asked, others = np.eye(8, dtype=np.float32)[:3], np.tile(np.eye(8, dtype=np.float32)[7], (57, 1))
    strewn = np.concatenate([asked[:1], others[:29], asked[1:2], others[29:], asked[2:]])
    together = np.concatenate([others, asked])
    vectors = BlockVectors(3, 8)
    nothing = np.zeros((0, 8), np.float32)
    vectors.add(dict.fromkeys(range(3), asked[0]), {0: strewn, 1: together, 2: nothing})
    found = vectors.max_sims(asked)
    assert found is not None
    assert found.tolist() == pytest.approx([1 / 3, 1.0, 0.0], abs=0.01)


def test_blocks_without_tokens_and_questions_without_any_are_like_nothing() -> None:
    vectors, none = BlockVectors(2, 8), np.zeros((0, 8), np.float32)
    vectors.add({0: some(1, 8)[0], 1: some(1, 8)[0]}, {0: none, 1: some(2, 8)})
    found = vectors.max_sims(some(1, 8))
    assert found is not None
    assert found[0] == 0.0
    assert found[1] == pytest.approx(1.0, abs=0.01)
    unasked = vectors.max_sims(none)
    assert unasked is not None
    assert unasked.tolist() == [0.0, 0.0]


def test_where_some_tokens_are_not_kept_not_all_can_be_compared(tmp_path: Path) -> None:
    add(loaded(tmp_path), 0, 3)
    max((tmp_path / "index").iterdir(), key=lambda path: path.stat().st_size).unlink()
    assert loaded(tmp_path).max_sims(some(1)) is None
