"""A document's section summaries: from the store, beside its prefill, or from its stored KV, in this order.

Beside the prefill each section is read where it streams through (kv_taps.py); from stored KV several are put
back side by side, and only the task behind each is evaluated. A small model words none: its sections are
shorter and told in their key sentences (key_points.py).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from localctx.errors import OutOfMemory
from localctx.kv import KVContext, PrefillPolicy
from localctx.kv_taps import Tap, Tapped, TappingContext, Taps
from localctx.session.attending import exact_stream
from localctx.session.cache import Cache
from localctx.session.decoding import Decoded
from localctx.session.events import Event, Progress, SectionDone
from localctx.session.key_points import chosen, key_points
from localctx.session.opening import timed
from localctx.session.parts import join_pages
from localctx.session.points import Point
from localctx.session.prefill import ensure_prefix, identity_of, prefill_rest
from localctx.session.reading import Reading
from localctx.session.run import Run
from localctx.session.sections import (
    GPU_N_SIDE,
    KEY_SECTION_TOKENS,
    N_SIDE,
    SECTION_TOKENS,
    Section,
    is_small,
    keep_points,
    kept_points,
    sections_of,
)
from localctx.session.stored_sections import from_stored_kv
from localctx.session.strategy import round_n_ctx
from localctx.session.token_stream import TokenStream
from localctx.session.wording import Asked, Wording
from localctx.store.folder import StoreFolder

__all__ = ["Outline", "beside", "fill", "filled", "may_be_kept", "outlines_of", "tapped_context"]


@dataclass(slots=True)
class Outline:
    """The sections of one reading and their points; None where there is none yet. Made by of().

    is_verbatim: they are key sentences · n_side: worded side by side beside a prefill · was_cancelled: making
    them was stopped.
    """

    cache: Cache
    reading: Reading
    focus: str | None
    wording: Wording
    sections: list[Section]
    points: list[Point | None]
    is_verbatim: bool = False
    n_side: int = N_SIDE
    was_cancelled: bool = False
    _fresh: dict[int, Point] = field(default_factory=dict)

    @classmethod
    def of(cls, cache: Cache, reading: Reading, focus: str | None = None) -> Outline:
        """With the points that are kept."""
        is_verbatim = is_small(cache.model.info)
        sections = sections_of(reading, KEY_SECTION_TOKENS if is_verbatim else SECTION_TOKENS)
        points = kept_points(cache, sections, focus)
        n_side = GPU_N_SIDE if cache.model.is_offloaded else N_SIDE
        return cls(cache, reading, focus, Wording(cache.run, focus), sections, points, is_verbatim, n_side)

    @property
    def missing(self) -> list[int]:
        """Numbers of the sections without a point."""
        return [number for number, point in enumerate(self.points) if point is None]

    @property
    def n_read(self) -> int:
        """Tokens of the sections that have one."""
        pairs = zip(self.sections, self.points, strict=True)
        return sum(section.part.n_tokens for section, point in pairs if point is not None)

    def take(self, number: int, asked: Asked, done: Decoded) -> Point:
        """What came of a section; the point."""
        self.cache.run.count(done)
        point = self.wording.taken(asked, self.sections[number], done.text, done.finish_reason)
        self.put({number: point})
        return point

    def put(self, points: Mapping[int, Point]) -> None:
        """Take new points by the numbers of their sections."""
        for number, point in points.items():
            self.points[number] = point
        self._fresh |= points
        n_done = len(self.points) - len(self.missing)
        self.cache.run.listen(Progress("summarising", n_done, len(self.points), "parts"))

    def keep(self, stream: TokenStream) -> list[Event]:
        """Have what is new in the store; what is told of it."""
        fresh, self._fresh = self._fresh, {}
        identity = identity_of(self.cache, self.reading, stream)
        keep_points(self.cache, identity, fresh, self.sections, self.focus)
        points = [point for _, point in sorted(fresh.items())]
        return [SectionDone(point.title, join_pages([point.pages]), point.text) for point in points]


def outlines_of(
    cache: Cache, plans: Sequence[Sequence[Reading]]
) -> Generator[Event, None, dict[int, Outline]]:
    """The outlines of what is prefilled, by number: of documents that are kept as one there is none."""
    found = {}
    for number, readings in enumerate(plans):
        if len(readings) == 1:
            found[number] = Outline.of(cache, readings[0])
        else:
            yield cache.run.warn(
                "documents that are kept together have no section summaries: index them one by one for those"
            )
    yield from cache.run.unheard()
    return found


@contextmanager
def tapped_context(cache: Cache, n_ctx: int, outlines: Sequence[Outline]) -> Iterator[KVContext]:
    """A context for prefills of n_ctx tokens with the sections' texts beside, where memory allows it."""
    tapped = [outline for outline in outlines if outline.missing and not outline.is_verbatim]
    context: KVContext | None = None
    while context is None and tapped:
        n_cells = max(_taps(outline, []).n_cells for outline in tapped)
        with timed(cache.run.timings, "load_ms"):
            try:
                context = cache.model.open_kv_context(round_n_ctx(n_ctx + n_cells), n_longest=n_ctx)
            except OutOfMemory:
                if all(outline.n_side <= N_SIDE for outline in tapped):
                    cache.run.note("no memory for summaries beside the prefill: they are made after it")
                    break
                for outline in tapped:
                    outline.n_side = N_SIDE
    if context is None:
        with cache.context(n_ctx) as plain:
            yield plain
        return
    cache.run.warnings.extend(context.notices)
    try:
        yield context
    finally:
        context.close()


