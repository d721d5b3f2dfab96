"""Which tokens a streaming prefill evaluates next, and what they may attend to; pure, knows no cache.

A plan is the order of evaluation. The prefix is always attended and not counted here; tokens are counted from
the stream's start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from localctx.errors import UsageError
from localctx.kv import RECALL_CHUNK_TOKENS, RUN_TOKENS, PrefillPolicy

__all__ = [
    "HIGHEST_POSITION",
    "Plan",
    "Step",
    "chunk_tokens",
    "plan_prefill",
    "sink_tokens",
    "unit_groups",
    "whole_runs",
]

HIGHEST_POSITION = 131_072
"""llama.cpp turns keys by angles in single precision: at this position they are off by 0.008 at most."""


@dataclass(frozen=True, slots=True)
class Step:
    """Evaluate tokens [start, end), which attend to the sinks, to what is put back right before keep_from, to
    [keep_from, start) and to themselves.

    lift: prefix and sinks stand so far above 0 · base: token t stands at lift + n_prefix + base + t ·
    begins_anew: what the cache holds of the stream is forgotten first · is_wanted: the KV goes to the caller.
    """

    start: int
    end: int
    keep_from: int
    base: int = 0
    lift: int = 0
    begins_anew: bool = False
    is_wanted: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """lead: steps before the given KV of tokens [left_from, first) is put behind them, at `left_base` and
    `left_lift`; then the rest. The tokens [0, n_sinks) are never evicted: they stand right behind the prefix.
    """

    lead: tuple[Step, ...]
    left_from: int
    left_base: int
    steps: tuple[Step, ...]
    n_sinks: int = 0
    left_lift: int = 0

    @property
    def n_rebased(self) -> int:
        """How often prefix and window are brought together again."""
        return sum(a.base != b.base and not b.begins_anew for a, b in pairwise(self.steps))


def whole_runs(n_tokens: int) -> int:
    """n_tokens, rounded up to whole runs."""
    return -(-n_tokens // RUN_TOKENS) * RUN_TOKENS


def sink_tokens(policy: PrefillPolicy) -> int:
    """Tokens of the stream's beginning that stay attended, in whole runs."""
    return whole_runs(policy.sinks) if policy.kind == "window" else 0


def _held(policy: PrefillPolicy, n_tokens: int) -> int:
    """Tokens of the stream that are held, at most, when a chunk begins."""
    match policy.kind:
        case "exact":
            return n_tokens
        case "window":
            attended = sink_tokens(policy) + policy.recalled_tokens + whole_runs(policy.window)
            return min(attended, n_tokens)
        case "lazy":
            return min(2 * _segment(policy), n_tokens)
        case "independent":
            return 0


