"""Measured speeds: kept, found again, re-used for other models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from localctx.engine.shape import Shape
from localctx.errors import LocalctxError
from localctx.forecast import calibration
from localctx.forecast.calibration import Calibration, Place, keep, kept, rates_of, scaled

PLACE = Place("a processor", 2, 0, "0.3.36")
SHAPE = Shape(2e8, 2.5e8, 7e4, 1e8, 23_040)
ONE = Calibration(
    "abc", "small", PLACE, SHAPE, ((128.0, 400.0), (2048.0, 200.0)), ((2048.0, 180.0),), ((64.0, 50.0),)
)


def test_what_is_kept_is_found(tmp_path: Path) -> None:
    assert kept(tmp_path) == []
    keep(tmp_path / "cache", ONE)
    assert kept(tmp_path / "cache") == [ONE]
    other = replace(ONE, place=replace(PLACE, n_threads=4))
    keep(tmp_path / "cache", other)
    assert kept(tmp_path / "cache") == [ONE, other]


def test_new_points_replace_those_as_deep(tmp_path: Path) -> None:
    keep(tmp_path, ONE)
    keep(tmp_path, replace(ONE, prefill=((100.0, 300.0),), stream=(), decode=()))
    (found,) = kept(tmp_path)
    assert found.prefill == ((100.0, 300.0), (128.0, 400.0), (2048.0, 200.0))
    assert (found.stream, found.decode) == (ONE.stream, ONE.decode)
    keep(tmp_path, replace(ONE, prefill=((1024.0, 300.0),)))
    assert kept(tmp_path)[0].prefill == ((1024.0, 300.0), (2048.0, 200.0))


def test_many_points_are_thinned(tmp_path: Path) -> None:
    keep(tmp_path, replace(ONE, prefill=tuple((float(n), 100.0) for n in range(1000))))
    assert len(kept(tmp_path)[0].prefill) <= calibration.MOST_POINTS


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"schema": "localctx.calibration/9", "calibrations": [1]}', '{"calibrations": 3}'],
)
def test_a_damaged_file_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / calibration.FILE_NAME).write_text(text)
    assert kept(tmp_path) == []
    keep(tmp_path, ONE)
    assert kept(tmp_path) == [ONE]


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalctxError, match="cannot be kept in"):
        keep(tmp_path / "file", ONE)


def test_costs_of_the_model_itself() -> None:
    rates = rates_of(ONE)
    assert 1 / (rates.prefill_s + 128 * rates.prefill_depth_s) == pytest.approx(400)
    assert 1 / (rates.prefill_s + 2048 * rates.prefill_depth_s) == pytest.approx(200)
    assert rates.decode_s == pytest.approx(0.02)
    assert rates.decode_depth_s == pytest.approx(0.02 * 23_040 / 1e8)
    assert rates.stream_factor == pytest.approx(200 / 180)


def test_without_depths_attention_is_by_operations() -> None:
    rates = rates_of(replace(ONE, prefill=((64.0, 400.0),), stream=(), decode=()))
    assert rates.prefill_depth_s == pytest.approx(rates.prefill_s * 7e4 / 2e8)
    assert rates.decode_s == pytest.approx(rates.prefill_s * 1.25)


def test_another_model_by_operations_and_bytes() -> None:
    large = Shape(8e9, 9e9, 7e5, 4e9, 131_072)
    rates, mine = rates_of(ONE), scaled(rates_of(ONE), SHAPE, large)
    assert mine.prefill_s == pytest.approx(rates.prefill_s * 40)
    assert mine.prefill_depth_s == pytest.approx(rates.prefill_depth_s * 10)
    assert mine.decode_s == pytest.approx(rates.decode_s * 40)
    assert mine.decode_depth_s == pytest.approx(rates.decode_depth_s * 131_072 / 23_040)
