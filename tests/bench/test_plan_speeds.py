"""What benchmarks measure is what plans are made from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from localctx.bench.calibrate import calibration, depth_points, n_unfinished
from localctx.bench.plan_check import HEADER, Checked, main
from localctx.engine import EngineOptions, open_model
from localctx.engine.echo import EchoModel
from localctx.engine.llama import LlamaModel
from localctx.engine.plan import Slice
from localctx.package_version import package_version

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


def test_what_a_gpu_is_still_at_is_not_done(model: LlamaModel, monkeypatch: pytest.MonkeyPatch) -> None:
    with model.open_context(512) as context:
        context.decoder.evaluate([Slice(0, 0, np.arange(1, 51, dtype=np.int32), sample=False)])
        assert n_unfinished(model, context) == 0  # a processor has done it
        monkeypatch.setattr(LlamaModel, "is_offloaded", property(lambda model: True))
        assert n_unfinished(model, context) == 50
        context.decoder.wait()
        assert n_unfinished(model, context) == 0
        assert n_unfinished(EchoModel(), context) == 0


def test_a_row_of_planned_and_measured() -> None:
    planned = {"seconds": 10.0, "ram": 400 * MB, "vram": 0, "disk": 40 * MB}
    measured = {"seconds": 12.0, "ram": 420 * MB, "vram": 0, "disk": 41 * MB}
    row = Checked(2000, "exact", planned, measured)
    cells = "| 2,000 | exact | 10.0 | 12.0 | 1.20 | 400 | 420 | +5.0% | 0 | 0 | – | 40 | 41 | +2.5% |"
    assert row.line == cells
    assert HEADER.splitlines()[0].count("|") == cells.count("|")
    figures = row.as_json()["figures"]
    assert figures["ram"] == {"planned": 400 * MB, "measured": 420 * MB, "ratio": 1.05}
    assert figures["vram"]["ratio"] is None


def test_a_command_that_fails_or_takes_too_long_is_a_row(
    tiny_model_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["-m", str(tiny_model_path), "--no-calibration", "--tokens", "100,120", "--json"]
    assert main([*words, "--limit", "0.01"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["tokens"], row["failed"]) for row in rows] == [
        (100, "plan took more than 0.01 s"),
        (120, "plan took more than 0.01 s"),
    ]
    assert main([*words, "--kv", "nonsense=1"]) == 1
    assert "nonsense" in json.loads(capsys.readouterr().out.splitlines()[1])["failed"]


def test_planned_and_measured_by_figure(tiny_model_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-m", str(tiny_model_path), "--no-calibration", "--tokens", "100", "--max-tokens", "2", "--json"]
    assert main([*words, "--gpu-layers", "0", "--threads", "1"]) == 0
    (row,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert row["strategy"] == "exact"
    assert all(row["figures"][name]["measured"] > 0 for name in ("seconds", "ram", "disk"))
    assert row["figures"]["ram"]["measured"] >= max(row["run"]["resident"].values())
    assert row["run"]["tokens"]["generated"] == 2


def test_a_package_without_a_word_of_itself_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    look = package_version.__wrapped__
    assert look("llama-cpp-python").startswith("0.")
    assert look("not-a-package-at-all") == ""
    monkeypatch.setattr("importlib.metadata.version", lambda name: None)  # a folder without METADATA
    assert look("llama-cpp-python") == ""
