"""Whether a model's answers from stored KV were found as good as exact ones, as the store remembers it.

`localctx verify` writes the verdict; without one, `auto` does not take the strategy by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["VERDICT_FACT", "passes", "why_not_by_itself"]

VERDICT_FACT = "verdict"
"""The name of the fact in the store's table of models: {"stream": {"passes": true, ...}, ...}."""


def passes(facts: Mapping[str, Any], mode: str = "stream") -> bool | None:
    """The verdict on a mode among a model's facts; None without one."""
    verdict = facts.get(VERDICT_FACT)
    found = verdict.get(mode) if isinstance(verdict, Mapping) else None
    value = found.get("passes") if isinstance(found, Mapping) else None
    return value if isinstance(value, bool) else None


def why_not_by_itself(facts: Mapping[str, Any], model: str) -> str | None:
    """Why `auto` leaves stored KV alone; None when it may take it."""
    verdict = passes(facts)
    if verdict:
        return None
    found = "has no verdict yet" if verdict is None else "did not pass its check"
    return f"{model} {found} on answers from stored KV; --strategy stream takes it all the same"
