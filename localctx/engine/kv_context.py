"""A context whose KV can be taken out, moved and put back (kv.KVContext), on llama.cpp.

Knows no files and no codecs: KV goes out as states and comes back as parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from localctx._native import Rope, State
from localctx.batches import batches
from localctx.engine.batch_context import Stopped
from localctx.engine.llama_context import LlamaContext, Owner
from localctx.engine.new_context import ContextSizes
from localctx.engine.open_batch import OpenBatch
from localctx.engine.parts_stock import KVStock
from localctx.engine.prefill import Plan, chunk_tokens, plan_prefill, unit_groups
from localctx.engine.restoring import KVWriter, rows_of, slices_of
from localctx.engine.rope import RopeTable
from localctx.engine.schedule import Slice
from localctx.engine.streaming import Delivery, stream_steps, stream_units
from localctx.engine.tapping import Tapping
from localctx.engine.working_set import WorkingSet
from localctx.kv import KVPart, OnChunk, PrefillPolicy, RestoreTimes, Route
from localctx.kv_taps import Taps
from localctx.values import Progress

Work: TypeAlias = Callable[[WorkingSet, Tapping | None], None]
_MAX_SPARE = 96
_TOKENS_A_SPARE = 10
_TOGETHER_TOKENS, _GPU_TOGETHER_TOKENS = 64, 256
"""Of a prefill, evaluated at a time while texts are decoded beside it."""
_STEP_TOKENS = 64
"""What a GPU evaluates in the time that a step takes whatever is in it, about."""

__all__ = ["LlamaKVContext", "n_spare"]


def n_spare(n_batch: int, n_seq: int = 1) -> int:
    """Sequence ids that a context keeps to itself: for as many gaps or independent units as one step may
    hold, two at least, for moving; in a batch one for each sequence, and one for moving.
    """
    return max(min(_MAX_SPARE, max(2, n_batch // _TOKENS_A_SPARE)), n_seq + 1)


class LlamaKVContext(LlamaContext):
    """A kv.KVContext. It keeps sequence ids to itself for exports, gaps and independent units."""

    def __init__(
        self,
        lib: Any,
        model: Owner,
        sizes: ContextSizes,
        table: RopeTable,
        notices: tuple[str, ...] = (),
    ) -> None:
        """`table` is the rotation in such a context; `like` must be set before anything else is called.

        Raises ModelError with llama.cpp's reason.
        """
        self.rope_table = Rope(table.frequencies, table.head_dim, neox=table.neox, magnitude=table.magnitude)
        super().__init__(lib, model, sizes, notices)
        self.like: State
        self.restore_times = RestoreTimes()
        self.n_rebased = 0
        self._taps: Taps | None = None

    @property
    def held_tokens(self) -> tuple[int, ...]:
        """See kv.KVContext."""
        return tuple(self._scheduler.held.tolist())

    @property
    def n_positions(self) -> int:
        """Positions that the model can take."""
        return max(self._model.info.n_ctx_train, self.sizes.n_longest or self.n_ctx_effective)

    @property
    def host_memory(self) -> str:
        """What KV is exported to: "page-locked" or "plain memory"."""
        return self.cells.buffers.kind

    @property
    def _spares(self) -> range:
        return range(self.sizes.n_seq, self.sizes.n_ids)

    def stream(
        self,
        prefix: Sequence[int],
        tokens: Sequence[int],
        policy: PrefillPolicy,
        on_chunk: OnChunk,
        *,
        first: int = 0,
        left: Sequence[KVPart] = (),
        units: Sequence[int] = (),
        route: Route | None = None,
        on_progress: Progress | None = None,
    ) -> int:
        """See kv.KVContext. `units`: where the independent units start (each of them is a chunk, or several
        when it is long), else every run is one; on_progress counts tokens that went to on_chunk.

        lazy: `left` may hold what is stored of first's own segment of `window` tokens; the segment before it
        is evaluated for it, and not handed out. Raises UsageError when the working set does not fit,
        ValueError for `first`, `left`, `units` or `route` that the policy cannot start from.
        """
        if first >= len(tokens):
            return 0
        n_batch, wanted = self._model.n_batch, np.array(tokens, np.int32)
        taps = self._taps
        n_own, n_beside = (0, 0) if taps is None else (taps.n_cells, taps.n_tokens)
        n_chunk = chunk_tokens(policy, len(prefix), len(tokens), self.n_ctx - n_own, n_batch)
        deliver = Delivery(on_chunk, self.rope_table, len(tokens) - first, on_progress)
        self.n_rebased = 0
        if policy.kind == "independent":
            if taps is not None:
                raise ValueError("independent units have no taps")
            groups = list(unit_groups(units, len(tokens), first, min(n_chunk, n_batch), len(self._spares)))

            def work(working: WorkingSet, tapping: Tapping | None) -> None:
                stream_units(working, wanted, groups, n_chunk, deliver)

        else:
            n_left, n_behind = sum(part.n_tokens for part in left), len(prefix) + n_beside
            plan = plan_prefill(policy, len(tokens), first, n_left, n_chunk, self.n_positions - n_behind)
            kept, self.n_rebased = _attended(left, plan, first), plan.n_rebased
            asked = _route_of(policy, route)

            def work(working: WorkingSet, tapping: Tapping | None) -> None:
                stream_steps(working, wanted, plan, kept, deliver, asked, tapping)

        return self._worked(prefix, taps, work)

    def _worked(self, prefix: Sequence[int], taps: Taps | None, work: Work) -> int:
        """Do the work behind the prefix in an empty context; the number of tokens evaluated."""
        with self._emptied(), self._evaluator(taps) as tapping:
            writer = KVWriter(self.cells, self.like, self.rope_table, self._spares[0])
            working = WorkingSet(self.cells, tapping or self, writer, self._spares)
            with suppress(Stopped):  # what was complete is delivered
                working.begin(np.array(prefix, np.int32))
                work(working, tapping)
            self._empty()
        return working.n_evaluated

    @contextmanager
    def tapping(self, taps: Taps) -> Iterator[None]:
        """See kv_taps.TappingContext."""
        self._taps = taps
        try:
            yield
        finally:
            self._taps = None

    @contextmanager
    def _evaluator(self, taps: Taps | None) -> Iterator[Tapping | None]:
        """What evaluates a stream with taps. Raises ValueError where there are no ids for their sequences."""
        if taps is None:
            yield None
            return
        sequences = self._spares[2:]
        if not sequences:
            raise ValueError("no sequence ids for taps")
        n_together = _GPU_TOGETHER_TOKENS if self._model.is_offloaded else _TOGETHER_TOKENS
        tapping = Tapping(
            taps, self.run_batch, self.cells, self.decoder, sequences, self._new_splitter, n_together
        )
        try:
            yield tapping
        finally:
            tapping.close()

    def place(
        self,
        tokens: Sequence[int],
        parts: Sequence[KVPart],
        on_progress: Progress | None = None,
        *,
        n_sweeps: int = 0,
    ) -> int:
        """See kv.KVContext. Cancelling leaves the cache empty."""
        gaps = _gaps(parts, len(tokens))
        n_gaps = sum(end - start for start, end in gaps)
        n_evaluated, self.restore_times = 0, RestoreTimes()

        def tell(done: int, _: int) -> None:
            if on_progress is not None:
                on_progress(n_evaluated + done, n_gaps)

        with suppress(Stopped), self._refilled(tokens) as wanted:
            self._put_back(parts)
            if n_sweeps and self.can_sweep(gaps, len(tokens)):
                self._sweep(gaps, wanted, n_sweeps)
                n_evaluated = n_gaps
                tell(0, 0)
                return n_evaluated
            n_shared, spare = 0, self._spares[0]
            for start, end in gaps:
                self.cells.copy(0, spare, n_shared, start)
                self.run_tokens(spare, start, wanted[start:end], tell)
                self.cells.copy(spare, 0, start, end)
                n_shared, n_evaluated = end, n_evaluated + end - start
            self.cells.drop(spare)
        return n_evaluated

    def can_sweep(self, gaps: Sequence[tuple[int, int]], n_tokens: int) -> bool:
        """See kv.KVContext."""
        lengths, n_free = [end - start for start, end in gaps], self.n_ctx - n_tokens
        n_new, n_longest = sum(lengths), max(lengths, default=0)
        fits = len(gaps) <= len(self._spares) and n_longest <= self.decoder.n_batch and n_new <= n_free
        return self._model.is_offloaded and fits and n_new <= (len(gaps) - 2) * _STEP_TOKENS

    def _put_back(self, parts: Sequence[KVPart]) -> None:
        """Add the parts to sequence 0, each where it stands."""
        ordered = sorted((part for part in parts if part.n_tokens), key=lambda part: part.position)
        if not ordered:
            return
        positions = [np.arange(part.position, part.position + part.n_tokens) for part in ordered]
        writer = KVWriter(self.cells, self.like, self.rope_table, self._spares[0], self.restore_times)
        writer.write(0, slices_of(ordered, np.concatenate(positions).astype(np.int32), writer.slice_tokens))

    def _sweep(self, gaps: Sequence[tuple[int, int]], wanted: NDArray[np.int32], n_sweeps: int) -> None:
        """Evaluate all gaps at once, n times: each sees what the time before made of those before it.

        Every gap has a sequence of its own, with what it sees; sequence 0 has them at the end.
        """
        used = dict(zip(gaps, self._spares, strict=False))
        batch = [Slice(spare, a, wanted[a:b], sample=False) for (a, b), spare in used.items()]
        for (start, _), spare in used.items():
            self.cells.copy(0, spare, 0, start)
        for sweep in range(n_sweeps):
            for number, gap in enumerate(gaps if sweep else ()):
                for before in gaps[:number]:
                    if sweep > 1:
                        self.cells.drop(used[gap], *before)
                    self.cells.copy(used[before], used[gap], *before)
            for gap, spare in used.items() if sweep else ():
                self.cells.drop(spare, *gap)
            for some in batches(batch, lambda one: len(one.tokens), self.decoder.n_batch):
                self.run_batch(some)
        for gap, spare in used.items():
            self.cells.copy(spare, 0, *gap)
            self.cells.drop(spare)

    def open_batch(self) -> OpenBatch:
        """See kv.BatchingContext. Raises ValueError where each sequence does not have a second id."""
        spare = self._spares[0]
        if len(self._spares) <= self.n_seq:
            raise ValueError(f"{self.n_seq} sequences, {len(self._spares)} ids beside them")
        self._check_open()
        writer = KVWriter(self.cells, self.like, self.rope_table, spare)
        return self._opened_batch(KVStock(self.cells, writer, spare, spare + 1))

    def export(self, first: int, end: int) -> State:
        """See kv.KVContext."""
        with self.taken():
            n_held = len(self._scheduler.held)
            if not 0 <= first < end <= n_held:
                raise ValueError(f"positions [{first}, {end}) of the {n_held} that the cache holds")
            spare = self._spares[0]
            self.cells.copy(0, spare, first, end)
            try:
                return State(self.cells.export(spare))
            finally:
                self.cells.drop(spare)


def _route_of(policy: PrefillPolicy, route: Route | None) -> Route | None:
    """What says which earlier runs are put back. Raises ValueError where the policy needs it in vain."""
    if policy.recalled_tokens and route is None:
        raise ValueError("nothing says which earlier runs are put back")
    return route if policy.recalled_tokens else None


def _attended(left: Sequence[KVPart], plan: Plan, first: int) -> list[KVPart]:
    """What of the KV before token `first` the plan begins with: the sinks, and the tokens next to it."""
    n_left = sum(part.n_tokens for part in left)
    sinks = rows_of(left, 0, plan.n_sinks if plan.left_from >= plan.n_sinks else 0)
    return [*sinks, *rows_of(left, n_left - (first - plan.left_from))]


def _gaps(parts: Sequence[KVPart], n_tokens: int) -> list[tuple[int, int]]:
    """The ranges of [0, n_tokens) that no part covers. Raises ValueError for parts that overlap or stand
    outside, or take rows that their source does not have.
    """
    gaps, at = [], 0
    for part in sorted((part for part in parts if part.n_tokens), key=lambda part: part.position):
        end = part.position + part.n_tokens
        if part.position < at or end > n_tokens:
            raise ValueError(f"a part at [{part.position}, {end}), others up to {at}, {n_tokens} tokens")
        if part.first < 0 or part.first + part.n_tokens > part.source.n_tokens:
            raise ValueError(f"rows [{part.first}, {part.first + part.n_tokens}) of {part.source.n_tokens}")
        if part.position > at:
            gaps.append((at, part.position))
        at = end
    if at < n_tokens:
        gaps.append((at, n_tokens))
    return gaps
