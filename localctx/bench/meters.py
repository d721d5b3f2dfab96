"""What a stretch of work took: seconds, peak memory of process and GPUs, joules where they can be read.

Joules are the machine's meters before and after (NVML for NVIDIA GPUs, RAPL for the CPU packages), so they
hold what else the machine did. Where there is no meter, or it may not be read, or no more, there are none.
Knows no benchmark.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from localctx.bench.repeats import PeakMemory, rounded

__all__ = ["Meter", "Nvml", "Rapl", "Taken", "meters_here", "taken_json"]

RAPL = Path("/sys/class/powercap")
SAMPLE_SECONDS = 0.05
MICRO, MILLI = 1e-6, 1e-3


class Joules(Protocol):
    """A meter of energy."""

    @property
    def name(self) -> str:
        """What it measures: cpu, gpu."""

    def read(self) -> list[float]:
        """Joules so far of each part."""

    def between(self, before: Sequence[float], after: Sequence[float]) -> float:
        """Joules of all parts between two readings."""


Returned = TypeVar("Returned")
UNREADABLE = (OSError, ValueError, AttributeError)
"""Not there, may not be read, holds no number, or an older library."""


def read_or_none(read: Callable[[], Returned]) -> Returned | None:
    """What a meter says; None where it says nothing: no benchmark ends for that."""
    try:
        return read()
    except UNREADABLE:
        return None


class Rapl:
    """The CPU packages' energy, as Linux shows it. Raises OSError where it may not be read."""

    name = "cpu"

    def __init__(self, folder: Path = RAPL) -> None:
        self._files = sorted(
            path / "energy_uj" for path in folder.glob("intel-rapl:[0-9]*") if _is_package(path)
        )
        if not self._files:
            raise FileNotFoundError(folder)
        self._ranges = [
            int((path.parent / "max_energy_range_uj").read_text()) * MICRO for path in self._files
        ]
        self.read()

    def read(self) -> list[float]:
        """See Joules."""
        return [int(path.read_text()) * MICRO for path in self._files]

    def between(self, before: Sequence[float], after: Sequence[float]) -> float:
        """See Joules. A counter that began anew did so once."""
        steps = zip(before, after, self._ranges, strict=True)
        return sum(end - start if end >= start else end - start + whole for start, end, whole in steps)


def _is_package(path: Path) -> bool:
    """Whether it is a package, not a part of one (`intel-rapl:0:1`)."""
    return path.name.count(":") == 1


class Nvml:
    """NVIDIA's own library, for all GPUs of the machine. Raises OSError where it is not there or refuses."""

    name = "gpu"

    def __init__(self, library: Any = None) -> None:
        self._lib = library or ctypes.CDLL("libnvidia-ml.so.1")
        self._call("nvmlInit_v2")
        n = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(n))
        self._gpus = [self._gpu(number) for number in range(n.value)]
        if not self._gpus:
            raise FileNotFoundError("no GPU")
        self.read()

    def _gpu(self, number: int) -> ctypes.c_void_p:
        gpu = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(number), ctypes.byref(gpu))
        return gpu

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._lib, name)(*arguments)
        if code:
            raise OSError(f"{name}: {code}")

    def read(self) -> list[float]:
        """See Joules."""
        return [self._joules(gpu) for gpu in self._gpus]

    def _joules(self, gpu: ctypes.c_void_p) -> float:
        value = ctypes.c_ulonglong()
        self._call("nvmlDeviceGetTotalEnergyConsumption", gpu, ctypes.byref(value))
        return value.value * MILLI

    def between(self, before: Sequence[float], after: Sequence[float]) -> float:
        """See Joules."""
        return sum(after) - sum(before)

    def used_bytes(self) -> int:
        """Memory of all GPUs that is in use, by whomever."""
        used = 0
        for gpu in self._gpus:
            sizes = (ctypes.c_ulonglong * 3)()  # total, free, used
            self._call("nvmlDeviceGetMemoryInfo", gpu, ctypes.byref(sizes))
            used += sizes[2]
        return used


@cache
def meters_here() -> tuple[Joules, ...]:
    """The meters of this machine that can be read."""
    found: list[Joules] = []
    kinds: tuple[Callable[[], Joules], ...] = (Rapl, Nvml)
    for kind in kinds:
        if (meter := read_or_none(kind)) is not None:
            found.append(meter)
    return tuple(found)


@dataclass(slots=True)
class _DevicePeak:
    """The most device memory in use, looked at every 50 ms; None where it cannot be read, or no more."""

    nvml: Nvml
    peak_bytes: int | None = 0
    _done: threading.Event | None = None
    _thread: threading.Thread | None = None

    def begin(self) -> None:
        self._done = threading.Event()
        self._look()
        self._thread = threading.Thread(target=self._watch, name="localctx-device-memory", daemon=True)
        self._thread.start()

    def end(self) -> None:
        if self._done is not None and self._thread is not None:
            self._done.set()
            self._thread.join()
        self._look()

    def _look(self) -> None:
        used, peak = read_or_none(self.nvml.used_bytes), self.peak_bytes
        self.peak_bytes = None if used is None or peak is None else max(peak, used)

    def _watch(self) -> None:
        while self._done is not None and not self._done.wait(SAMPLE_SECONDS):
            self._look()


@dataclass(frozen=True, slots=True)
class Taken:
    """peak_memory_bytes: resident, of this process · peak_device_bytes: of all GPUs, by whomever; None where
    it cannot be read · joules: by what they were read of (`cpu`, `gpu`); empty where nothing can be read.
    """

    peak_memory_bytes: int = 0
    peak_device_bytes: int | None = None
    joules: Mapping[str, float] = field(default_factory=dict)


def taken_json(taken: Sequence[Taken], n_tokens: int) -> dict[str, Any]:
    """The largest peaks, and the median joules, also for each of n_tokens; of the same work done again."""
    devices = [one.peak_device_bytes for one in taken if one.peak_device_bytes is not None]
    names = [name for name in taken[0].joules if all(name in one.joules for one in taken)]
    joules = {name: median(one.joules[name] for one in taken) for name in names}
    return {
        "peak_memory_bytes": max(one.peak_memory_bytes for one in taken),
        "peak_device_bytes": max(devices, default=None),
        "joules": {name: rounded(value) for name, value in joules.items()},
        "joules_per_token": {name: rounded(value / max(1, n_tokens)) for name, value in joules.items()},
    }


class Meter:
    """`seconds` and what was `taken` within the block."""

    def __init__(self, meters: tuple[Joules, ...] | None = None) -> None:
        self._meters = meters_here() if meters is None else meters
        self._memory = PeakMemory()
        self._devices = [_DevicePeak(meter) for meter in self._meters if isinstance(meter, Nvml)]
        self._before: list[list[float] | None] = []
        self._started = 0.0
        self.seconds = 0.0
        self.taken = Taken()

    def __enter__(self) -> Self:
        self._memory.__enter__()
        for device in self._devices:
            device.begin()
        self._before = [read_or_none(meter.read) for meter in self._meters]
        self._started = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.perf_counter() - self._started
        joules: dict[str, float] = {}
        for meter, before in zip(self._meters, self._before, strict=True):
            after = read_or_none(meter.read)
            if before is not None and after is not None:
                joules[meter.name] = meter.between(before, after)
        for device in self._devices:
            device.end()
        self._memory.__exit__(kind, error, trace)
        device_bytes = self._devices[0].peak_bytes if self._devices else None
        self.taken = Taken(self._memory.peak_bytes, device_bytes, joules)
