"""Repeated measurements: medians with their spread, contestants by turns, the peak of memory meanwhile."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from localctx.errors import UsageError

__all__ = ["PeakMemory", "Spread", "check_repeats", "in_turns", "ratio"]

MAX_REPEATS = 1000
SAMPLE_SECONDS = 0.02

Key = TypeVar("Key")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure measured n times."""

    median: float
    lowest: float
    highest: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Of at least one value."""
        return cls(statistics.median(values), min(values), max(values), len(values))

    def shown(self, digits: int = 2) -> str:
        """`3.21 (3.10-3.40)`; one value alone as it is."""
        median = f"{self.median:,.{digits}f}"
        return median if self.n == 1 else f"{median} ({self.lowest:,.{digits}f}-{self.highest:,.{digits}f})"

    def to_json(self) -> dict[str, Any]:
        """Four digits are kept: more is noise."""
        return {
            "median": rounded(self.median),
            "lowest": rounded(self.lowest),
            "highest": rounded(self.highest),
            "n": self.n,
        }


def rounded(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")


def ratio(one: Spread | None, other: Spread | None) -> float | None:
    """The medians' quotient; None where one of them is not there."""
    if one is None or other is None or not other.median:
        return None
    return rounded(one.median / other.median)


def check_repeats(n: int) -> None:
    """Raises UsageError for a number of repeats that makes no sense."""
    if not 1 <= n <= MAX_REPEATS:
        raise UsageError(f"--repeats {n} is out of range", f"from 1 to {MAX_REPEATS}")


def in_turns(contestants: Mapping[Key, Callable[[], Outcome]], n_rounds: int) -> dict[Key, list[Outcome]]:
    """Every contestant n_rounds times, in an order that is turned round each time, so that what the machine
    does meanwhile meets all of them.
    """
    outcomes: dict[Key, list[Outcome]] = {name: [] for name in contestants}
    for number in range(n_rounds):
        names = list(contestants)
        for name in reversed(names) if number % 2 else names:
            outcomes[name].append(contestants[name]())
    return outcomes


class PeakMemory:
    """The largest resident size of this process within the block, in bytes, looked at every 20 ms."""

    def __init__(self) -> None:
        import psutil

        self._process = psutil.Process()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="localctx-memory", daemon=True)
        self.peak_bytes = 0

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._look()

    def _look(self) -> None:
        self.peak_bytes = max(self.peak_bytes, int(self._process.memory_info().rss))

    def _watch(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            self._look()
