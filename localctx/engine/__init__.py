"""Token ids to logits and back: the only folder that knows llama.cpp. Knows no documents, no disk layout."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localctx.engine.echo import EchoModel
    from localctx.engine.llama import open_model
    from localctx.engine.options import EngineOptions

__all__ = ["EchoModel", "EngineOptions", "open_model"]

_HOMES = {
    "EchoModel": "localctx.engine.echo",
    "EngineOptions": "localctx.engine.options",
    "open_model": "localctx.engine.llama",
}


def __getattr__(name: str) -> Any:
    """Load on first use, so that importing the package stays light (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'localctx.engine' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
