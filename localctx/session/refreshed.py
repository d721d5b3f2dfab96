"""KV that a question evaluated in place, kept for the next one with the same: header lines, refreshed spans.

A span is known by all that it was computed from, down to the encoding of the runs restored before it
(store.TokenChain). So its positions are known too, and it is kept as it stood, in f16: what is put back is
what was taken out, bit by bit. Cells may lie in another order then, which an answer sees as rounding.
Knows no text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

from localctx._native import Rope, State, compose
from localctx.assemble import Layout, Stretch
from localctx.kv import KVPart
from localctx.session.cache import Cache, run_at
from localctx.session.prefill import identity_of
from localctx.session.token_stream import TokenStream
from localctx.store import KVStore, StoreUnusable, TokenChain

__all__ = ["KIND", "Holding", "Refreshed"]

KIND = "refreshed-1"
"""Raise the number when what is kept under it means something else: ids do not know the form of the bytes."""
MOST_FILES = 64
"""Questions whose spans are kept, one file each; the oldest go first."""
SHARE_OF_STORE = 1 / 16
"""Of the store's limit, that all of them may take."""
KEEPING_BYTES_PER_S = 256 << 20
"""What writing spans and reading them again comes to. Measured: 82 MiB take 0.3 s of processor time to take
out, check and write alone, so that a GPU which evaluates them in less keeps none.
"""
MOST_BYTES = 256 << 20
"""Of one file: of a larger selection the beginning is kept, and what follows with the next question."""


@dataclass(frozen=True, slots=True)
class _Span:
    """Tokens evaluated at positions [first, end)."""

    first: int
    end: int
    key: str

    @property
    def n_tokens(self) -> int:
        return self.end - self.first


class Holding(Protocol):
    """What holds a prompt's KV: a context, or one sequence of a batch."""

    @property
    def rope_table(self) -> Rope:
        """The rotation of its keys."""

    def export(self, first: int, end: int) -> State:
        """The KV at positions [first, end)."""


