"""Vectors on disk: mapped, partly there, replaced, damaged; similarities as NumPy has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from localctx.index.vectors import SCAN_ROWS, BlockVectors
from localctx.store.derived import DerivedFiles
from localctx.store.errors import TooLarge

TEXT, KEY = "a" * 32, "b" * 32
SHAPE = (7, 32)


def some(n_blocks: int = 7, n_dim: int = 32, seed: int = 0) -> np.ndarray:
    """Rows of length 1."""
    rows = np.random.default_rng(seed).standard_normal((n_blocks, n_dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_what_was_kept_comes_back_mapped(tmp_path: Path) -> None:
    files, rows = DerivedFiles(tmp_path), some()
    made = BlockVectors.none(*SHAPE).with_rows({number: rows[number] for number in (0, 2, 6)})
    made.save(files, TEXT, KEY)
    found = BlockVectors.load(files, TEXT, KEY, SHAPE)
    assert found is not None
    assert list(found.is_there) == [True, False, True, False, False, False, True]
    assert not found.rows.flags.owndata
    likeness = found.similarities(rows[2])
    assert np.isnan(likeness[[1, 3, 4, 5]]).all()
    np.testing.assert_allclose(likeness[[0, 2, 6]], rows[[0, 2, 6]] @ rows[2], atol=2e-3)


def test_more_rows_replace_the_file(tmp_path: Path) -> None:
    files, rows = DerivedFiles(tmp_path), some()
    first = BlockVectors.none(*SHAPE).with_rows({1: rows[1]})
    first.save(files, TEXT, KEY)
    mapped = BlockVectors.load(files, TEXT, KEY, SHAPE)
    assert mapped is not None
    mapped.with_rows({2: rows[2]}).save(files, TEXT, KEY)  # while the old one is mapped
    again = BlockVectors.load(files, TEXT, KEY, SHAPE)
    assert again is not None
    assert list(np.flatnonzero(again.is_there)) == [1, 2]
    assert list(np.flatnonzero(mapped.is_there)) == [1]


@pytest.mark.parametrize("shape", [(6, 32), (7, 16), (8, 32)])
def test_another_shape_is_a_miss(tmp_path: Path, shape: tuple[int, int]) -> None:
    files = DerivedFiles(tmp_path)
    BlockVectors.none(*SHAPE).save(files, TEXT, KEY)
    assert BlockVectors.load(files, TEXT, KEY, shape) is None
    assert BlockVectors.load(files, TEXT, "c" * 32, SHAPE) is None


@pytest.mark.parametrize("place", [0, 9, 70, 200, -3])
def test_damage_is_a_miss(tmp_path: Path, place: int) -> None:
    files = DerivedFiles(tmp_path)
    BlockVectors.none(*SHAPE).with_rows({0: some()[0]}).save(files, TEXT, KEY)
    (path,) = (tmp_path / "index").iterdir()
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    assert BlockVectors.load(files, TEXT, KEY, SHAPE) is None


def test_no_blocks_and_many_blocks(tmp_path: Path) -> None:
    files = DerivedFiles(tmp_path)
    assert BlockVectors.none(0, 8).similarities(some(1, 8)[0]).shape == (0,)
    rows = some(SCAN_ROWS + 3, 8)
    many = BlockVectors(np.ones(len(rows), np.bool_), rows.astype(np.float16))
    many.save(files, TEXT, KEY)
    found = BlockVectors.load(files, TEXT, KEY, rows.shape)
    assert found is not None
    np.testing.assert_allclose(found.similarities(rows[-1]), rows @ rows[-1], atol=3e-3)


def test_a_full_store_says_so(tmp_path: Path) -> None:
    with pytest.raises(TooLarge):
        BlockVectors.none(1000, 384).save(DerivedFiles(tmp_path, 100_000), TEXT, KEY)
    assert not list((tmp_path / "index").iterdir()) if (tmp_path / "index").exists() else True
