"""Runs a prefill plan in a working set and hands out the KV, chunk by chunk. Knows no llama.cpp."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from localctx._native import Rope, State
from localctx.engine.prefill import Plan
from localctx.engine.restoring import rows_of
from localctx.engine.working_set import WorkingSet
from localctx.kv import KVChunk, KVPart, OnChunk
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
) -> None:
    """Evaluate plan.lead, put `left` behind it, evaluate the rest; deliver what is wanted.

    `left`: the sinks, where left_from is behind them, and the tokens from left_from on.
    """
    is_pinned = plan.n_sinks == 0
    local = list(left)
    if plan.left_from >= plan.n_sinks > 0:
        working.begin_anew(0, 0)
        working.append(rows_of(left, 0, plan.n_sinks))
        working.pin(plan.n_sinks)
        is_pinned, local = True, rows_of(left, plan.n_sinks)
    working.begin_anew(plan.lead[0].start if plan.lead else plan.left_from, plan.left_base)
    for step in plan.lead:
        working.evaluate(tokens[step.start : step.end])
    working.append(local)
    for step in plan.steps:
        if not is_pinned and step.start >= plan.n_sinks:
            working.pin(plan.n_sinks)
            is_pinned = True
        if step.begins_anew:
            working.begin_anew(step.start, step.base)
        working.keep_from(step.keep_from)
        working.move(step.base)
        working.evaluate(tokens[step.start : step.end])
        if step.is_wanted:
            deliver(step.start, working.export(step.start, step.end))


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
