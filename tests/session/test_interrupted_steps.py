"""Ctrl-C while another thread evaluates: nothing that the step uses is freed under it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from localctx.engine.echo import EchoModel
from localctx.engine.uninterrupted import wait_whatever_comes
from localctx.session.side_by_side import SideBySide
from localctx.settings import Settings
from localctx.values import Piece


class HeldBatch:
    """A batch, and its context, whose step goes on until `go_on`; what was done to them in mid-step."""

    n_seq, n_waiting, is_idle, is_hungry, is_stopped = 1, 0, False, False, False

    def __init__(self) -> None:
        self.begun, self.go_on, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.called: list[tuple[str, bool]] = []

    def step(self) -> list[Piece]:
        self.begun.set()
        self.go_on.wait()
        self.ended.set()
        return []

    def _touched(self, name: str) -> None:
        self.called.append((name, self.ended.is_set()))
        self.go_on.set()  # were it touched too early, the test would end all the same

    def cancel(self, number: int) -> None:
        self._touched("cancel")

    def close(self) -> None:
        self._touched("close")


@pytest.fixture
def batch() -> HeldBatch:
    return HeldBatch()


@pytest.fixture
def interrupted(batch: HeldBatch, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """The next waits of this thread are interrupted, so many of them; the step ends in the one after."""
    left: list[None] = []
    is_armed = threading.Event()
    here = threading.current_thread()

    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if is_armed.is_set() and threading.current_thread() is here:
                if left:
                    left.pop()
                    raise KeyboardInterrupt
                batch.go_on.set()
            return super().wait(timeout)

    def arm(n: int) -> None:
        left.extend([None] * n)
        is_armed.set()

    monkeypatch.setattr(threading, "Event", Interrupted)
    return arm


class Steps:
    """The events of a question that has its place: closing them gives it back."""

    def __init__(self, batch: HeldBatch) -> None:
        self._batch = batch

    def close(self) -> None:
        self._batch.cancel(0)


def asking_of(batch: Any) -> SideBySide:
    asking = SideBySide(EchoModel(), Settings(), n_parallel=1)
    asking._seats.batch = asking._seats.context = batch
    asking.submit([], "why?")
    question = asking._queue.popleft()
    question.steps = Steps(batch)  # type: ignore[assignment]  # closed only
    asking._open[question.ticket] = question
    return asking


@pytest.mark.parametrize("n_interrupts", [1, 3])
def test_a_step_ends_before_its_context_is_freed(
    batch: HeldBatch, interrupted: Callable[[int], None], n_interrupts: int
) -> None:
    def meanwhile(is_done: Callable[[], bool]) -> None:
        batch.begun.wait()
        interrupted(n_interrupts)

    with pytest.raises(KeyboardInterrupt), asking_of(batch) as asking:
        asking._seats.step(meanwhile)
    assert batch.called == [("cancel", True), ("close", True), ("close", True)]
    assert not asking._seats.is_evaluating


@pytest.mark.parametrize("end", [SideBySide.close, lambda asking: asking.cancel(0)])
def test_what_is_ended_in_mid_step_waits_for_it(
    batch: HeldBatch, interrupted: Callable[[int], None], end: Callable[[SideBySide], None]
) -> None:
    asking = asking_of(batch)

    def meanwhile(is_done: Callable[[], bool]) -> None:
        batch.begun.wait()
        interrupted(0)
        end(asking)

    asking._seats.step(meanwhile)
    assert batch.called and all(was_over for _, was_over in batch.called)
    asking.close()


def test_an_interrupt_is_told_after_the_wait(batch: HeldBatch, interrupted: Callable[[int], None]) -> None:
    ended = threading.Event()
    ended.set()
    assert wait_whatever_comes(ended) is None
    interrupted(2)
    assert isinstance(wait_whatever_comes(ended), KeyboardInterrupt)
