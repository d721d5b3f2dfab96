"""The decoding thread: order, cancelling, backpressure, stopping, and what happens when a step fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from serve.serving import PATIENCE_S

from localctx.engine.echo import EchoModel
from localctx.errors import LocalctxError
from localctx.serve.chats import Chats
from localctx.serve.keys import ANYONE, Tenant
from localctx.serve.tickets import Busy, ChatJob, End, Outcome, Stopping, Ticket
from localctx.serve.worker import Outcomes, Worker
from localctx.values import Message, Piece, Request, Sampling


class Asked:
    """A ticket and what came of it; with `is_held` its first outcome keeps the worker waiting for go_on."""

    def __init__(
        self,
        model: EchoModel,
        text: str,
        n_tokens: int = 100,
        tenant: Tenant = ANYONE,
        *,
        is_held: bool = False,
    ) -> None:
        prompt = model.prompt([Message("user", (text,))])
        job = ChatJob((Request(prompt, Sampling(max_tokens=n_tokens)),))
        self.outcomes: list[Outcome] = []
        self.begun, self.ended, self.let_go = threading.Event(), threading.Event(), threading.Event()
        self.go_on = threading.Event()
        self.was_let_go = False
        if not is_held:
            self.go_on.set()
        self.ticket = Ticket(tenant, job, self.take, time.monotonic(), self.let_go.set)

    def take(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self.begun.set()
        assert self.go_on.wait(PATIENCE_S)
        if isinstance(outcome, End):
            self.was_let_go = self.let_go.is_set()
            self.ended.set()

    @property
    def text(self) -> str:
        return "".join(one.text for one in self.outcomes if isinstance(one, Piece))


def deliver(outcomes: Outcomes) -> None:
    for ticket, outcome in outcomes:
        ticket.receive(outcome)


@contextmanager
def working(
    model: EchoModel, n_seq: int = 2, max_queue: int = 3, n_ctx: int = 4096
) -> Iterator[tuple[Worker, Chats]]:
    chats = Chats(model, n_ctx, n_seq)
    worker = Worker({ChatJob: chats}, [ANYONE], deliver, max_queue=max_queue)
    worker.start()
    try:
        yield worker, chats
    finally:
        worker.close()


@pytest.fixture
def endless() -> EchoModel:
    """A model that never stops of itself."""
    return EchoModel(lambda text: "word " * 4000, n_ctx_train=32_768)


def test_many_are_answered_each_with_its_own_text() -> None:
    model = EchoModel()
    with working(model, n_seq=3, max_queue=50) as (worker, _):
        many = [Asked(model, f"the answer of number {n}") for n in range(40)]
        for one in many:
            worker.push(one.ticket)
        for n, one in enumerate(many):
            assert one.ended.wait(PATIENCE_S)
            assert one.text.endswith(f"number {n}")
            assert one.was_let_go, "who hears the end finds it counted"
            assert one.ticket.n_generated > 0
    assert worker.n_running == 0


def test_who_cancels_frees_the_place_and_hears_nothing_more(endless: EchoModel) -> None:
    with working(endless, n_seq=1, n_ctx=32_768) as (worker, _):
        first, second = Asked(endless, "a", 20_000, is_held=True), Asked(endless, "b", 3)
        worker.push(first.ticket)
        worker.push(second.ticket)
        assert first.begun.wait(PATIENCE_S)
        assert not second.begun.is_set()
        worker.cancel(first.ticket)
        first.go_on.set()
        assert second.ended.wait(PATIENCE_S)
        assert first.let_go.wait(PATIENCE_S)
        assert not first.ended.is_set()
        assert 0 < first.ticket.n_generated < 20_000
        worker.cancel(first.ticket)  # again is harmless


def test_a_full_line_refuses_and_a_waiting_one_can_leave(endless: EchoModel) -> None:
    with working(endless, n_seq=1, max_queue=2, n_ctx=32_768) as (worker, _):
        running = Asked(endless, "a", 20_000, is_held=True)
        worker.push(running.ticket)
        assert running.begun.wait(PATIENCE_S)
        waiting = [Asked(endless, "b", 3) for _ in range(2)]
        for one in waiting:
            worker.push(one.ticket)
        with pytest.raises(Busy):
            worker.push(Asked(endless, "c").ticket)
        worker.cancel(waiting[0].ticket)
        assert waiting[0].let_go.is_set()
        worker.push(Asked(endless, "c", 3).ticket)
        running.go_on.set()


def test_draining_ends_what_waits_and_lets_what_runs_finish(endless: EchoModel) -> None:
    with working(endless, n_seq=1, n_ctx=32_768) as (worker, _):
        running, waiting = Asked(endless, "a", 300, is_held=True), Asked(endless, "b", 3)
        worker.push(running.ticket)
        worker.push(waiting.ticket)
        assert running.begun.wait(PATIENCE_S)
        worker.drain()
        assert waiting.ended.wait(PATIENCE_S)
        assert isinstance(end := waiting.outcomes[-1], End)
        assert end.error is not None
        assert "shutting down" in end.error.message
        with pytest.raises(Stopping):
            worker.push(Asked(endless, "c").ticket)
        running.go_on.set()
        assert running.ended.wait(PATIENCE_S)
        assert running.ticket.n_generated == 300


def test_a_step_that_fails_fails_what_was_open_and_nothing_later(monkeypatch: pytest.MonkeyPatch) -> None:
    model = EchoModel()
    with working(model) as (worker, chats):
        fail_once(chats, monkeypatch)
        failed = Asked(model, "one two")
        worker.push(failed.ticket)
        assert failed.ended.wait(PATIENCE_S)
        assert isinstance(end := failed.outcomes[-1], End)
        assert end.error is not None
        later = Asked(model, "one two")
        worker.push(later.ticket)
        assert later.ended.wait(PATIENCE_S)
        assert later.text == "one two"
        assert worker.is_alive


def fail_once(chats: Chats, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next step's evaluation raises."""
    begin: Callable[[], object] = chats._ready

    def broken() -> object:
        monkeypatch.undo()
        batch = begin()

        class Broken:
            def submit(self, request: Request, shared: object) -> int:
                return batch.submit(request)  # type: ignore[attr-defined,no-any-return]  # a Batch

            def close(self) -> None:
                pass

            def step(self) -> list[Piece]:
                raise LocalctxError("evaluating failed")

        monkeypatch.setattr(chats, "_batch", Broken())
        return chats._batch

    monkeypatch.setattr(chats, "_ready", broken)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_bug_in_the_thread_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    model = EchoModel()
    with working(model) as (worker, chats):
        monkeypatch.setattr(chats, "step", lambda: 1 / 0)
        one = Asked(model, "one")
        worker.push(one.ticket)
        assert one.ended.wait(PATIENCE_S)
        assert one.let_go.is_set()
        assert not worker.is_alive
        with pytest.raises(Stopping):
            worker.push(Asked(model, "two").ticket)
