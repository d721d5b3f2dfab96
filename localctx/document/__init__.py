"""Path or stream → `Document`: text at rest with page and section spans. Knows neither tokens nor models."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localctx.document.directory import SkippedEntry, walk
    from localctx.document.document import Document
    from localctx.document.formats import FORMATS
    from localctx.document.limits import Limits
    from localctx.document.opening import open_document

__all__ = ["FORMATS", "Document", "Limits", "SkippedEntry", "open_document", "walk"]

_HOMES = {
    "FORMATS": "formats",
    "Document": "document",
    "Limits": "limits",
    "SkippedEntry": "directory",
    "open_document": "opening",
    "walk": "directory",
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that importing the folder costs nothing (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
