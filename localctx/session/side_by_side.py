"""Many questions answered side by side: each is an ask() of its own up to its place in one shared context.

One question is made ready (its passages chosen, their KV composed) while others are decoded; a place that
becomes free is taken at once. Knows no terminal and no threads: the caller steps.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias

from localctx.document import Document
from localctx.engine.embedder import EmbedderFile
from localctx.engine.reranker import RerankerFile
from localctx.errors import LocalctxError, UsageError
from localctx.selection.counting import asks_for_all
from localctx.session.answer import Answer
from localctx.session.ask import answered, check_question
from localctx.session.cache import why_no_cache
from localctx.session.counted import count_events
from localctx.session.events import (
    CHOSEN,
    DECODED,
    WAITING,
    Event,
    Failed,
    Finished,
    Listener,
    Progress,
    Text,
    ignore_progress,
)
from localctx.session.kept import Kept
from localctx.session.one_context import Held, OpenContext
from localctx.session.opening import introduce
from localctx.session.seat import Seat
from localctx.session.seats import Seats
from localctx.session.shared_readings import SharedReadings
from localctx.settings import Settings
from localctx.values import Model

__all__ = ["DEFAULT_PARALLEL", "MOST_PARALLEL", "SideBySide", "ask_many"]

DEFAULT_PARALLEL = 4
MOST_PARALLEL = 100
"""llama.cpp has 256 sequence ids, and each place takes two."""
Told: TypeAlias = "tuple[int, Event | Failed]"


@dataclass(slots=True, eq=False)
class _Question:
    """One that was submitted; `steps` when it was begun, `is_chosen` when it needs the model."""

    ticket: int
    documents: tuple[Document, ...]
    text: str
    settings: Settings
    blocks: tuple[int, ...] | None
    seat: Seat
    started: float = field(default_factory=time.perf_counter)
    steps: Generator[Event, None, None] | None = None
    is_chosen: bool = False


class SideBySide:
    """submit() questions, step() until is_idle; close() it, or use `with`. One thread calls all but stop().

    What was read of documents is kept for further questions on the same objects, until forget() or close().
    """

    def __init__(
        self,
        model: Model,
        settings: Settings,
        listen: Listener = ignore_progress,
        *,
        n_parallel: int | None = None,
        held: Held | None = None,
        embedder: EmbedderFile | str | None = None,
        reranker: RerankerFile | None = None,
    ) -> None:
        """n_parallel: questions decoded side by side, fewer where memory is short · held, embedder, reranker:
        see ask(); held's runs are shared, its context is closed. Raises UsageError for n_parallel.
        """
        n_wanted = n_parallel or settings.parallel or DEFAULT_PARALLEL
        if not 1 <= n_wanted <= MOST_PARALLEL:
            raise UsageError(f"{n_wanted} questions side by side", f"--parallel from 1 to {MOST_PARALLEL}")
        self._settings, self._listen = settings, listen
        early: list[str] = []
        context = OpenContext(self._settle)
        self._owned: Kept | None = None
        self._held: Held | None = None
        if held is not None:
            held.context.close()
            self._held = Held(held.kept, context)
        elif why_no_cache(model) is None:
            self._owned = Kept.of_settings(settings, early.append)
            self._held = Held(self._owned, context)
        self._seats = Seats(model, n_wanted, context)
        self._reads = SharedReadings(model, listen, early, embedder, reranker)
        self._queue: deque[_Question] = deque()
        self._open: dict[int, _Question] = {}
        self._preparing: _Question | None = None
        self._decoded: deque[_Question] = deque()
        self._told: list[Told] = []
        self._n_submitted = 0

    # --- what a caller asks ---------------------------------------------------------------------------

    @property
    def n_parallel(self) -> int:
        """Questions that are decoded side by side, once the first one is."""
        return self._seats.n_places

    @property
    def is_idle(self) -> bool:
        """Nothing that was submitted is unfinished."""
        return not (self._queue or self._open or self._told)

    def submit(
        self,
        documents: Sequence[Document],
        question: str,
        *,
        settings: Settings | None = None,
        blocks: Sequence[int] | None = None,
    ) -> int:
        """One more question, at any time; its ticket, counted from 0. `settings`: where they are not those of
        all, of the same model and store · `blocks`: see ask().
        """
        ticket, self._n_submitted = self._n_submitted, self._n_submitted + 1
        chosen = None if blocks is None else tuple(blocks)
        asked = settings or self._settings
        self._queue.append(_Question(ticket, tuple(documents), question, asked, chosen, Seat(self._seats)))
        return ticket

    def step(self) -> list[Told]:
        """One unit of work, and what it has to tell, by tickets: the events of ask(), Failed where one cannot
        be answered. At most one evaluation of the model, but for what prepares a question.
        """
        self._prepare()
        if self._seats.is_busy:
            try:
                seats = self._seats.step(self._meanwhile if self._has_work else None)
            except LocalctxError as error:
                self._fail_seated(error)
            else:
                questions = [one for one in self._open.values() if one.seat in seats]
                for question in questions:
                    self._run_on(question)
        elif self._decoded:
            self._run_on(self._decoded.popleft())
        if self._seats.is_stopped:
            self._queue.clear()
        told, self._told = self._told, []
        return told

    def __iter__(self) -> Iterator[Told]:
        """All events until it is idle."""
        while not self.is_idle:
            yield from self.step()

    def cancel(self, ticket: int) -> None:
        """Forget a question and free its place; nothing of it is told any more. Again is harmless."""
        self._seats.settle()
        self._queue = deque(one for one in self._queue if one.ticket != ticket)
        question = self._open.get(ticket)
        if question is not None:
            self._end(question)
        self._told = [told for told in self._told if told[0] != ticket]

    def stop(self) -> None:
        """End all soon, from any thread: answers that are begun finish as "cancelled", no other is begun."""
        self._seats.stop()

    def forget(self, documents: Sequence[Document]) -> None:
        """Let go of what was read of documents, of which no question is open."""
        self._reads.forget(documents)

    def close(self) -> None:
        """End what is open and free everything; again is harmless."""
        try:
            self._seats.settle()
        finally:
            self._free()

    def _free(self) -> None:
        self._queue.clear()
        for question in list(self._open.values()):
            self._end(question)
        self._seats.close()
        self._seats.preparing.close()
        self._reads.close()
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    # --- inside ---------------------------------------------------------------------------------------

    def _settle(self) -> None:
        self._seats.settle()

    def _prepare(self) -> None:
        """Go on with the question that is made ready, or begin with the next one where there is room; what
        can be done beside the model waits until it is at work.
        """
        self._begin_next()
        if self._preparing is not None and not (self._can_wait and self._seats.is_busy):
            self._make_ready(self._preparing)
            if self._seats.overlaps:
                self._begin_next()

    def _begin_next(self) -> None:
        if self._preparing is None and self._queue and self._seats.is_hungry:
            question = self._queue.popleft()
            question.steps = self._steps(question)
            if self._held is not None and not self._seats.n_waiting:  # no runs are wanted still
                self._held.kept.begin_question()
            self._open[question.ticket] = self._preparing = question

    def _make_ready(self, question: _Question) -> None:
        self._run_on(question)
        if question.ticket not in self._open or question.seat.number is not None:
            self._preparing = None

    @property
    def _can_wait(self) -> bool:
        """Whether the question that is made ready needs no model yet, and can be gone on with beside it."""
        question = self._preparing
        return (
            question is not None
            and self._seats.overlaps
            and not question.is_chosen
            and "landmarks" not in question.settings.cache.rank
        )

    @property
    def _has_work(self) -> bool:
        """Whether there is something to do while the model is at work."""
        return bool(self._decoded) or self._can_wait

    def _meanwhile(self, is_done: Callable[[], bool]) -> None:
        """Choose for the next question, then judge answers, one at least."""
        if self._preparing is not None and self._can_wait:
            self._make_ready(self._preparing)
        while self._decoded:
            self._run_on(self._decoded.popleft())
            if is_done():
                return

    def _steps(self, question: _Question) -> Generator[Event, None, None]:
        """ask(), on what was read already."""
        check_question(question.text, question.settings)
        noted: list[str] = []
        if asks_for_all(question.text):
            counting = self._reads.unread(question.documents, question.settings, question.blocks)
            if counted := count_events(counting, question.text):
                yield from (*introduce(counting), *counted)
                return
            noted = [notice.text for notice in counting.unheard()]
        read = self._reads.get(question.documents, question.settings)
        run = read.run_of(question.settings, question.started, question.blocks)
        for text in noted:
            run.note(text)
        yield from read.events
        yield from answered(run, read.index, question.text, self._held, question.seat)

    def _run_on(self, question: _Question) -> None:
        """Let the question tell what it has to until it waits or is over; one that has a context of its own
        until the next piece of its answer.
        """
        try:
            while question.steps is not None:
                event = next(question.steps, None)
                if event is None:
                    self._over(question)
                    return
                if event is WAITING:
                    return
                if event is CHOSEN:
                    question.is_chosen = True
                    if self._seats.is_evaluating:
                        return
                    continue
                if event is DECODED:
                    if self._seats.overlaps:
                        self._decoded.append(question)
                        return
                    continue
                self._told.append((question.ticket, event))
                if isinstance(event, Text) and question.seat.number is None:
                    return
        except LocalctxError as error:
            self._told.append((question.ticket, Failed(error)))
            self._over(question)

    def _fail_seated(self, error: LocalctxError) -> None:
        """The model failed: so did all that it was at work for."""
        seated = [one for one in self._open.values() if one.seat.number is not None]
        for question in [one for one in seated if one not in self._decoded]:
            self._end(question)
            self._told.append((question.ticket, Failed(error)))
        self._seats.close()

    def _end(self, question: _Question) -> None:
        if question.steps is not None:
            question.steps.close()
        self._over(question)

    def _over(self, question: _Question) -> None:
        self._open.pop(question.ticket, None)
        self._decoded = deque(one for one in self._decoded if one is not question)
        if self._preparing is question:
            self._preparing = None
        n_open = len(self._open) + len(self._queue)
        self._listen(Progress("questions", self._n_submitted - n_open, self._n_submitted, "questions"))


def ask_many(
    documents: Sequence[Document],
    model: Model,
    questions: Iterable[str],
    settings: Settings,
    listen: Listener = ignore_progress,
    *,
    n_parallel: int | None = None,
    held: Held | None = None,
    embedder: EmbedderFile | str | None = None,
    reranker: RerankerFile | None = None,
) -> Generator[tuple[int, Answer | LocalctxError], None, None]:
    """The questions' numbers with their answers, or why there is none, as each is finished. Arguments: see
    SideBySide.
    """
    with SideBySide(
        model, settings, listen, n_parallel=n_parallel, held=held, embedder=embedder, reranker=reranker
    ) as asking:
        for question in questions:
            asking.submit(documents, question)
        for number, event in asking:
            if isinstance(event, Finished):
                yield number, event.answer
            elif isinstance(event, Failed):
                yield number, event.error
