"""When a signal interrupts, and the exit code that comes of it; without a program of its own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from localctx import end_signals
from localctx.bench.program import run_as_program
from localctx.end_signals import exit_code, handlers_kept, watch_end_signals
from localctx.errors import Interrupted


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGHUP)
    earlier = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    monkeypatch.setattr(end_signals, "_received", [])
    monkeypatch.setattr(end_signals, "_acted_at", float("-inf"))
    watch_end_signals()
    yield
    for number, handler in earlier.items():
        signal.signal(number, handler)


def terminated() -> bool:
    """Whether a SIGTERM to this process interrupts it."""
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.001)
    except KeyboardInterrupt:
        return True
    return False


def test_signals_at_once_are_one_wish_and_a_later_one_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(end_signals.time, "monotonic", lambda: now[0])
    acted = []
    for _ in range(6):
        acted.append(terminated())
        now[0] += 0.6
    assert acted == [True, False, True, False, True, False]


@pytest.mark.parametrize(("code", "is_signal"), [(int(signal.SIGTERM), True), (1, False), ("no", False)])
def test_a_handler_that_leaves_is_told_from_an_error(code: int | str, is_signal: bool) -> None:
    expected = KeyboardInterrupt if is_signal else SystemExit
    with pytest.raises(expected), handlers_kept():
        raise SystemExit(code)
    assert exit_code(130) == (143 if is_signal else 130)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Interrupted("stopped")])
def test_a_measurement_that_was_told_to_end_says_so(error: BaseException) -> None:
    def main() -> None:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        raise error

    with pytest.raises(SystemExit) as left:
        run_as_program(main)
    assert left.value.code == 143
