"""Token streams → their KV at hand: whole, appended to, or only the spans that a question needs.

Decoding, encoding and writing overlap (encoding.py). What is complete is committed on the way: stopped work
goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from localctx.kv import KVContext, KVPart
from localctx.session.cache import CHUNK_TOKENS, PREFIX_CODEC, Cache
from localctx.session.encoding import Encoder, Encoding
from localctx.session.events import Listener, Progress
from localctx.session.kept import Keep
from localctx.session.reading import Reading
from localctx.session.token_stream import TokenStream
from localctx.store import DocumentIdentity

__all__ = ["Done", "ensure_prefix", "identity_of", "missing_spans", "prefill_rest", "prefill_spans"]

REPORT_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Done:
    """What a prefill did. n_evaluated counts the prefix and left context that had to be evaluated too."""

    n_evaluated: int
    seconds: float
    is_complete: bool = True


def identity_of(cache: Cache, reading: Reading, stream: TokenStream) -> DocumentIdentity:
    """The document as the store knows it."""
    document = reading.document
    return DocumentIdentity(
        space=stream.space,
        policy=stream.policy,
        text_hash=document.content_hash,
        n_tokens=stream.n_tokens,
        name=document.source,
        n_bytes=document.text.n_bytes,
        model=cache.model.info.name,
    )


def ensure_prefix(cache: Cache, context: KVContext) -> int:
    """Have the prefix's KV at hand; returns the number of tokens evaluated. Always exact, in f16."""
    stream = cache.prefix_stream()
    if not stream.n_tokens or cache.kept.load_prefix(stream):
        return 0
    data: dict[int, bytes] = {}
    with Encoder(stream, Encoding(PREFIX_CODEC), data.__setitem__) as encoder:
        n_evaluated = context.stream((), stream.tokens, stream.policy, encoder.on_chunk)
    if len(data) == stream.n_runs:
        cache.kept.keep_prefix(stream, [data[number] for number in range(stream.n_runs)])
    return n_evaluated


def prefill_rest(
    cache: Cache,
    context: KVContext,
    reading: Reading,
    stream: TokenStream,
    encoding: Encoding,
    codec: str | None = None,
) -> Done:
    """Prefill what follows the runs that are at hand, in `codec` or in any, from the start on."""
    if cache.kept.n_leading(stream.ids, codec) == stream.n_runs:
        return Done(0, 0.0)
    identity = identity_of(cache, reading, stream)
    with cache.kept.keeping(identity, stream, on_wait=lambda: _tell_wait(cache, reading)) as keep:
        n_leading = cache.kept.n_leading(stream.ids, codec)  # another process may have gone on meanwhile
        if n_leading == stream.n_runs:
            return Done(0, 0.0)
        first = _start_of(stream, n_leading)
        left = _left_parts(cache, stream, first)
        return _stream(cache, context, stream, encoding, keep, (first, stream.n_tokens), left)


def _start_of(stream: TokenStream, n_leading: int) -> int:
    """Where a prefill may begin when n_leading runs are at hand: an independent unit is evaluated whole."""
    first = stream.spans[n_leading][0]
    return max((unit for unit in stream.units if unit <= first), default=first)


def _tell_wait(cache: Cache, reading: Reading) -> None:
    cache.run.note(f"{reading.document.source}: waited for another process that prefilled it")


