"""What benchmarks measure is what plans are made from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localctx.bench.calibrate import calibration, depth_points
from localctx.bench.plan_check import Checked
from localctx.engine import EngineOptions, open_model
from localctx.engine.echo import EchoModel
from localctx.engine.llama import LlamaModel

MB = 10**6


@pytest.fixture
def model(tiny_model_path: Path) -> Iterator[LlamaModel]:
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as opened:
        yield opened


def test_speeds_between_marks() -> None:
    marks = [(0.0, 0), (1.0, 512), (1.0, 520), (3.0, 1024), (3.1, 1030)]
    assert depth_points(marks) == ((256.0, 512.0), (768.0, 256.0))
    assert depth_points([(0.0, 0)]) == ()


def test_a_calibration_knows_where_it_holds(model: LlamaModel) -> None:
    found = calibration(model, prefill=[(9.0, 1.0), (2.0, 3.0)])
    assert found is not None
    assert found.prefill == ((2.0, 3.0), (9.0, 1.0))
    assert (found.place.n_threads, found.place.layers, found.fingerprint) == (1, 0, model.info.fingerprint)
    with EchoModel() as echo:
        assert calibration(echo) is None


def test_a_row_of_planned_and_measured() -> None:
    row = Checked(2000, "exact", 10.0, 12.0, 400 * MB, 420 * MB, 0, 0, 40 * MB, 41 * MB)
    assert row.line == "| 2,000 | exact | 10.0 | 12.0 | 1.20 | 400 | 420 | +5.0% | 0 | 0 | – | 40 | 41 |"