def chunk_tokens(policy: PrefillPolicy, n_prefix: int, n_tokens: int, n_ctx: int, n_batch: int) -> int:
    """Tokens evaluated and exported at a time: whole runs, about a batch at most, as many as n_ctx leaves.

    Raises UsageError when not even one run fits.
    """
    chunk, least = max(RUN_TOKENS, n_batch // RUN_TOKENS * RUN_TOKENS), RUN_TOKENS
    if policy.recalled_tokens:  # what is put back for a chunk depends on its tokens: it is always that long
        chunk = least = RECALL_CHUNK_TOKENS
    held = _held(policy, n_tokens)
    room = n_ctx - n_prefix - held
    if held == n_tokens or policy.kind == "lazy":  # the chunk is part of what is held
        if room >= 0:
            return chunk
        needed = n_prefix + held
    else:
        if room >= least:
            return min(chunk, room // RUN_TOKENS * RUN_TOKENS)
        needed = n_prefix + held + least
    raise UsageError(
        f"prefill with policy {policy.kind} needs {needed:,} tokens of context, there are {n_ctx:,}",
        f"--ctx {needed}, or less to attend to: --kv window=N"
        + (",sinks=N" if policy.sinks else "")
        + (",routed=K" if policy.routed else ""),
    )


def plan_prefill(
    policy: PrefillPolicy, n_tokens: int, first: int, n_left: int, n_chunk: int, n_positions: int
) -> Plan:
    """The steps of policies exact, window and lazy for tokens [first, n_tokens), wherever it begins the same.

    Positions grow while tokens leave the window. When the next chunk would be more than n_positions from the
    prefix, prefix and sinks are put right before the window and the room for what is put back, which is much
    less to move than the window is: only distances matter. Past HIGHEST_POSITION it is the window that is
    taken back. A token's position does not depend on where the stream began. The first of the n_left tokens
    at hand are the sinks, unless they are all before `first`.

    Raises ValueError when `first` is inside a run, or when `left` lacks what the policy attends to.
    """
    if first % RUN_TOKENS or not 0 <= n_left <= first:
        raise ValueError(f"{n_left} tokens of left context before token {first}")
    if policy.recalled_tokens and first % n_chunk:
        raise ValueError(f"token {first} is inside a chunk for which earlier runs are put back")
    if policy.kind == "lazy":
        return _plan_lazy(_segment(policy), n_tokens, first, n_left, n_chunk)
    window = whole_runs(policy.window) if policy.kind == "window" else n_tokens
    n_sinks = sink_tokens(policy)
    if n_left < min(first, n_sinks + window):
        wanted = min(first, n_sinks + window)
        raise ValueError(f"{n_left} tokens of left context before token {first}, {wanted} wanted")

    steps, base, lift = [], 0, 0
    for start, end in _chunks(0, n_tokens, n_chunk):
        keep_from = max(n_sinks, start - window) if start > n_sinks else 0
        if base + start + n_chunk > n_positions:  # whether or not the last chunk is that long
            before, base = base, n_sinks + policy.recalled_tokens - keep_from
            lift += before - base
            if lift + n_positions > HIGHEST_POSITION:
                lift = 0
        if end > first:
            steps.append(Step(max(start, first), end, keep_from, base, lift))
    n_local = n_left if n_left == first else n_left - n_sinks
    left_from = max(first - n_local, steps[0].keep_from) if steps else first
    left_base, left_lift = (steps[0].base, steps[0].lift) if steps else (0, 0)
    return Plan((), left_from, left_base, tuple(steps), n_sinks, left_lift)


def _segment(policy: PrefillPolicy) -> int:
    """Tokens after which a lazy stream begins anew."""
    return max(RUN_TOKENS, whole_runs(policy.window))


def _chunks(start: int, end: int, n_chunk: int) -> list[tuple[int, int]]:
    """[start, end) cut at the multiples of n_chunk."""
    if start >= end:
        return []
    return list(pairwise([start, *range((start // n_chunk + 1) * n_chunk, end, n_chunk), end]))


def _plan_lazy(segment: int, n_tokens: int, first: int, n_left: int, n_chunk: int) -> Plan:
    """Segment k is evaluated behind segment k - 1, which is evaluated for it alone; the first two are one."""
    number = first // segment
    origin = max(0, number - 1) * segment
    left_from = max(first - n_left, number * segment if number > 1 else 0)
    lead = tuple(Step(a, b, origin, -origin, is_wanted=False) for a, b in _chunks(origin, left_from, n_chunk))
    left_base, steps = -origin, list[Step]()
    while first < n_tokens:
        if steps and number > 1:
            origin = (number - 1) * segment
            steps += [
                Step(a, b, origin, -origin, begins_anew=a == origin, is_wanted=False)
                for a, b in _chunks(origin, first, n_chunk)
            ]
        end = min((number + 1) * segment, n_tokens)
        steps += [Step(a, b, origin, -origin) for a, b in _chunks(first, end, n_chunk)]
        first, number = end, number + 1
    return Plan(lead, left_from, left_base, tuple(steps))


def unit_groups(
    starts: Sequence[int], n_tokens: int, first: int, n_chunk: int, n_sequences: int
) -> Iterator[list[tuple[int, int]]]:
    """Units [start, end) from `first` on, in order, as many at a time as sequences and n_chunk allow.

    A unit longer than n_chunk comes alone. Without `starts` every run is a unit. Raises ValueError when the
    starts do not ascend from 0 or `first` is none of them.
    """
    edges = [*(starts or range(0, n_tokens, RUN_TOKENS)), n_tokens]
    if edges[0] != 0 or any(a >= b for a, b in pairwise(edges)) or first not in edges:
        raise ValueError(f"units from token {edges[0]}, the stream from token {first}")
    group: list[tuple[int, int]] = []
    for start, end in pairwise(edges[edges.index(first) :]):
        if group and (end - group[0][0] > n_chunk or len(group) == n_sequences):
            yield group
            group = []
        group.append((start, end))
    if group:
        yield group
