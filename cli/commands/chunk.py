"""`localctx chunk`: a document's blocks, or its extracted text."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..options import LaterOptions, OutputOptions, RunOptions, with_options

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.values import Block

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("chunk")(with_options(chunk))


def chunk(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file; - is standard input.")],
    run: RunOptions,
    later: LaterOptions,
    output: OutputOptions,
    text: Annotated[bool, typer.Option("--text", help="Print the extracted text instead.")] = False,
    tokens: Annotated[
        int, typer.Option("--tokens", metavar="N", help="Target size of a block, in tokens.")
    ] = 128,
    pages: Annotated[str | None, typer.Option("--pages", metavar="A-B", help="Only these pages.")] = None,
) -> None:
    """List a document's blocks: span, page, tokens and why each was cut; loads no weights."""
    from localctx.api import choose_model, open_document_for, open_model_for, settings_for
    from localctx.blocks import split

    from ..documents import page_range
    from ..render import note

    later.refuse_given()
    settings = settings_for(run.flags(), run.config)
    with open_document_for(file, settings, page_range(pages)) as document:
        if not output.quiet:
            for warning in document.warnings:
                note(f"warning: {warning}")
        if text:
            for piece in document.text.stream():
                sys.stdout.write(piece)
            return
        model = open_model_for(*choose_model(run.flags(), run.config))
        try:
            blocks = split(
                document.text,
                model.tokenize,
                target_tokens=tokens,
                pages=document.pages,
                sections=document.sections,
            )
            if output.json:
                _print_json(document, blocks)
            else:
                for block in blocks:
                    print(_line(block))  # noqa: T201  # the command's result
        finally:
            model.close()


def _facts(block: Block) -> dict[str, Any]:
    return {
        "index": block.index,
        "start": block.start,
        "end": block.end,
        "page": block.page,
        "page_label": block.page_label,
        "tokens": block.n_tokens,
        "cut": block.cut,
        "heading_path": list(block.heading_path),
    }


def _print_json(document: Document, blocks: Any) -> None:
    """One object, written block by block so that a document of any size streams."""
    head = {"schema": "localctx.chunk/1", "source": document.source, "format": document.format}
    sys.stdout.write(json.dumps(head, ensure_ascii=False)[:-1] + ', "blocks": [')
    n_tokens = 0
    for block in blocks:
        n_tokens += block.n_tokens
        sys.stdout.write((",\n" if block.index else "\n") + json.dumps(_facts(block), ensure_ascii=False))
    sys.stdout.write(f'\n], "tokens_total": {n_tokens}}}\n')


def _line(block: Block) -> str:
    page = f" p. {block.page_label or block.page}" if block.page is not None else ""
    path = f"  {' › '.join(block.heading_path)}" if block.heading_path else ""
    span = f"{block.start:>10}-{block.end:<10}"
    return f"{block.index:>6} {span}{page} {block.n_tokens:>5} tokens  {block.cut:<10}{path}"
