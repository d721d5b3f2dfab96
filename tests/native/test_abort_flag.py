"""The abort flag: what C reads, and how signals reach it while Python's handler waits."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator

import pytest

from localctx._native import AbortFlag

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)


@pytest.fixture(autouse=True)
def python_handler() -> Iterator[None]:
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


def interrupt_self() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)  # the KeyboardInterrupt comes here


def test_the_c_callback_reads_the_flag() -> None:
    flag, other = AbortFlag(), AbortFlag()
    callback = CALLBACK(flag.callback_address)
    assert not callback(flag.data_address)
    flag.set()
    assert flag.is_set
    assert callback(flag.data_address)
    assert not callback(other.data_address)
    flag.clear()
    assert not callback(flag.data_address)


def test_sigint_sets_the_flag_and_python_still_raises() -> None:
    flag = AbortFlag()
    flag.watch([signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        interrupt_self()
    assert flag.is_set
    flag.clear()
    flag.unwatch()
    with pytest.raises(KeyboardInterrupt):
        interrupt_self()
    assert not flag.is_set


def test_one_flag_watches_at_a_time() -> None:
    first, second = AbortFlag(), AbortFlag()
    first.watch([signal.SIGINT])
    first.watch([signal.SIGINT])
    with pytest.raises(RuntimeError, match="another AbortFlag"):
        second.watch([signal.SIGINT])
    second.unwatch()
    first.unwatch()
    second.watch([signal.SIGINT])
    second.unwatch()


def test_a_handler_installed_meanwhile_stays() -> None:
    seen: list[int] = []
    flag = AbortFlag()
    flag.watch([signal.SIGINT])
    signal.signal(signal.SIGINT, lambda number, _frame: seen.append(number))
    flag.unwatch()
    os.kill(os.getpid(), signal.SIGINT)
    deadline = time.monotonic() + 5
    while not seen and time.monotonic() < deadline:
        time.sleep(0.01)
    assert seen == [signal.SIGINT]
    assert not flag.is_set


def test_a_flag_that_is_collected_stops_watching() -> None:
    flag = AbortFlag()
    flag.watch([signal.SIGINT])
    del flag
    with pytest.raises(KeyboardInterrupt):
        interrupt_self()
    AbortFlag().watch([signal.SIGINT])


def test_each_signal_goes_on_to_its_own_handler() -> None:
    seen: list[int] = []
    earlier = signal.signal(signal.SIGTERM, lambda number, _frame: seen.append(number))
    flag = AbortFlag()
    try:
        flag.watch([signal.SIGINT, signal.SIGTERM])
        signal.raise_signal(signal.SIGTERM)
        assert (flag.is_set, seen) == (True, [signal.SIGTERM])
        flag.clear()
        with pytest.raises(KeyboardInterrupt):
            interrupt_self()
        assert flag.is_set
        flag.clear()
        flag.unwatch()
        signal.raise_signal(signal.SIGTERM)
        assert (flag.is_set, seen) == (False, [signal.SIGTERM] * 2)
        with pytest.raises(ValueError, match="no signal"):
            flag.watch([0])
    finally:
        signal.signal(signal.SIGTERM, earlier)


def test_a_watch_that_the_system_refuses_leaves_nothing_behind() -> None:
    first, second = AbortFlag(), AbortFlag()
    with pytest.raises(RuntimeError, match="sigaction"):
        first.watch([signal.SIGINT, signal.SIGKILL])
    second.watch([signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        interrupt_self()
    assert second.is_set and not first.is_set
    second.unwatch()
