"""Which way a document is read: pure choice from sizes, with the reason in words.

The seam for stronger ways (streamed store, lazy store): each is one more rung of these ladders.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from localctx.errors import UsageError
from localctx.values import Strategy

__all__ = ["Choice", "choose_ask", "choose_summarize", "round_n_ctx"]

N_CTX_STEP = 256


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy and why it was taken."""

    strategy: Strategy
    why: str


def round_n_ctx(n_tokens: int) -> int:
    """The context size that holds n_tokens, in llama.cpp's steps of 256 cells."""
    return -(-n_tokens // N_CTX_STEP) * N_CTX_STEP


def choose_ask(requested: str, n_needed: int, n_ctx_limit: int) -> Choice:
    """How to answer a question: n_needed tokens hold the whole document, the question and the answer."""
    return _choose(requested, n_needed, n_ctx_limit, "retrieve", ("exact", "retrieve"), "ask")


def choose_summarize(requested: str, n_needed: int, n_ctx_limit: int) -> Choice:
    """How to summarise: exact when the whole document and the points fit, else part by part."""
    allowed: tuple[Strategy, ...] = ("exact", "map-reduce", "condense")
    return _choose(requested, n_needed, n_ctx_limit, "map-reduce", allowed, "summarize")


def _choose(
    requested: str,
    n_needed: int,
    n_ctx_limit: int,
    fallback: Literal["retrieve", "map-reduce"],
    allowed: tuple[Strategy, ...],
    command: str,
) -> Choice:
    """Exact when it fits or was asked for and fits; the requested one; else the fallback."""
    fits = n_needed <= n_ctx_limit
    sizes = f"{n_needed:,} tokens needed, context {n_ctx_limit:,}"
    if requested == "exact" and not fits:
        raise UsageError(
            f"exact attention does not fit: {sizes}",
            f"raise --ctx where the model allows it, or take --strategy {fallback}",
        )
    if requested == "auto":
        return (
            Choice("exact", f"fits the context: {sizes}")
            if fits
            else Choice(fallback, f"does not fit: {sizes}")
        )
    for strategy in allowed:
        if strategy == requested:
            return Choice(strategy, "as asked")
    raise UsageError(
        f"--strategy {requested} is not available for {command} in this version",
        f"one of auto, {', '.join(allowed)}",
    )
