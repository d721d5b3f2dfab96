"""Which tokens of which sequences are evaluated next, within a budget of cells; knows no llama.cpp, no text.

A cache has `n_ctx` cells shared by `n_seq` places. A request waits until a place is free and its cells
(prompt and everything it may generate) can be promised, so nothing that runs is ever evicted. Places keep
their cells after a request ends: a later prompt that begins with the same tokens copies the prefix (a cell
may belong to several places) and evaluates only its tail. Idle cells go, least recently used first, when
room is needed. Where a request is put together from kept KV, its restored ranges lie beside its place when it
starts, and the place takes each when it comes to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from localctx.engine.cells import Cells
from localctx.engine.places import Place, common_prefix, least_used
from localctx.engine.plan import Attach, Copy, Drop, Slice, Start, Work

__all__ = ["Attach", "Copy", "Drop", "Scheduler", "Slice", "Start", "Work", "common_prefix"]

_MIN_SHARED = 16  # a shorter common prefix is not worth waiting for


class Scheduler:
    """The plan of one cache. The caller applies each Start's edits, evaluates each batch, reports back."""

    def __init__(self, n_ctx: int, n_seq: int, *, reuse: bool = True, apart: bool = False) -> None:
        """`reuse` False: a place starts empty each time (caches that cannot be cut at a position) · `apart`:
        a step is one prompt's or of all that generate, by turns. On a CPU a step of several sequences looks
        at the cells of all of them for each token, which doubles what a prompt's token costs.
        """
        self.n_ctx = n_ctx
        self.n_seq = n_seq
        self._reuse = reuse
        self._apart = apart
        self.reset()

    def reset(self) -> None:
        """Forget everything: the cache is empty, nothing waits."""
        self._places = [Place(i, np.empty(0, np.int32), np.empty(0, np.int32)) for i in range(self.n_seq)]
        self._waiting: deque[tuple[int, Work]] = deque()
        self._cells = Cells(self.n_ctx)
        self._clock = 0
        self._is_prompts_turn = True

    def adopt(self, tokens: NDArray[np.int32]) -> None:
        """Forget everything, but that sequence 0 holds these tokens at positions 0, 1 … and nothing else.

        A prompt that begins with them evaluates only its rest, even without `reuse`: then all of them must
        be its beginning. Raises ValueError for more tokens than cells.
        """
        self.reset()
        place, n = self._places[0], len(tokens)
        place.tokens, place.cells = tokens.copy(), self._cells.take(n)
        place.n_filled, place.is_adopted = n, True

    # --- what a caller asks -----------------------------------------------------------------------

    @property
    def n_free_cells(self) -> int:
        """Cells that belong to no place."""
        return self._cells.n_free

    @property
    def held(self) -> NDArray[np.int32]:
        """The tokens that sequence 0 holds."""
        return self._places[0].filled

    def n_held_of(self, work: Work) -> int:
        """How many of the request's first tokens would be shared if it started now."""
        return self._best_source(work)[1]

    @property
    def n_waiting(self) -> int:
        """Requests without a place."""
        return len(self._waiting)

    @property
    def n_pending(self) -> int:
        """Tokens of prompts that are still to be evaluated."""
        waiting = sum(work.n_evaluated for _, work in self._waiting)
        return waiting + sum(place.n_ahead for place in self._places if place.request is not None)

    @property
    def is_idle(self) -> bool:
        """Nothing waits and nothing runs."""
        return not self._waiting and all(place.request is None for place in self._places)

    def running(self) -> list[tuple[int, int]]:
        """(request, sequence) of the requests that have a place."""
        return [(place.request, place.sequence) for place in self._places if place.request is not None]

    # --- the cycle: submit, then start → next_batch → advance → sampled or finish -------------------------

    def submit(self, request: int, work: Work) -> None:
        """Queue a request; len(tokens) + 1 must not exceed n_ctx."""
        if len(work.tokens) < 1 or work.max_tokens < 1 or len(work.tokens) + 1 > self.n_ctx:
            raise ValueError(f"request {request} cannot fit {self.n_ctx} cells")
        if work.restored and work.restored[-1][1] >= len(work.tokens):
            raise ValueError(f"request {request} evaluates nothing")
        self._waiting.append((request, work))

    def start(self) -> list[Start]:
        """Give free places to waiting requests, in order; a request whose prefix is just being evaluated
        elsewhere waits for it, one for which cells are short holds back those behind it.
        """
        starts: list[Start] = []
        n_ahead = 2 * len(self._places)
        for request, work in list(self._waiting)[:n_ahead]:
            if all(place.request is not None for place in self._places):
                break
            if self._prefix_is_coming(work):
                continue
            started = self._start_one(request, work)
            if started is None:
                break
            self._waiting.remove((request, work))
            starts.append(started)
        return starts

    def next_batch(self, n_batch: int) -> list[Slice]:
        """At most n_batch tokens: one for each sequence that generates, the rest for prompts in order; all by
        turns where those that generate leave no room.
        """
        active = [place for place in self._places if place.request is not None and len(place.pending)]
        if sum(len(place.pending) == 1 for place in active) < n_batch:
            active.sort(key=lambda place: (len(place.pending) > 1, place.last_used))
        else:
            active.sort(key=lambda place: place.last_served)
        batch: list[Slice] = []
        for place in active:
            n = min(len(place.pending), n_batch)
            if n == 0:
                break
            n_batch -= n
            is_last = n == len(place.pending) and place.n_filled + n >= len(place.prompt)
            batch.append(Slice(place.sequence, place.n_filled, place.pending[:n], is_last))
        return self._of_one_kind(batch) if self._apart else batch

    def _of_one_kind(self, batch: list[Slice]) -> list[Slice]:
        prompts = [part for part in batch if len(part.tokens) > 1]
        single = [part for part in batch if len(part.tokens) == 1]
        takes_prompt = bool(prompts) and (self._is_prompts_turn or not single)
        self._is_prompts_turn = not takes_prompt
        return prompts[:1] if takes_prompt else single

    def attach(self) -> list[Attach]:
        """What places take now of what lies beside them."""
        attached = []
        for place in self._places:
            while place.request is not None and (span := place.next_restored) is not None:
                self._fill(place, place.prompt[span[0] : span[1]])
                place.go_on()
                attached.append(Attach(place.sequence, *span))
        return attached

    def advance(self, batch: Sequence[Slice]) -> None:
        """The batch was evaluated: its tokens are in the cache."""
        for piece in batch:
            place = self._places[piece.sequence]
            self._fill(place, piece.tokens)
            place.pending = place.pending[len(piece.tokens) :]
            if not len(place.pending) and place.n_filled < len(place.prompt):
                place.go_on()
            self._clock += 1
            place.last_served = self._clock

    def sampled(self, sequence: int, token: int) -> None:
        """The sequence goes on with `token`."""
        self._places[sequence].pending = np.array([token], np.int32)

    def finish(self, sequence: int) -> None:
        """The request in this place is over; its cells stay for reuse."""
        place = self._places[sequence]
        self._clock += 1
        place.request, place.n_target, place.last_used = None, 0, self._clock
        place.pending = place.prompt = np.empty(0, np.int32)

    def cancel(self, request: int) -> int | None:
        """Forget a request, wherever it is; the sequence in which it ran, if it did."""
        self._waiting = deque(item for item in self._waiting if item[0] != request)
        sequence = next((sequence for number, sequence in self.running() if number == request), None)
        if sequence is not None:
            self.finish(sequence)
        return sequence

    def abandon(self) -> list[int]:
        """Forget all waiting requests and end the running ones; returns the waiting ones' numbers."""
        waiting = [request for request, _ in self._waiting]
        self._waiting.clear()
        for _, sequence in self.running():
            self.finish(sequence)
        return waiting

    def _forget(self, sequence: int) -> Drop:
        """Empty one idle place."""
        place = self._places[sequence]
        self._cut(place, 0)
        return Drop(sequence, 0)

    # --- inside -----------------------------------------------------------------------------------

    def _prefix_is_coming(self, work: Work) -> bool:
        """Whether a running prompt will soon hold a longer common prefix than any place holds now."""
        if not self._reuse:
            return False
        limit = len(work.tokens) - 1
        held = max(_n_shared(place, place.filled, work) for place in self._places)
        coming = max(
            (_n_shared(place, place.prompt, work) for place in self._places if place.request is not None),
            default=0,
        )
        return min(coming, limit) >= min(held, limit) + _MIN_SHARED

    def _start_one(self, request: int, work: Work) -> Start | None:
        """Give the request a place and cells, or None when the cells are not there."""
        source, n_reused = self._best_source(work)
        idle = [place for place in self._places if place.request is None]
        place = source if source is not None and source.request is None else least_used(idle)
        n_target = min(len(work.tokens) + work.max_tokens, self.n_ctx)
        n_needed = n_target - n_reused
        promised = sum(other.n_promised for other in self._places)
        evict = [other for other in idle if other is not place and other is not source]
        n_kept = n_reused if place is source else 0
        edits: list[Drop | Copy] = (
            [Drop(place.sequence, n_kept)] if n_kept < place.n_filled or not n_kept else []
        )
        n_free = self._cells.n_free_without([place.cells[n_kept : place.n_filled]])
        victims: list[Place] = []
        while n_free - promised < n_needed and evict:
            victims.append(least_used([other for other in evict if other.n_filled] or evict))
            evict.remove(victims[-1])
            n_free = self._cells.n_free_without(
                [place.cells[n_kept : place.n_filled], *(v.cells[: v.n_filled] for v in victims)]
            )
        if n_free - promised < n_needed:
            return None
        for victim in victims:
            if victim.n_filled:
                edits.append(self._forget(victim.sequence))
        self._cut(place, n_kept)
        if source is not None and place is not source and n_reused:
            edits.append(Copy(source.sequence, place.sequence, n_reused))
            self._share(source, place, n_reused)
        self._clock += 1
        place.request, place.prompt, place.is_adopted = request, work.tokens, False
        place.last_used = place.last_served = self._clock
        place.restored, place.n_target = work.restored, n_target
        place.made_of, place.n_shareable = work.made_of, work.n_shareable
        place.reserve(n_target)
        place.go_on()
        return Start(request, place.sequence, n_reused, tuple(edits))

    def _best_source(self, work: Work) -> tuple[Place | None, int]:
        """The place that holds the longest prefix of the prompt, short of its last token."""
        if not self._reuse:  # what was adopted can go on, and nothing can be cut
            place, n = self._places[0], self._places[0].n_filled
            fits = place.is_adopted and common_prefix(place.filled, work.tokens[:-1]) == n
            return (place, n) if fits and n else (None, 0)
        n_shared = [min(_n_shared(place, place.filled, work), len(work.tokens) - 1) for place in self._places]
        best = max(range(len(n_shared)), key=lambda i: (n_shared[i], self._places[i].request is None))
        return (self._places[best], n_shared[best]) if n_shared[best] else (None, 0)

    def _fill(self, place: Place, tokens: NDArray[np.int32]) -> None:
        """The place holds these tokens too."""
        end = place.n_filled + len(tokens)
        place.reserve(end)
        place.tokens[place.n_filled : end] = tokens
        place.cells[place.n_filled : end] = self._cells.take(len(tokens))
        place.n_filled = end

    def _cut(self, place: Place, n_kept: int) -> None:
        """Cut the place to n_kept tokens."""
        self._cells.give(place.cells[n_kept : place.n_filled])
        place.n_filled = min(place.n_filled, n_kept)

    def _share(self, source: Place, place: Place, n: int) -> None:
        """Let the first n cells of `source` be those of the empty `place` too."""
        place.reserve(n)
        place.tokens[:n] = source.tokens[:n]
        place.cells[:n] = source.cells[:n]
        place.n_filled = n
        self._cells.share(place.cells[:n])


def _n_shared(place: Place, tokens: NDArray[np.int32], work: Work) -> int:
    """How many first tokens of the place and the request are the same, made of the same."""
    if place.made_of != work.made_of:
        return 0
    return min(common_prefix(tokens, work.tokens), place.n_shareable, work.n_shareable)
