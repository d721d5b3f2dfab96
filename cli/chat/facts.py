"""What is said of a chat in lines: coverage, a cited passage in its context, counts, the status line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from localctx.document.pages import page_name

from ..answer_lines import counted
from .chat import Chat

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.session.answer import Answer
    from localctx.session.provenance import Citation

__all__ = ["coverage_lines", "passage_lines", "stats_lines", "status_line"]

CONTEXT_CODE_POINTS = 300
"""Shown on each side of a cited passage."""


def coverage_lines(answer: Answer) -> Iterator[str]:
    """What was read for an answer, in all and of each document."""
    coverage = answer.coverage
    yield (
        f"{answer.strategy}: {coverage.tokens_read:,} of {coverage.tokens_total:,} tokens read, "
        f"{coverage.tokens_attended:,} attended, {coverage.tokens_dropped:,} not read; "
        f"support: {answer.support}"
    )
    for one in answer.documents:
        yield (
            f"  {one.source}: {one.coverage.tokens_read:,} of {one.coverage.tokens_total:,} read, "
            f"{one.coverage.tokens_attended:,} attended"
        )


def passage_lines(documents: Sequence[Document], citation: Citation) -> Iterator[str]:
    """A cited passage between what stands before and after it; the quote alone where that is closed."""
    page = page_name(citation.page, citation.page_label)
    yield (
        f"{citation.source}"
        + (f" p. {page}" if page else "")
        + f", characters {citation.start:,} to {citation.end:,}"
    )
    document = next((one for one in documents if one.source == citation.source), None)
    if document is None:
        yield citation.quote
        return
    before = document.read(max(0, citation.start - CONTEXT_CODE_POINTS), citation.start)
    after = document.read(citation.end, citation.end + CONTEXT_CODE_POINTS)
    yield f"{before}»{document.read(citation.start, citation.end)}«{after}".strip()


def stats_lines(chat: Chat) -> Iterator[str]:
    """Tokens and speed of the conversation so far."""
    records = [turn.record for turn in chat.conversation.turns if turn.record]
    evaluated, restored, generated = (
        sum(int(record["tokens"][name]) for record in records)
        for name in ("evaluated", "restored", "generated")
    )
    yield (
        f"{counted(len(chat.conversation.turns), 'question')}; {evaluated:,} tokens evaluated, "
        f"{restored:,} restored, {generated:,} generated"
    )
    if records:
        tokens, timings = records[-1]["tokens"], records[-1]["timings"]
        yield (
            f"last answer: {tokens['evaluated']:,} evaluated, {tokens['restored']:,} restored, "
            "first token after "
            f"{timings['ttft_ms'] / 1000:.1f} s, {timings['decode_tokens_per_s']:.1f} tokens/s"
        )
    if chat.saved is not None:
        yield f"kept in {chat.saved.path}"


def status_line(chat: Chat) -> str:
    """Model, documents and how much of them is read, context used, tokens a second."""
    n_documents = len(chat.library.documents)
    parts = [chat.conversation.model.info.name, f"{n_documents} document{'s' * (n_documents != 1)}"]
    answer = chat.last
    if answer is not None:
        coverage, n_used = answer.coverage, chat.conversation.n_context_tokens
        share = coverage.tokens_read / max(1, coverage.tokens_total)
        parts[-1] += f", {share:.0%} read"
        parts.append(f"context {'' if n_used is None else f'{n_used:,}/'}{answer.n_ctx:,}")
        parts.append(f"{answer.timings.decode_tokens_per_s:.0f} tokens/s")
    return " · ".join(parts)
