"""Which way a document is read: pure choice from sizes, with the reason in words.

How to add a way: one more rung of these ladders.
"""

from __future__ import annotations

from dataclasses import dataclass

from localctx.errors import NotYetAvailable, UsageError
from localctx.values import Strategy

__all__ = ["Choice", "check_strategy", "choose_ask", "choose_summarize", "round_n_ctx"]

N_CTX_STEP = 256
STRATEGIES_OF: dict[str, tuple[Strategy, ...]] = {
    "ask": ("exact", "retrieve", "stream", "condense"),
    "summarize": ("exact", "map-reduce", "condense"),
    "index": ("exact", "stream"),
}
"""The ladder of each command; the second rung is taken when the first does not fit. Of `index`: what for."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy and why it was taken."""

    strategy: Strategy
    why: str


def round_n_ctx(n_tokens: int) -> int:
    """The context size that holds n_tokens, in llama.cpp's steps of 256 cells."""
    return -(-n_tokens // N_CTX_STEP) * N_CTX_STEP


def check_strategy(requested: str, command: str) -> None:
    """Raises UsageError for a strategy that the command does not have, NotYetAvailable for a later one."""
    allowed = STRATEGIES_OF[command]
    if requested == "stream" and requested not in allowed:
        raise NotYetAvailable("--strategy stream is not available yet in this version", _one_of(allowed))
    if requested not in ("auto", *allowed):
        raise UsageError(f"--strategy {requested} is not for {command}", _one_of(allowed))


def _one_of(allowed: tuple[Strategy, ...]) -> str:
    return f"one of auto, {', '.join(allowed)}"


def choose_ask(requested: str, n_needed: int, n_ctx_limit: int, stream: str | None = None) -> Choice:
    """How to answer a question: n_needed tokens hold the whole document, the question and the answer.

    `stream` says why stored KV may answer where the document does not fit; None: only where asked for.
    """
    choice = _choose(requested, n_needed, n_ctx_limit, "ask")
    if requested == "auto" and choice.strategy != "exact" and stream is not None:
        return Choice("stream", f"{choice.why}; {stream}")
    return choice


def choose_summarize(requested: str, n_needed: int, n_ctx_limit: int) -> Choice:
    """How to summarise: exact when the whole document and the points fit, else part by part."""
    return _choose(requested, n_needed, n_ctx_limit, "summarize")


def _choose(requested: str, n_needed: int, n_ctx_limit: int, command: str) -> Choice:
    """Exact when it fits; the requested one; else the command's fallback. The request is a checked one."""
    fallback = STRATEGIES_OF[command][1]
    fits = n_needed <= n_ctx_limit
    sizes = f"{n_needed:,} tokens needed, context {n_ctx_limit:,}"
    if requested == "exact" and not fits:
        raise UsageError(
            f"exact attention does not fit: {sizes}",
            f"raise --ctx where the model allows it, or take --strategy {fallback}",
        )
    for strategy in STRATEGIES_OF[command]:
        if strategy == requested:
            return Choice(strategy, "as asked")
    return (
        Choice("exact", f"fits the context: {sizes}") if fits else Choice(fallback, f"does not fit: {sizes}")
    )
