"""Token streams → their KV at hand: whole, appended to, or only the spans that a question needs.

Decoding, encoding and writing overlap (encoding.py). What is complete is committed on the way: stopped work
goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from localctx.document import Document
from localctx.document.cache import full_name
from localctx.kv import RECALL_CHUNK_TOKENS, KVChunk, KVContext, KVPart, KVSpace, PrefillPolicy
from localctx.session.cache import CHUNK_TOKENS, PREFIX_CODEC, Cache
from localctx.session.encoding import Encoder, Encoding
from localctx.session.events import Listener, Progress
from localctx.session.kept import Keep
from localctx.session.lazy_spans import Span
from localctx.session.reading import Reading
from localctx.session.recalling import Recalling
from localctx.session.token_stream import TokenStream
from localctx.store import DocumentIdentity, joined

__all__ = ["Done", "ensure_prefix", "identity_of", "prefill_rest", "prefill_spans"]

REPORT_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Done:
    """What a prefill did. n_evaluated counts the prefix and left context that had to be evaluated too;
    is_complete: it was not cancelled.
    """

    n_evaluated: int
    is_complete: bool = True


def identity_of(cache: Cache, reading: Reading, stream: TokenStream) -> DocumentIdentity:
    """The document as the store knows it, with the stream's KV."""
    name = cache.model.info.name
    return document_identity(reading.document, name, stream.space, stream.policy, stream.n_tokens)


def document_identity(
    document: Document, model: str, space: KVSpace, policy: PrefillPolicy, n_tokens: int
) -> DocumentIdentity:
    """The document as the store knows it; `model`: its name."""
    return DocumentIdentity(
        space=space,
        policy=policy,
        text_hash=document.content_hash,
        n_tokens=n_tokens,
        name=document.source,
        n_bytes=document.text.n_bytes,
        model=model,
        path=full_name(document.path or document.source),
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
    readings: Sequence[Reading],
    stream: TokenStream,
    encoding: Encoding,
    codec: str | None = None,
) -> Done:
    """Prefill what follows the runs that are at hand, in `codec` or in any, from the start on.

    `readings`: the documents that the stream is made of.
    """
    if cache.kept.n_leading(stream.ids, codec) == stream.n_runs:
        return Done(0)
    identity = joined([identity_of(cache, reading, stream) for reading in readings], stream.n_tokens)
    with cache.kept.keeping(identity, stream, on_wait=lambda: _tell_wait(cache, identity)) as keep:
        n_leading = cache.kept.n_leading(stream.ids, codec)  # another process may have gone on meanwhile
        if n_leading == stream.n_runs:
            return Done(0)
        first, left = _with_left(stream, _start_of(stream, n_leading), partial(_left_parts, cache, stream))
        return _stream(cache, context, stream, encoding, keep, (first, stream.n_tokens), left)


def _with_left(
    stream: TokenStream, first: int, left_of: Callable[[int], list[KVPart]]
) -> tuple[int, list[KVPart]]:
    """Where a prefill begins, and the stored KV left of it; earlier where some of that is damaged."""
    while True:
        try:
            return first, left_of(first)
        except _Absent as absent:
            first = _start_of(stream, absent.number)


def _start_of(stream: TokenStream, n_leading: int) -> int:
    """Where a prefill may begin when n_leading runs are at hand: an independent unit is evaluated whole, and
    so is a chunk for which earlier runs are put back.
    """
    first = stream.spans[n_leading][0]
    if stream.policy.recalled_tokens:
        return first // RECALL_CHUNK_TOKENS * RECALL_CHUNK_TOKENS
    return max((unit for unit in stream.units if unit <= first), default=first)


def _tell_wait(cache: Cache, identity: DocumentIdentity) -> None:
    cache.run.note(f"{identity.name}: waited for another process that prefilled it")


