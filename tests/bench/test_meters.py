"""Meters of energy and device memory: counters that begin anew, libraries that refuse, none at all."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from localctx.bench.meters import Meter, Nvml, Rapl, Taken, taken_json


def package(folder: Path, name: str, energy: int, highest: int = 1_000_000_000) -> Path:
    path = folder / name
    path.mkdir()
    (path / "energy_uj").write_text(f"{energy}\n")
    (path / "max_energy_range_uj").write_text(f"{highest}\n")
    return path / "energy_uj"


class Library:
    """What NVML answers on a machine of two GPUs, each with its own counter, in millijoules."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.energy = [1000, 5000]
        self.used = [10, 30]

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: 999 if name == self.fails else self._answer(name, *arguments)

    def _answer(self, name: str, *arguments: Any) -> int:
        match name:
            case "nvmlDeviceGetCount_v2":
                arguments[0]._obj.value = 2
            case "nvmlDeviceGetHandleByIndex_v2":
                arguments[1]._obj.value = arguments[0].value + 1
            case "nvmlDeviceGetTotalEnergyConsumption":
                arguments[1]._obj.value = self.energy[arguments[0].value - 1]
            case "nvmlDeviceGetMemoryInfo":
                arguments[1]._obj[2] = self.used[arguments[0].value - 1]
        return 0


def test_packages_are_added_and_their_parts_left_out(tmp_path: Path) -> None:
    first = package(tmp_path, "intel-rapl:0", 2_000_000)
    second = package(tmp_path, "intel-rapl:1", 900_000_000)
    package(tmp_path, "intel-rapl:0:0", 1_000_000)
    rapl = Rapl(tmp_path)
    before = rapl.read()
    first.write_text("5000000")
    second.write_text("100000000")  # began anew
    assert rapl.between(before, rapl.read()) == pytest.approx(3 + 200)


def test_no_package_or_one_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        Rapl(tmp_path)
    package(tmp_path, "intel-rapl:0", 0).unlink()
    with pytest.raises(OSError):
        Rapl(tmp_path)


def test_joules_and_memory_of_all_gpus() -> None:
    library = Library()
    nvml = Nvml(library)
    with Meter((nvml,)) as meter:
        library.energy = [1500, 7000]
        library.used = [50, 30]
    assert meter.taken.joules == {"gpu": pytest.approx(2.5)}
    assert meter.taken.peak_device_bytes == 80 and meter.taken.peak_memory_bytes > 1e6 and meter.seconds > 0
    shown = taken_json([meter.taken, Taken(5, None, {"gpu": 3.5})], 100)
    assert (shown["joules"], shown["joules_per_token"]) == ({"gpu": 3.0}, {"gpu": 0.03})
    assert (shown["peak_memory_bytes"], shown["peak_device_bytes"]) == (meter.taken.peak_memory_bytes, 80)


@pytest.mark.parametrize(
    "fails", ["nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetTotalEnergyConsumption"]
)
def test_a_library_that_refuses_is_an_error(fails: str) -> None:
    with pytest.raises(OSError, match=fails):
        Nvml(Library(fails))


def test_without_meters_there_are_no_joules() -> None:
    with Meter(()) as meter:
        pass
    assert (meter.taken.joules, meter.taken.peak_device_bytes) == ({}, None)


@pytest.mark.parametrize("fails", ["nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetMemoryInfo"])
@pytest.mark.parametrize("first", [True, False])
def test_a_gpu_that_falls_silent_ends_no_measurement(fails: str, first: bool) -> None:
    library = Library()
    meter = Meter((Nvml(library),))
    if first:
        library.fails = fails
    with meter:
        library.fails = fails
    assert meter.seconds > 0 and meter.taken.peak_memory_bytes > 0
    of_energy = fails == "nvmlDeviceGetTotalEnergyConsumption"
    assert (meter.taken.joules == {}) is of_energy
    assert (meter.taken.peak_device_bytes is None) is not of_energy


@pytest.mark.parametrize("text", [None, "not a number"])
def test_a_package_that_falls_silent_ends_no_measurement(tmp_path: Path, text: str | None) -> None:
    energy = package(tmp_path, "intel-rapl:0", 2_000_000)
    with Meter((Rapl(tmp_path),)) as meter:
        energy.unlink() if text is None else energy.write_text(text)
    assert meter.taken.joules == {}
    shown = taken_json([Taken(1, None, {"cpu": 1.0}), meter.taken], 100)
    assert (shown["joules"], shown["joules_per_token"]) == ({}, {})


def test_a_watcher_outlives_a_failed_look() -> None:
    library, looked = Library(), threading.Event()

    class Watched(Nvml):
        def used_bytes(self) -> int:
            if threading.current_thread().name == "localctx-device-memory":
                looked.set()
                raise OSError("gone")
            return super().used_bytes()

    with Meter((Watched(library),)) as meter:
        assert looked.wait(60)
    assert meter.taken.peak_device_bytes is None
