"""Token ids to logits and back: the only folder that knows llama.cpp. Knows no documents, no disk layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localctx.lazy import lazy_names

if TYPE_CHECKING:
    from localctx.engine.echo import EchoModel
    from localctx.engine.llama import open_model
    from localctx.engine.options import DeviceOptions, EngineOptions, RopeOptions

__all__ = ["DeviceOptions", "EchoModel", "EngineOptions", "RopeOptions", "open_model"]

__getattr__ = lazy_names(
    __name__,
    {
        "DeviceOptions": "options",
        "EchoModel": "echo",
        "EngineOptions": "options",
        "RopeOptions": "options",
        "open_model": "llama",
    },
)
