"""A span of a document as a citation: the words, and the page and headings they stand under."""

from __future__ import annotations

from localctx.document import Document
from localctx.session.provenance import Citation

__all__ = ["cite"]


def cite(document: Document, start: int, end: int, score: float) -> Citation:
    """The citation of code points [start, end), quoted verbatim."""
    page = document.page_at(start)
    return Citation(
        source=document.source,
        start=start,
        end=end,
        quote=document.read(start, end),
        score=score,
        page=page.number if page else None,
        page_label=page.label if page else None,
        heading_path=document.heading_path_at(start),
    )
