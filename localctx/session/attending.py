"""The strategy `exact` with kept KV: the whole document, so that a second question evaluates only itself.

A document's keys go back to the positions they had: nothing of the answer depends on how they are moved.
"""

from __future__ import annotations

from localctx.assemble import Layout, StoredTokens
from localctx.kv import KVContext
from localctx.session.cache import EXACT, Cache, run_finder
from localctx.session.placing import Placed, fitted
from localctx.session.prefill import prefill_rest
from localctx.session.token_stream import TokenStream

__all__ = ["exact_stream", "restored_whole"]


def exact_stream(cache: Cache, ordinal: int = 0) -> TokenStream:
    """A document's tokens, under a policy by which each of them attends to all before it.

    Where the window is no smaller than the document, its policy is exact already, and its runs are shared.
    """
    reading = cache.run.readings[ordinal]
    policy = cache.policy
    is_exact = policy.kind == "window" and reading.n_tokens <= policy.window
    return cache.stream_of(reading, policy if is_exact else EXACT)


def restored_whole(cache: Cache) -> Placed:
    """How the one document is put in; what of it is not kept yet is prefilled then, and kept."""
    run, reading, stream = cache.run, cache.run.readings[0], exact_stream(cache)
    codec = cache.exact_codec(reading.n_tokens)

    def arrange(context: KVContext) -> Layout:
        done = prefill_rest(cache, context, reading, stream, cache.encoding(codec), codec)
        run.n_evaluated += done.n_evaluated
        run.timings.prefill_ms += done.seconds * 1000
        there = cache.kept.load(stream.ids, codec)
        absent = tuple(
            span for span, run_id in zip(stream.spans, stream.ids, strict=True) if run_id not in there
        )
        return fitted(cache, context, [StoredTokens(0, 0, tuple(stream.tokens), absent)])

    n_tokens = len(cache.prefix) + stream.n_tokens
    return Placed((), n_tokens, (stream.n_tokens,), arrange, run_finder(cache, [[stream]]))
