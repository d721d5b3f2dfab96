"""What documents, store and settings say of a run before it begins: tokens, what is stored, how it would be
prefilled. Loads the tokenizer and no weights.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from localctx.document import Document
from localctx.errors import UsageError
from localctx.session.announce import stored_bytes
from localctx.session.attending import exact_stream
from localctx.session.cache import CHUNK_TOKENS, Cache, opened_cache
from localctx.session.events import Listener
from localctx.session.opening import read_all
from localctx.session.prompts import document_messages, question_task
from localctx.session.reading import Reading
from localctx.session.run import Run
from localctx.session.streaming import stream_reason
from localctx.settings import Settings
from localctx.values import Model

__all__ = ["QUESTION_TOKENS", "Stored", "make_run", "n_around", "stored_of"]

QUESTION_TOKENS = 24
"""Allowed for a question that is not known yet."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What the store has and would take. refusal: why it cannot serve the model, else empty ·
    reason: why `auto` may answer from it · obstacle: why not, in words; empty: nothing is stored yet ·
    n_stored, n_exact: tokens at hand as `stream` and as `exact` want them · window, held: tokens attended to
    by a prefill, with the chunk's own · n_ctx: its context · limit_bytes: what the store may take, None
    without one.
    """

    refusal: str
    reason: str | None = None
    obstacle: str = ""
    n_stored: int = 0
    n_exact: int = 0
    window: int = 0
    held: int = 0
    n_ctx: int = 0
    codec: str = "int4"
    bytes_per_token: float = 0.0
    exact_bytes_per_token: float = 0.0
    limit_bytes: int | None = None


def make_run(
    documents: Sequence[Document], model: Model, settings: Settings, listen: Listener, limit: int
) -> Run:
    """A run whose documents are read, with the limit of the machine that is planned for."""
    cache = settings.cache
    readings = [
        Reading(document, ordinal, cache.block, cache.blocks) for ordinal, document in enumerate(documents)
    ]
    warnings = [*model.info.notices, *(text for one in documents for text in one.warnings)]
    run = Run(readings, model, settings, listen, limit, time.perf_counter(), warnings=warnings)
    read_all(run)
    return run


def n_around(run: Run) -> int:
    """Tokens of prefix, task and a question."""
    prompt = run.model.prompt(document_messages((), question_task("")))
    return len(prompt.tokens) + QUESTION_TOKENS


def stored_of(run: Run, *, fits: bool) -> Stored:
    """What the store has of the documents. Raises NotComposable where it was asked for and cannot serve."""
    with opened_cache(run, question_task("")) as cache:
        events = stream_reason(run, cache, fits=fits)
        said: list[str] = []
        try:
            while True:
                said.append(getattr(next(events), "text", ""))
        except StopIteration as done:
            reason: str | None = done.value
        if isinstance(cache, str):
            return Stored(refusal=cache, obstacle=cache)
        return _stored(cache, reason, "; ".join(filter(None, said)))


def _stored(cache: Cache, reason: str | None, said: str) -> Stored:
    run = cache.run
    streams = [cache.whole_stream(reading) for reading in run.readings]
    n_stored = 0
    for stream in streams:
        there = cache.kept.has(stream.ids, cache.codec)
        n_stored += stream.n_tokens_of([n for n, run_id in enumerate(stream.ids) if run_id in there])
    n_exact = 0
    if len(run.readings) == 1:
        exact, codec = exact_stream(cache), cache.exact_codec(run.n_tokens)
        n_exact = exact.n_tokens_of(range(cache.kept.n_leading(exact.ids, codec)))
    policy, obstacle, n_ctx = streams[0].policy, said, 0
    held = {"exact": run.n_tokens, "independent": 0}.get(policy.kind, policy.window + policy.sinks)
    try:
        n_ctx = max(cache.prefill_n_ctx(one.policy, one.n_tokens) for one in streams)
    except UsageError as error:
        obstacle = error.message
    codec, store = cache.encoding().codec, cache.kept.store
    return Stored(
        refusal="",
        reason=reason,
        obstacle=obstacle,
        n_stored=n_stored,
        n_exact=n_exact,
        window=policy.window,
        held=min(run.n_tokens, held + CHUNK_TOKENS // 4),
        n_ctx=n_ctx,
        codec=codec,
        bytes_per_token=stored_bytes(cache, 1000, codec) / 1000,
        exact_bytes_per_token=stored_bytes(cache, 1000, cache.exact_codec(run.n_tokens)) / 1000,
        limit_bytes=None if store is None else store.limit_bytes,
    )