def missing_spans(cache: Cache, stream: TokenStream, wanted: Iterable[int]) -> list[tuple[int, int]]:
    """Tokens [first, end) that must be prefilled so that the runs with the `wanted` numbers are at hand.

    One span a cell of the lazy grid: from the cell's first missing run to the last one wanted in it.
    """
    by_cell: dict[int, list[int]] = {}
    for number in wanted:
        by_cell.setdefault(stream.spans[number][0] // stream.policy.window, []).append(number)
    spans: list[tuple[int, int]] = []
    for cell, numbers in sorted(by_cell.items()):
        cell_runs = stream.runs_of(cell * stream.policy.window, stream.spans[max(numbers)][1])
        n_leading = cache.kept.n_leading([stream.ids[number] for number in cell_runs], cache.codec)
        if n_leading < len(cell_runs):
            spans.append((stream.spans[cell_runs[n_leading]][0], stream.spans[cell_runs[-1]][1]))
    return spans


def prefill_spans(
    cache: Cache,
    context: KVContext,
    reading: Reading,
    stream: TokenStream,
    spans: Sequence[tuple[int, int]],
    encoding: Encoding,
) -> Done:
    """Prefill spans of a lazy stream, each with the left context that its policy gives it."""
    n_evaluated, seconds, is_complete = 0, 0.0, True
    with cache.kept.keeping(identity_of(cache, reading, stream), stream) as keep:
        for first, end in spans:
            cell = first // stream.policy.window * stream.policy.window
            left = list(_parts(cache, stream, cell, first)) if cell > stream.policy.window else []
            done = _stream(cache, context, stream, encoding, keep, (first, end), left)
            n_evaluated, seconds = n_evaluated + done.n_evaluated, seconds + done.seconds
            is_complete = is_complete and done.is_complete
    return Done(n_evaluated, seconds, is_complete)


def _stream(
    cache: Cache,
    context: KVContext,
    stream: TokenStream,
    encoding: Encoding,
    keep: Keep,
    span: tuple[int, int],
    left: Sequence[KVPart],
) -> Done:
    """One call of the engine, encoded and kept beside it."""
    first, end = span
    tokens = stream.tokens if end == stream.n_tokens else stream.tokens[:end]
    n_kept = 0

    def counted(number: int, data: bytes) -> None:
        nonlocal n_kept
        keep(number, data)
        n_kept += 1

    started = time.perf_counter()
    with _pausing_on_error(context), Encoder(stream, encoding, counted) as encoder:
        n_evaluated = context.stream(
            cache.prefix,
            tokens,
            stream.policy,
            encoder.on_chunk,
            first=first,
            left=left,
            units=stream.units,
            on_progress=_meter(cache.run.listen, end - first),
        )
    seconds = time.perf_counter() - started
    cache.note_rate(n_evaluated, seconds, "stream")
    return Done(n_evaluated, seconds, n_kept == len(stream.runs_of(first, end)))


@contextmanager
def _pausing_on_error(context: KVContext) -> Iterator[None]:
    """A failure on this side leaves no computation running."""
    try:
        yield
    except BaseException:
        context.cancel()
        raise


def _meter(listen: Listener, total: int) -> Callable[[int, int], None]:
    """Tells how far the prefill is, and how fast."""
    started, told = time.perf_counter(), 0.0

    def tell(done: int, _: int) -> None:
        nonlocal told
        now = time.perf_counter()
        if now - told >= REPORT_SECONDS or done >= total:
            told = now
            listen(Progress("prefill", done, total, "tokens", done / max(now - started, 1e-9)))

    return tell


def _left_parts(cache: Cache, stream: TokenStream, first: int) -> list[KVPart]:
    """The KV before token `first` that the policy attends to, from what is kept."""
    policy = stream.policy
    if policy.kind == "independent":
        return []
    start = 0 if policy.kind == "exact" else max(0, first - policy.window - CHUNK_TOKENS)
    return list(_parts(cache, stream, start, first))


def _parts(cache: Cache, stream: TokenStream, start: int, end: int) -> Iterator[KVPart]:
    """Whole runs of [start, end)."""
    numbers = stream.runs_of(start, end)
    cache.kept.load([stream.ids[number] for number in numbers])
    for number in numbers:
        run = cache.kept.run(stream.ids[number])
        if run is None:
            raise LookupError(f"run {number} is not at hand")
        yield KVPart(run, 0, run.n_tokens, 0)
