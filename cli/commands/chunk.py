"""`localctx chunk`: a document's blocks, or its extracted text."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from localctx.errors import UsageError

from ..options import QuietOptions, ReadOptions, with_options
from ..terminal import json_text, note, print_line, write, write_as_is

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.values import Block, BlockKind

__all__ = ["register"]

SPOOL_BYTES = 16 << 20


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("chunk")(with_options(chunk))


def chunk(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file; - is standard input.")],
    read: ReadOptions,
    output: QuietOptions,
    text: Annotated[bool, typer.Option("--text", help="Print the extracted text instead.")] = False,
    tokens: Annotated[
        int, typer.Option("--tokens", metavar="N", help="Target size of a block, in tokens.")
    ] = 128,
    blocks: Annotated[
        str,
        typer.Option("--blocks", metavar="fixed|adaptive", help="Cut by size, or where the topic changes."),
    ] = "fixed",
    pages: Annotated[str | None, typer.Option("--pages", metavar="A-B", help="Only these pages.")] = None,
) -> None:
    """List a document's blocks: span, page, tokens and why each was cut; loads no weights."""
    from localctx.from_settings import open_document_for, settings_for

    from ..documents import page_range

    kind = _kind(blocks)
    if text and output.json:
        raise UsageError("--text and --json exclude each other", "--json lists the blocks of the text")
    settings = settings_for(read.flags(), read.config)
    with open_document_for(file, settings, page_range(pages)) as document:
        if not output.quiet:
            for warning in document.warnings:
                note(f"warning: {warning}")
        if text:
            for piece in document.text.stream():
                write(piece)
        else:
            _print_blocks(document, read, tokens, kind, output.json)


def _kind(name: str) -> BlockKind:
    """The policy of that name."""
    from localctx.settings import nearest
    from localctx.values import BlockKind

    for kind in get_args(BlockKind):
        if name == kind:
            return cast("BlockKind", kind)
    raise UsageError(
        f"--blocks {name!r} is not understood{nearest(name, get_args(BlockKind))}", "fixed or adaptive"
    )


def _print_blocks(
    document: Document, read: ReadOptions, target_tokens: int, kind: BlockKind, as_json: bool
) -> None:
    """The blocks under the chosen model's tokenizer."""
    from localctx.blocks import BlockPolicy, split
    from localctx.from_settings import choose_model, open_model_for

    with closing(open_model_for(*choose_model(read.flags(), read.config))) as model:
        blocks = split(
            document.text,
            model.tokenize,
            target_tokens=target_tokens,
            pages=document.pages,
            sections=document.sections,
            policy=BlockPolicy(kind, document.language, is_table=document.format == "csv"),
        )
        if as_json:
            _print_json(document, blocks)
        else:
            for block in blocks:
                print_line(_line(block))


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


def _print_json(document: Document, blocks: Iterable[Block]) -> None:
    """One object, put together in a temporary file: a failure half-way leaves none, not half of one."""
    head = {"schema": "localctx.chunk/1", "source": document.source, "format": document.format}
    with tempfile.SpooledTemporaryFile(SPOOL_BYTES, "w+", encoding="utf-8") as spool:
        spool.write(json_text(head)[:-1] + ', "blocks": [')
        n_tokens = 0
        for block in blocks:
            n_tokens += block.n_tokens
            spool.write((",\n" if block.index else "\n") + json_text(_facts(block)))
        spool.write(f'\n], "tokens_total": {n_tokens}}}\n')
        spool.seek(0)
        while piece := spool.read(SPOOL_BYTES // 16):
            write_as_is(piece)


def _line(block: Block) -> str:
    page = f" p. {block.page_label or block.page}" if block.page is not None else ""
    path = f"  {' › '.join(block.heading_path)}" if block.heading_path else ""
    span = f"{block.start:>10}-{block.end:<10}"
    return f"{block.index:>6} {span}{page} {block.n_tokens:>5} tokens  {block.cut:<10}{path}"
