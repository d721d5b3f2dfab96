"""Blocks as the model itself ranks them: the `landmarks` of `--kv rank`.

The question's own queries against the stored keys of the model's retrieval heads, less what a question about
nothing finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from localctx.engine.query_capture import QueryModel
from localctx.errors import ModelError
from localctx.index.landmarks import HeadSet, LandmarkStream, best_of_blocks
from localctx.selection.landmarks import NEUTRAL_QUESTIONS, landmark_scores, shared_lead
from localctx.session.cache import Cache
from localctx.session.frame import frame_of
from localctx.session.prefill import identity_of
from localctx.session.prompts import question_task
from localctx.session.token_stream import TokenStream
from localctx.store import KVStore, StoreUnusable
from localctx.values import Scores

__all__ = ["HEADS_FACT", "landmarks_of", "retrieval_heads"]

HEADS_FACT = "retrieval_heads"
"""The name of the fact in the store's table of models: {"heads": [[layer, query head], ...], ...}."""
QUERIES_KIND = "queries"


def retrieval_heads(cache: Cache) -> HeadSet | str:
    """The model's heads as the store knows them, else as they came with the model; or why there are none.

    A look that found none, or none that the model has, leaves those that came with it.
    """
    model = cache.model
    if not isinstance(model, QueryModel):
        return f"{model.info.name} does not show its queries"
    fact = cache.kept.facts(model.info.fingerprint).get(HEADS_FACT)
    known = fact.get("heads") if isinstance(fact, dict) else None
    found = HeadSet.of(known, model.queries.heads) if isinstance(known, list) else None
    found = found or HeadSet.of(model.queries.known_heads, model.queries.heads)
    if found is None:
        return f"no retrieval heads of {model.info.name} are known (localctx verify looks for them)"
    layers = cache.run.settings.cache.attn_layers
    if layers is None:
        return found
    return found.within(layers) or f"no retrieval head of {model.info.name} stands in its attn_layers"


def landmarks_of(cache: Cache, streams: Sequence[TokenStream], question: str) -> Scores | str:
    """The model's scores of all blocks; or why there are none, in words. `streams`: each document's, as it
    is stored.
    """
    heads, store = retrieval_heads(cache), cache.kept.store
    if isinstance(heads, str):
        return heads
    if store is None:
        return "there is no store"
    try:
        if any(len(store.lookup(stream.ids, cache.codec)) < len(set(stream.ids)) for stream in streams):
            return "not all of the text is indexed"
        return _scored(cache, store, streams, heads, question) or "stored KV cannot be read"
    except (StoreUnusable, ModelError) as error:
        return error.message


def _scored(
    cache: Cache, store: KVStore, streams: Sequence[TokenStream], heads: HeadSet, question: str
) -> Scores | None:
    """The blocks' scores; None when KV turns out to be damaged."""
    asked = _queries(cache, store, heads, question, is_kept=False)
    neutral = [_queries(cache, store, heads, text, is_kept=True) for text in NEUTRAL_QUESTIONS]
    lead = shared_lead([tokens for tokens, _ in (asked, *neutral)])
    parts = [rows[lead:] for _, rows in (asked, *neutral)]
    queries, edges = np.concatenate(parts), np.cumsum([len(part) for part in parts])[:-1]
    found = []
    for reading, stream in zip(cache.run.readings, streams, strict=True):
        sizes = (end - first for first, end in stream.spans)
        runs = LandmarkStream(
            tuple(zip(stream.ids, sizes, strict=True)), cache.codec, identity_of(cache, reading, stream).key
        )
        starts = np.array([*reading.first_tokens, reading.n_tokens], np.int64)
        best = best_of_blocks(store, runs, heads, queries, starts)
        if best is None:
            return None
        found.append(best)
    by_question = np.split(np.concatenate(found, axis=2), edges)
    return landmark_scores(by_question[0], by_question[1:])


def _queries(
    cache: Cache, store: KVStore, heads: HeadSet, question: str, *, is_kept: bool
) -> tuple[Sequence[int], NDArray[np.float32]]:
    """The tokens behind the prefix when `question` is asked, and their queries [n_tokens, n_heads,
    head_dim].
    """
    frame, model = frame_of(cache.model, question_task(question)), cache.model
    if frame is None or not isinstance(model, QueryModel):
        raise ValueError("the cache was opened without a frame")
    tokens = [*frame.prefix, *frame.suffix]
    key = blake2b(repr((cache.space, tokens, heads.heads)).encode(), digest_size=16).hexdigest()
    if is_kept and (known := _kept_queries(store, key, len(frame.suffix), len(heads.heads))) is not None:
        return frame.suffix, known
    rows = model.queries.capture(tokens, heads.heads)[len(frame.prefix) :]
    cache.run.n_evaluated += len(tokens)
    if is_kept and not store.is_read_only:
        store.put_artifacts(QUERIES_KIND, {key: rows.astype(np.float32).tobytes()})
    return frame.suffix, rows


def _kept_queries(store: KVStore, key: str, n_tokens: int, n_heads: int) -> NDArray[np.float32] | None:
    """Queries that were captured before; None where they are not."""
    with store.reading_artifacts(QUERIES_KIND, [key]) as found:
        data = bytes(found.get(key, b""))
    if not data or len(data) % (4 * n_tokens * n_heads):
        return None
    return np.frombuffer(data, np.float32).reshape(n_tokens, n_heads, -1)
