"""documents + model + question → answer: the verbs, and the only place that joins stages. Shows nothing.

How to add a strategy
    1. Add its rung to the ladder in `strategy.py`: when it is chosen and why.
    2. Give the verb a function that makes its filling (what goes into the context, and which passages).
    3. Say in the coverage what was read and attended.
    4. Name it in docs/cli.md and CHANGELOG.md; test it with the echo engine and with a real tiny model.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ask", "summarize"]


def __getattr__(name: str) -> Any:
    """Load a verb on first use: importing the session's values stays cheap."""
    if name not in __all__:
        raise AttributeError(f"module 'localctx.session' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"localctx.session.{name}"), name)
