"""Which settings of `--kv` cannot stand together; each alone is checked where it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localctx.errors import UsageError

if TYPE_CHECKING:
    from localctx.kv_settings import KVSettings

__all__ = ["check_together"]


def check_together(settings: KVSettings) -> None:
    """Raises UsageError, in one line, for the first two that cannot."""
    if settings.sinks and settings.policy == "independent":
        raise UsageError("--kv sinks: with policy=independent nothing else is attended", "policy=window")
    for key in ("routed", "stride"):
        if getattr(settings, key) and settings.policy != "window":
            raise UsageError(
                f"--kv {key}: with policy={settings.policy} no text leaves the window", "policy=window"
            )
    if settings.attn_layers is not None and "landmarks" not in settings.rank:
        raise UsageError(
            f"--kv attn_layers: rank={'+'.join(settings.rank)} asks no heads", "rank=lexical+landmarks"
        )
