"""An arranged layout into a context, and the answer decoded behind it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

from localctx.assemble import Budget, Layout, Piece, RunOf, apply, lay_out
from localctx.kv import KVContext
from localctx.session.cache import Cache
from localctx.session.decoding import Decoded, decode_one
from localctx.session.events import Event
from localctx.session.opening import timed
from localctx.session.prefill import ensure_prefix
from localctx.session.reading import Passage

__all__ = ["Placed", "decode_placed", "fitted"]


@dataclass(frozen=True, slots=True)
class Placed:
    """Passages on their way into a context.

    n_tokens: of prefix and passages, evaluated or not · n_read: tokens of each document whose KV is at hand ·
    arrange(context): what stands where; asked when the context is open, since what can be afforded depends on
    its speed · find_run: the runs of what is restored.
    """

    passages: tuple[Passage, ...]
    n_tokens: int
    n_read: tuple[int, ...]
    arrange: Callable[[KVContext], Layout]
    find_run: RunOf


def fitted(cache: Cache, context: KVContext, pieces: Iterable[Piece]) -> Layout:
    """The pieces behind the prefix, within what the context leaves beside question and answer."""
    n_answer = cache.run.settings.max_tokens
    budget = Budget(context.n_ctx, len(cache.prefix), len(cache.frame.suffix), n_answer)
    return lay_out(cache.prefix, pieces, budget, prefix_is_stored=cache.has_prefix)


def decode_placed(cache: Cache, placed: Placed, n_ctx: int) -> Generator[Event, None, Decoded]:
    """Fill a context of n_ctx tokens and answer in it. Raises NotComposable before anything is said."""
    run = cache.run
    with cache.context(n_ctx) as context:
        run.n_evaluated += ensure_prefix(cache, context)
        with timed(run.timings, "assemble_ms"):
            layout = placed.arrange(context)
            run.n_evaluated += apply(context, layout, placed.find_run)
        run.n_restored += layout.n_restored
        prompt = cache.frame.prompt(layout.tokens[len(cache.prefix) :])
        request = run.request_of(prompt, run.settings.max_tokens)
        yield from run.unheard()
        before_ms = run.timings.prefill_ms
        decoded = yield from decode_one(context, request, run.timings, run.started, run.listen)
        cache.note_rate(decoded.n_evaluated, (run.timings.prefill_ms - before_ms) / 1000)
        return decoded