@dataclass(slots=True)
class Refreshed:
    """The evaluated spans of one question: restore() those that are kept, then keep() the others.

    streams[d]: document d's streams that its restored tokens come from, the preferred one first. What has
    seen two documents would outlive the removal of one of them, so it is not kept.
    """

    cache: Cache
    streams: Sequence[Sequence[TokenStream]]
    _absent: list[_Span] = field(default_factory=list)
    _document: int = 0

    def restore(self, layout: Layout, n_sweeps: int = 0) -> list[KVPart]:
        """The parts of what the layout wants evaluated that is at hand; damage is told, and is not.

        n_sweeps: how often what is not at hand is evaluated at once; if any, all is or nothing.
        """
        self._absent, store = [], self.cache.kept.store
        if store is None or not layout.ends:
            return []
        self._document = layout.ends[0][0]
        spans = list(self._spans(layout, n_sweeps))
        states: dict[str, State] = {}
        try:
            with store.reading_artifacts(KIND, [span.key for span in spans]) as found:
                for span in spans:
                    if (state := _state_of(found.get(span.key), span)) is not None:
                        states[span.key] = state
        except StoreUnusable as error:
            self.cache.run.note(f"{error.message}; what was evaluated earlier is evaluated again")
        self._absent = [span for span in spans if span.key not in states]
        n_spans = sum(span.n_tokens for span in spans)
        if n_sweeps and (self._absent or n_spans < layout.n_evaluated):
            self._absent = spans
        there = [span for span in spans if span not in self._absent]
        return [KVPart(states[span.key], 0, span.n_tokens, span.first) for span in there]

    def keep(self, context: Holding) -> None:
        """Keep what restore() lacked, from where the layout was put.

        Everything goes into one file, beside the document. Nothing is kept where the store cannot be written
        or has no room without removing documents, nor where evaluating it again is quicker than keeping it.
        """
        kept = self.cache.kept
        if not self._absent or not kept.can_write or kept.store is None or not self._pays:
            return
        try:
            self._write(kept.store, context)
        except StoreUnusable as error:
            self.cache.run.note(f"{error.message}; what was evaluated for this question is not kept")

    @property
    def _pays(self) -> bool:
        """Whether tokens take longer to evaluate than their KV to write and read: a fast GPU's do not."""
        model, rate = self.cache.model, self.cache.known_rate()
        if not model.is_offloaded or rate is None:
            return True
        return rate * model.info.kv_bytes_per_token < KEEPING_BYTES_PER_S

    def _write(self, store: KVStore, context: Holding) -> None:
        owner, most_bytes = self._owner(store), round(store.limit_bytes * SHARE_OF_STORE)
        spans = self._first_absent(min(MOST_BYTES, most_bytes))
        n_bytes = sum(map(self._size, spans))
        if owner is None or not spans:
            return
        store.trim_artifacts(KIND, most_bytes - n_bytes, MOST_FILES - 1)
        if store.size_bytes + n_bytes <= store.limit_bytes:
            store.put_artifacts(KIND, {span.key: _bytes_of(context, span) for span in spans}, owner)

    def _first_absent(self, most_bytes: int) -> list[_Span]:
        """What restore() lacked, from the beginning, as much as that many bytes hold."""
        sizes = accumulate(map(self._size, self._absent))
        return [span for span, n_bytes in zip(self._absent, sizes, strict=True) if n_bytes <= most_bytes]

    def _size(self, span: _Span) -> int:
        return span.n_tokens * self.cache.model.info.kv_bytes_per_token

    def _owner(self, store: KVStore) -> str | None:
        """The key of the document that the spans go with, as far as it is in the store."""
        reading = self.cache.run.readings[self._document]
        keys = (identity_of(self.cache, reading, stream).key for stream in self.streams[self._document])
        return next((key for key in keys if store.has_document(key)), None)

    def _spans(self, layout: Layout, n_sweeps: int) -> Iterator[_Span]:
        """The evaluated spans behind the prefix, cut where pieces end, up to the second document."""
        chain = TokenChain(self.cache.space, n_sweeps)
        at = len(self.cache.prefix)
        limit = _end_of_first(layout)
        edges = [end for _, end in layout.ends]
        stretches = [stretch for stretch in layout.restored if stretch.position >= at]
        for stretch in [*stretches, Stretch(None, 0, 0, len(layout.tokens))]:
            for end in sorted({stretch.position, *(e for e in edges if at < e < stretch.position)}):
                if end > at:
                    chain.add_evaluated(layout.tokens[at:end])
                    if end > limit:
                        return
                    yield _Span(at, end, chain.span_id(end - at).hex())
                    at = end
            if stretch.document is not None:
                self._add_restored(chain, layout, stretch, stretch.document)
                at += stretch.n_tokens

    def _add_restored(self, chain: TokenChain, layout: Layout, stretch: Stretch, document: int) -> None:
        """The stretch as the rows of the runs it is restored from, with all that tells encodings apart."""
        at, end = stretch.first, stretch.first + stretch.n_tokens
        while at < end:
            run_id, run, row = run_at(self.cache, self.streams[document], at)
            n_tokens = min(end - at, run.n_tokens - row)
            position = stretch.position + at - stretch.first
            source = run_id.hex().encode() + b" " + self.cache.kept.encoding_of(run_id)
            chain.add_restored(layout.tokens[position : position + n_tokens], source, row)
            at += n_tokens


def _end_of_first(layout: Layout) -> int:
    """Where the last piece ends that has seen the first document only."""
    (first, end), *others = layout.ends
    for document, next_end in others:
        if document != first:
            break
        end = next_end
    return end


def _bytes_of(context: Holding, span: _Span) -> bytes:
    """The span's KV as it stands, rows by position."""
    state = context.export(span.first, span.end)
    rows = [(state, 0, state.n_tokens)]
    return compose(state, rows, state.positions, context.rope_table).tobytes()


def _state_of(data: memoryview | None, span: _Span) -> State | None:
    """What was kept, when it is KV of these positions in a form that this version reads."""
    if data is None:
        return None
    try:
        state = State(data)
    except ValueError:  # of another llama.cpp
        return None
    is_span = state.sections == ("attention",) and state.n_tokens == span.n_tokens
    return state if is_span and state.positions[0] == span.first else None
