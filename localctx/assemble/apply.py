"""A Layout put into a context: the one place that changes one. Knows stored runs only by a callable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from localctx.assemble.layout import Layout, Stretch
from localctx.kv import KVContext, KVPart, KVSource
from localctx.values import Progress

__all__ = ["RunOf", "apply", "parts_of"]

RunOf: TypeAlias = Callable[[int | None, int], tuple[KVSource, int]]
"""(document, token of its stream) → the run that holds it, and its row there; document None is the prefix."""


def apply(
    context: KVContext,
    layout: Layout,
    run_of: RunOf,
    fresh: Sequence[KVPart] = (),
    on_progress: Progress | None = None,
) -> int:
    """Put the layout's restored tokens and the `fresh` ones into the context, evaluating all others in place.

    `fresh`: KV of tokens that the layout wants evaluated, computed earlier behind just what stands before
    them. A generate() whose prompt begins with the layout's tokens evaluates only the rest, in batches of its
    own: from equal KV it says the same. Returns the number of tokens evaluated here. Raises what run_of and
    the context raise.
    """
    parts = [part for stretch in layout.restored for part in parts_of(stretch, run_of)]
    if layout.is_apart:
        return context.place(layout.tokens, parts, on_progress, apart=fresh)
    return context.place(layout.tokens, [*parts, *fresh], on_progress)


def parts_of(stretch: Stretch, run_of: RunOf) -> Iterator[KVPart]:
    """The stretch cut where its document's runs end."""
    at, end = stretch.first, stretch.first + stretch.n_tokens
    while at < end:
        source, row = run_of(stretch.document, at)
        n_tokens = min(end - at, source.n_tokens - row)
        yield KVPart(source, row, n_tokens, stretch.position + at - stretch.first)
        at += n_tokens