def prefill_spans(
    cache: Cache,
    context: KVContext,
    reading: Reading,
    stream: TokenStream,
    spans: Sequence[Span],
    encoding: Encoding,
) -> Done:
    """Prefill spans of a lazy stream, each with the left context that its policy gives it, up to one that is
    cancelled.
    """
    n_evaluated = 0
    with cache.kept.keeping(identity_of(cache, reading, stream), stream) as keep:
        for first, end in spans:
            start, left = _with_left(stream, first, partial(_lazy_left_parts, cache, stream))
            done = _stream(cache, context, stream, encoding, keep, (start, end), left)
            n_evaluated += done.n_evaluated
            if not done.is_complete:
                return Done(n_evaluated, is_complete=False)
    return Done(n_evaluated)


def _stream(
    cache: Cache,
    context: KVContext,
    stream: TokenStream,
    encoding: Encoding,
    keep: Keep,
    span: Span,
    left: Sequence[KVPart],
) -> Done:
    """One call of the engine, encoded and kept beside it."""
    first, end = span
    shift = _shift(stream, first)
    tokens = stream.tokens if end - shift == stream.n_tokens else stream.tokens[shift:end]
    n_kept = 0

    def counted(number: int, data: bytes) -> None:
        nonlocal n_kept
        keep(number, data)
        n_kept += 1

    recalling = Recalling(cache.kept, stream, first) if stream.policy.recalled_tokens else None
    kept_on = counted if recalling is None else recalling.noting(counted)
    started = time.perf_counter()
    with _pausing_on_error(context), Encoder(stream, encoding, kept_on) as encoder:
        n_evaluated = context.stream(
            cache.prefix,
            tokens,
            stream.policy,
            lambda chunk: encoder.on_chunk(_shifted(chunk, shift)),
            first=first - shift,
            left=left,
            units=stream.units,
            route=None if recalling is None else partial(recalling.parts, encoder),
            on_progress=_meter(cache.run.listen, end - first),
        )
    cache.note_rate(n_evaluated, time.perf_counter() - started, "stream")
    return Done(n_evaluated, n_kept == len(stream.runs_of(first, end)))


def _shift(stream: TokenStream, first: int) -> int:
    """Tokens before a lazy grid that begins later: to the engine the text begins there."""
    return stream.offset if first >= stream.offset + stream.policy.window else 0


def _shifted(chunk: KVChunk, shift: int) -> KVChunk:
    """The chunk under its tokens' numbers in the whole stream."""
    return replace(chunk, first=chunk.first + shift) if shift else chunk


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
    """The KV before token `first` that the policy attends to, from what is kept: sinks, then local tokens."""
    policy = stream.policy
    if policy.kind == "independent":
        return []
    start = first - policy.window - CHUNK_TOKENS
    if policy.kind == "exact" or start <= policy.sinks:
        return list(_parts(cache, stream, 0, first))
    return [*_parts(cache, stream, 0, policy.sinks), *_parts(cache, stream, start, first)]


def _lazy_left_parts(cache: Cache, stream: TokenStream, first: int) -> list[KVPart]:
    """The KV of the span's own cell before token `first`; none where the engine evaluates all of it anew."""
    cell = stream.cell_of(first)
    if cell - _shift(stream, first) <= stream.policy.window:
        return []
    return list(_parts(cache, stream, cell, first))


class _Absent(Exception):
    """A run that should have been at hand is not: what is stored was damaged or removed meanwhile."""

    def __init__(self, number: int) -> None:
        super().__init__(f"run {number} is not at hand")
        self.number = number


def _parts(cache: Cache, stream: TokenStream, start: int, end: int) -> Iterator[KVPart]:
    """Whole runs of [start, end). Raises _Absent."""
    numbers = stream.runs_of(start, end)
    cache.kept.load([stream.ids[number] for number in numbers])
    for number in numbers:
        run = cache.kept.run(stream.ids[number])
        if run is None:
            raise _Absent(number)
        yield KVPart(run, 0, run.n_tokens, 0)
