"""Runs a prefill plan in a working set and hands out the KV, chunk by chunk. Knows no llama.cpp."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from localctx._native import Rope, State
from localctx.engine.prefill import Plan, Step
from localctx.engine.restoring import rows_of
from localctx.engine.tapping import Tapping
from localctx.engine.working_set import WorkingSet
from localctx.kv import KVChunk, KVPart, OnChunk, Route
from localctx.values import Progress

__all__ = ["Delivery", "stream_steps", "stream_units"]


class Delivery:
    """Where finished KV goes; counts its tokens."""

    def __init__(
        self, on_chunk: OnChunk, rope: Rope, n_tokens: int, on_progress: Progress | None = None
    ) -> None:
        """`n_tokens`: to be delivered in all."""
        self._on_chunk = on_chunk
        self._rope = rope
        self._n_tokens = n_tokens
        self._on_progress = on_progress
        self._n_done = 0

    def __call__(self, first: int, state: State) -> None:
        """Tokens from `first` on are done."""
        n = state.n_tokens
        self._on_chunk(KVChunk(first, n, state, self._rope))
        self._n_done += n
        if self._on_progress is not None:
            self._on_progress(self._n_done, self._n_tokens)


def stream_steps(
    working: WorkingSet,
    tokens: NDArray[np.int32],
    plan: Plan,
    left: Sequence[KVPart],
    deliver: Delivery,
    route: Route | None = None,
    tapping: Tapping | None = None,
) -> None:
    """Evaluate plan.lead, put `left` behind it, evaluate the rest; deliver what is wanted.

    `left`: the sinks, where left_from is behind them, and the tokens from left_from on. `route` is asked for
    what is put back for a step while the one before is evaluated. `tapping`: the evaluator, where texts are
    decoded beside.
    """
    is_pinned = plan.n_sinks == 0
    local = list(left)
    if plan.left_from >= plan.n_sinks > 0:
        working.begin_anew(0, 0)
        working.append(rows_of(left, 0, plan.n_sinks))
        working.pin(plan.n_sinks)
        is_pinned, local = True, rows_of(left, plan.n_sinks)
    working.begin_anew(plan.lead[0].start if plan.lead else plan.left_from, plan.left_base)
    working.move(plan.left_base, plan.left_lift)
    for step in plan.lead:
        working.evaluate(tokens[step.start : step.end])
    working.append(local)
    with _Recalls(plan, route) as recalls:
        for number, step in enumerate(plan.steps):
            if not is_pinned and step.start >= plan.n_sinks:
                working.pin(plan.n_sinks)
                is_pinned = True
            working.forget_recalled()
            if tapping is not None and (step.begins_anew or working.moves(step.base, step.lift)):
                tapping.drain()  # its cells would be there twice
            if step.begins_anew:
                working.begin_anew(step.start, step.base)
            working.keep_from(step.keep_from)
            working.move(step.base, step.lift)
            working.recall(recalls.of(number))
            if tapping is not None:
                tapping.stand(*working.standing, step.start)
            working.evaluate(tokens[step.start : step.end])
            if step.is_wanted:
                deliver(step.start, working.export(step.start, step.end))
    if tapping is not None:
        tapping.drain()


class _Recalls:
    """What is put back for each step, looked for while the step before is evaluated where that one's tokens
    cannot be part of it.
    """

    def __init__(self, plan: Plan, route: Route | None) -> None:
        self._plan = plan
        self._route = route
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="recall")
        self._next: Future[Sequence[KVPart]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def of(self, number: int) -> Sequence[KVPart]:
        """The parts for this step; begins to look for those of the next."""
        if self._route is None:
            return ()
        step, following = self._plan.steps[number], self._plan.steps[number + 1 : number + 2]
        found = self._next.result() if self._next is not None else self._ask(step)
        self._next = None
        if following and following[0].keep_from <= step.start:
            self._next = self._pool.submit(self._ask, following[0])
        return found

    def _ask(self, step: Step) -> Sequence[KVPart]:
        first = self._plan.n_sinks
        if self._route is None or step.keep_from <= first:
            return ()
        return self._route(first, step.keep_from, step.start, step.end)


def stream_units(
    working: WorkingSet,
    tokens: NDArray[np.int32],
    groups: Iterable[Sequence[tuple[int, int]]],
    n_chunk: int,
    deliver: Delivery,
) -> None:
    """Evaluate each unit behind the prefix alone; those of a group side by side."""
    for group in groups:
        if len(group) > 1:
            states = working.evaluate_units([tokens[start:end] for start, end in group])
            for (start, _), state in zip(group, states, strict=True):
                deliver(start, state)
            continue
        start, end = group[0]
        working.begin_anew(start, -start)
        for a, b in pairwise([*range(start, end, n_chunk), end]):
            working.evaluate(tokens[a:b])
            deliver(a, working.export(a, b))