@contextmanager
def beside(outline: Outline | None, stream: TokenStream, context: KVContext, n_ctx: int) -> Iterator[None]:
    """A prefill of the reading's stream in the body makes the points that are missing, where it can.

    n_ctx: cells that the prefill alone takes.
    """
    if outline is not None and outline.is_verbatim:
        with chosen(outline, stream):
            yield
        return
    if outline is None or not outline.missing or not isinstance(context, TappingContext):
        yield
        return
    if not _can_tap(outline, stream.policy):
        yield
        return
    if stream.tokens != outline.reading.stream or context.n_ctx < n_ctx + _taps(outline, []).n_cells:
        yield
        return
    with ThreadPoolExecutor(1, thread_name_prefix="sections") as pool:
        asked = [pool.submit(outline.wording.ask, outline.sections[number]) for number in outline.missing]
        try:
            with _tapping(context, _taps(outline, asked)):
                yield
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _can_tap(outline: Outline, policy: PrefillPolicy) -> bool:
    """Whether each section is in the window as a whole when its end is reached. What is put back before a
    window needs cells side by side, which open points may not leave.
    """
    if policy.kind == "exact":
        return True
    longest = max((outline.sections[number].part.n_tokens for number in outline.missing), default=0)
    return policy.kind == "window" and longest <= policy.window and not policy.recalled_tokens


@contextmanager
def _tapping(context: KVContext, taps: Taps) -> Iterator[None]:
    if isinstance(context, TappingContext):
        with context.tapping(taps):
            yield


def _taps(outline: Outline, asked: Sequence[Future[Asked]]) -> Taps:
    """The taps of the sections without a point; `asked`: what each is asked, in order, once it is ready."""
    missing = outline.missing

    def tap(place: int, number: int) -> Tap:
        section = outline.sections[number]
        return Tap(section.first, section.end, lambda: outline.wording.behind(asked[place].result()))

    def tell(done: Tapped) -> None:
        decoded = Decoded(done.number, done.text, done.finish_reason, done.n_evaluated, done.n_generated)
        outline.take(missing[done.number], asked[done.number].result(), decoded)

    taps = [tap(place, number) for place, number in enumerate(missing)]
    return Taps(taps, tell, outline.n_side, outline.wording.n_tokens)


def may_be_kept(run: Run) -> bool:
    """Whether there is a store that summaries of sections could be in."""
    root = run.settings.store_root
    return root is not None and StoreFolder(root).catalogue.exists()


def fill(cache: Cache, outlines: Sequence[Outline]) -> Iterator[Event]:
    """Make what is missing: of what is stored from there, of all else beside its prefill, which is kept.

    What stays missing was stopped (was_cancelled), or is told.
    """
    streams = [_stored_or_whole(cache, outline.reading) for outline in outlines]

    def needed(stream: TokenStream) -> int:
        return cache.prefill_n_ctx(stream.policy, stream.n_tokens)

    pairs = list(zip(outlines, streams, strict=True))
    fresh = [
        (outline, stream)
        for outline, stream in pairs
        if outline.missing and cache.kept.n_leading(stream.ids, cache.codec) < stream.n_runs
    ]
    if fresh:
        n_ctx = max(needed(stream) for _, stream in fresh)
        with tapped_context(cache, n_ctx, [outline for outline, _ in fresh]) as context:
            cache.run.n_evaluated += ensure_prefix(cache, context)
            if not cache.has_prefix:  # it is evaluated to its end unless it is stopped
                fresh[0][0].was_cancelled = True
                return
            for outline, stream in fresh:
                yield from cache.run.unheard()
                encoding = cache.encoding(cache.codec)
                with timed(cache.run.timings, "prefill_ms"), beside(outline, stream, context, needed(stream)):
                    done = prefill_rest(cache, context, [outline.reading], stream, encoding, cache.codec)
                cache.run.n_evaluated += done.n_evaluated
                yield from outline.keep(stream)
                if not done.is_complete:
                    outline.was_cancelled = True
                    return
    yield from filled(pairs)


def _stored_or_whole(cache: Cache, reading: Reading) -> TokenStream:
    """The reading's stream that is stored whole, exact or not; else that of the policy in force."""
    exact = exact_stream(cache, reading.ordinal)
    if cache.kept.n_leading(exact.ids, cache.codec) == exact.n_runs:
        return exact
    return cache.whole_stream(reading)


def filled(pairs: Iterable[tuple[Outline, TokenStream]]) -> Iterator[Event]:
    """Make what is missing from stored KV, and keep it; nothing more after a stop."""
    for outline, stream in pairs:
        if not outline.missing:
            continue
        done: list[Event] = []
        try:
            if outline.is_verbatim:
                outline.put(key_points(outline))
            else:
                yield from from_stored_kv(outline, stream)
        finally:
            done = outline.keep(stream)
        yield from done
        if outline.was_cancelled:
            return
