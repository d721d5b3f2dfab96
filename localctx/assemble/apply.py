"""A Layout put into a context: the one place that changes one. Knows stored runs only by a callable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from localctx.assemble.layout import Layout, Stretch
from localctx.kv import KVContext, KVPart, KVSource

__all__ = ["RunOf", "apply", "parts_of"]

RunOf: TypeAlias = Callable[[int | None, int], tuple[KVSource, int]]
"""(document, token of its stream) → the run that holds it, and its row there; document None is the prefix."""


def apply(context: KVContext, layout: Layout, run_of: RunOf) -> int:
    """Put the layout's restored tokens into the context, evaluating in place what stands between them.

    A generate() whose prompt begins with the layout's tokens evaluates the rest. Returns the number of tokens
    evaluated here. Raises what run_of and the context raise.
    """
    parts = [part for stretch in layout.restored for part in parts_of(stretch, run_of)]
    return context.place(layout.tokens[: layout.n_placed], parts) if parts else 0


def parts_of(stretch: Stretch, run_of: RunOf) -> Iterator[KVPart]:
    """The stretch cut where its document's runs end."""
    at, end = stretch.first, stretch.first + stretch.n_tokens
    while at < end:
        source, row = run_of(stretch.document, at)
        n_tokens = min(end - at, source.n_tokens - row)
        yield KVPart(source, row, n_tokens, stretch.position + at - stretch.first)
        at += n_tokens
