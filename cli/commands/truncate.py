"""`localctx truncate`: the sentences of a document that matter most, within a token budget, on stdout."""

from __future__ import annotations

import sys
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..options import Pages, QuietOptions, ReadOptions, with_options
from ..terminal import note, print_json, write

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.session.condense import Condensed, CondensedCoverage

__all__ = ["register"]


@dataclass(frozen=True, kw_only=True)
class TruncateOptions(ReadOptions):
    """What is read, by whose tokens, and what compares meaning."""

    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder", metavar="NAME|PATH|off", help="Embedding model that compares meaning, as GGUF."
        ),
    ] = None


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("truncate")(with_options(truncate))


def truncate(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file; - is standard input.")],
    read: TruncateOptions,
    output: QuietOptions,
    budget: Annotated[
        int, typer.Option("--budget", metavar="N", help="Most tokens of the text that is left.")
    ],
    question: Annotated[
        str | None,
        typer.Option(
            "--question", "-q", metavar="TEXT", help="Keep what answers this (default: what covers most)."
        ),
    ] = None,
    head: Annotated[
        float | None,
        typer.Option("--head", metavar="SHARE", help="Share of the budget for the first sentences."),
    ] = None,
    tail: Annotated[
        float | None,
        typer.Option("--tail", metavar="SHARE", help="Share of the budget for the last sentences."),
    ] = None,
    pages: Pages = None,
) -> None:
    """Shorten a text to a token budget: whole sentences, in order, never over; loads no weights."""
    from localctx.from_settings import choose_model, open_document_for, open_model_for
    from localctx.registry.selectors import opened_embedder
    from localctx.selection.truncation import Shares
    from localctx.session.condense import check_request, condense
    from localctx.session.condense_embedding import embed_for
    from localctx.session.opening import tokenizer_of

    from ..documents import page_range

    defaults = Shares()
    shares = Shares(defaults.head if head is None else head, defaults.tail if tail is None else tail)
    check_request(budget, question)
    settings, chosen = choose_model(read.flags(), read.config)
    with (
        closing(open_model_for(settings, chosen)) as model,
        open_document_for(file, settings, page_range(pages)) as document,
        opened_embedder(settings) if question is not None else nullcontext() as embedding,
    ):
        embed = embed_for(embedding, question, document.language) if question is not None else None
        warnings = list(document.warnings)
        if isinstance(embed, str):
            warnings.append(f"chosen by words alone: {embed}")
        for warning in [] if output.quiet else warnings:
            note(f"warning: {warning}")
        result = condense(
            document.text,
            tokenizer_of(model),
            budget,
            question=question,
            embed=None if isinstance(embed, str) else embed,
            shares=shares,
            sections=document.sections,
            language=document.language,
        )
        if output.json:
            print_json({**_facts(document, result, budget, question), "warnings": warnings})
            return
        write(result.text + ("\n" if sys.stdout.isatty() and result.text else ""))
        if not output.quiet:
            note(_line(result.coverage))


def _facts(document: Document, result: Condensed, budget: int, question: str | None) -> dict[str, Any]:
    from dataclasses import asdict

    coverage = {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in asdict(result.coverage).items()
    }
    return {
        "schema": "localctx.truncate/1",
        "source": document.source,
        "format": document.format,
        "question": question,
        "budget": budget,
        "text": result.text,
        "tokens": result.n_tokens,
        "spans": [_span(document, start, end) for start, end in result.spans],
        "coverage": coverage,
    }


def _span(document: Document, start: int, end: int) -> dict[str, Any]:
    """Where a stretch of the text stands in the whole."""
    page = document.page_at(start)
    return {
        "start": start,
        "end": end,
        "page": page.number if page else None,
        "page_label": page.label if page else None,
        "heading_path": list(document.heading_path_at(start)),
    }


def _line(coverage: CondensedCoverage) -> str:
    """What was kept, in one line."""
    about = "about " if coverage.is_estimate else ""
    parts = [
        f"kept {coverage.tokens_kept:,} of {about}{coverage.tokens_total:,} tokens",
        f"{coverage.sentences_kept:,} of {coverage.sentences_total:,} sentences",
        f"{coverage.terms:.0%} of the words by weight",
    ]
    if coverage.sections_total:
        parts.append(f"{coverage.sections_kept:,} of {coverage.sections_total:,} sections")
    if coverage.question_words is not None:
        by = " and meaning" if coverage.embedded else ""
        parts.append(f"chosen by words{by}, {coverage.question_words:.0%} of the question's words that occur")
    return " · ".join(parts)
