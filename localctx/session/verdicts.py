"""Whether a model's answers from stored KV were found as good as exact ones, as the store remembers it.

`localctx verify` writes the verdict; without one, `auto` does not take the strategy by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localctx.kv_settings import CODEC_NAMES

__all__ = ["VERDICT_FACT", "codec_of", "passes", "why_not_by_itself"]

VERDICT_FACT = "verdict"
"""The name of the fact in the store's table of models: {"stream": {"passes": true, "codec": "int4"}, ...}."""


def passes(facts: Mapping[str, Any], mode: str = "stream") -> bool | None:
    """The verdict on a mode among a model's facts; None without one."""
    value = _mode(facts, mode).get("passes")
    return value if isinstance(value, bool) else None


def codec_of(facts: Mapping[str, Any], mode: str = "stream") -> str | None:
    """The smallest codec that was found good enough; None without one."""
    value = _mode(facts, mode).get("codec")
    return value if value in CODEC_NAMES else None


def _mode(facts: Mapping[str, Any], mode: str) -> Mapping[str, Any]:
    """What the verdict says of a mode; nothing where it is not understood."""
    verdict = facts.get(VERDICT_FACT)
    found = verdict.get(mode) if isinstance(verdict, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def why_not_by_itself(facts: Mapping[str, Any], model: str) -> str | None:
    """Why `auto` leaves stored KV alone; None when it may take it."""
    verdict = passes(facts)
    if verdict:
        return None
    found = "has no verdict yet" if verdict is None else "did not pass its check"
    return f"{model} {found} on answers from stored KV; --strategy stream takes it all the same"
