"""Which way a document is read: pure choice from sizes, with the reason in words.

How to add a way: one more rung of the ladder (ladder.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from localctx.errors import UsageError
from localctx.session.ladder import STRATEGIES_OF, Facts, chosen, ladder
from localctx.values import Strategy

__all__ = ["STRATEGIES_OF", "Choice", "check_strategy", "choose_ask", "choose_summarize", "round_n_ctx"]

N_CTX_STEP = 256


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy and why it was taken."""

    strategy: Strategy
    why: str


def round_n_ctx(n_tokens: int) -> int:
    """The context size that holds n_tokens, in llama.cpp's steps of 256 cells."""
    return -(-n_tokens // N_CTX_STEP) * N_CTX_STEP


def check_strategy(requested: str, command: str) -> None:
    """Raises UsageError for a strategy that the command does not have."""
    allowed = STRATEGIES_OF[command]
    if requested not in ("auto", *allowed):
        raise UsageError(f"--strategy {requested} is not for {command}", _one_of(allowed))


def _one_of(allowed: tuple[Strategy, ...]) -> str:
    return f"one of auto, {', '.join(allowed)}"


def choose_ask(requested: str, n_needed: int, n_ctx_limit: int, stream: str | None = None) -> Choice:
    """How to answer a question: n_needed tokens hold the whole document, the question and the answer.

    `stream` says why stored KV may answer where the document does not fit; None: only where asked for.
    """
    return _choose("ask", requested, Facts(n_needed, n_ctx_limit, stream))


def choose_summarize(requested: str, n_needed: int, n_ctx_limit: int) -> Choice:
    """How to summarise: exact when the whole document and the points fit, else part by part."""
    return _choose("summarize", requested, Facts(n_needed, n_ctx_limit))


def _choose(command: str, requested: str, facts: Facts) -> Choice:
    """The rung of the ladder that is taken."""
    step = chosen(ladder(command, requested, facts))
    return Choice(step.rung.strategy, step.why)
