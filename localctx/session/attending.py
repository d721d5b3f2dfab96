"""The strategy `exact` with kept KV: whole documents, so that a second question evaluates only itself.

A document's keys go back to the positions they had: nothing of the answer depends on how they are moved.
Several documents are one stream, names and all, each seeing those before it as it does when all of them are
evaluated: a later one that changed leaves the KV of those before it as it was.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from localctx.assemble import Layout, StoredTokens
from localctx.kv import KVContext
from localctx.session.announce import too_much_for_the_store
from localctx.session.cache import EXACT, Cache
from localctx.session.opening import timed
from localctx.session.placing import Placed, fitted
from localctx.session.prefill import prefill_rest
from localctx.session.token_stream import TokenStream
from localctx.values import Message, Prompt

__all__ = ["documents_end", "exact_stream", "joint_stream", "restored_whole"]


def exact_stream(cache: Cache, ordinal: int = 0) -> TokenStream:
    """A document's tokens, under a policy by which each of them attends to all before it.

    Where the window is no smaller than the document, its policy is exact already, and its runs are shared.
    """
    reading = cache.run.readings[ordinal]
    policy = cache.policy
    is_exact = policy.kind == "window" and reading.n_tokens <= policy.window
    return cache.stream_of(reading, policy if is_exact else EXACT)


def joint_stream(cache: Cache, prompt: Prompt, messages: Sequence[Message]) -> TokenStream | None:
    """All documents as they stand in the prompt made of the messages; None where that cannot be told."""
    end, n_prefix = documents_end(prompt, messages), len(cache.prefix)
    if end is None or prompt.tokens[:n_prefix] != cache.prefix or prompt.tokens[end:] != cache.frame.after:
        return None
    return TokenStream(array("i", prompt.tokens[n_prefix:end]), cache.space, EXACT)


def documents_end(prompt: Prompt, messages: Sequence[Message]) -> int | None:
    """Tokens of the prompt up to the documents' end, the same for every task; None where none can tell."""
    n_fragments = [sum(map(bool, message.content)) for message in messages]
    if len(prompt.content) != sum(n_fragments) or not n_fragments[1]:
        return None
    return prompt.content[n_fragments[0] + n_fragments[1] - 1][1]


def restored_whole(cache: Cache, stream: TokenStream) -> Placed | None:
    """How the stream of all documents is put in; what of it is not kept yet is prefilled then, and kept.

    None where nothing could be kept for the next question; that the store's limit is why is noted. A
    conversation keeps it in memory where there is no store.
    """
    run, codec = cache.run, cache.exact_codec(stream.n_tokens)
    encoding = cache.encoding(codec)
    is_missing = cache.kept.n_leading(stream.ids, codec) < stream.n_runs
    if is_missing:
        if not cache.kept.can_write and run.dialogue is None:
            return None
        problem = too_much_for_the_store(cache, stream.n_tokens, encoding.codec)
        if problem is not None:
            run.note(f"{problem} (--store-limit): each question reads all anew")
            return None

    def prefill(context: KVContext) -> bool:
        with timed(run.timings, "prefill_ms"):
            done = prefill_rest(cache, context, run.readings, stream, encoding, codec)
        run.n_evaluated += done.n_evaluated
        return done.is_complete

    def arrange(context: KVContext) -> Layout:
        there = cache.kept.load(stream.ids, codec)
        absent = tuple(
            span for span, run_id in zip(stream.spans, stream.ids, strict=True) if run_id not in there
        )
        whole = StoredTokens(0, 0, tuple(stream.tokens), absent)
        return fitted(cache, context, [whole], keeps_passages=False)

    n_read = tuple(reading.n_tokens for reading in run.readings)
    n_tokens, missing = len(cache.prefix) + stream.n_tokens, prefill if is_missing else None
    return Placed((), n_tokens, n_read, arrange, [[stream]], prefill=missing)
