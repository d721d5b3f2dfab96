"""Path or stream → `Document`: text at rest with page and section spans. Knows neither tokens nor models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localctx.lazy import lazy_names

if TYPE_CHECKING:
    from localctx.document.directory import SkippedEntry, walk
    from localctx.document.document import Document
    from localctx.document.formats import FORMATS
    from localctx.document.limits import Limits
    from localctx.document.opening import open_document
    from localctx.document.source import Named

__all__ = ["FORMATS", "Document", "Limits", "Named", "SkippedEntry", "open_document", "walk"]

__getattr__ = lazy_names(
    __name__,
    {
        "FORMATS": "formats",
        "Document": "document",
        "Limits": "limits",
        "Named": "source",
        "SkippedEntry": "directory",
        "open_document": "opening",
        "walk": "directory",
    },
)
