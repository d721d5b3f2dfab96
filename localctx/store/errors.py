"""The store cannot be used, or not any further. What was committed before stays."""

from __future__ import annotations

from localctx.errors import LocalctxError

__all__ = ["StoreBusy", "StoreUnusable", "TooLarge"]


class StoreUnusable(LocalctxError):
    """The store cannot be read or written (permissions, a full disk, another version, damage).

    A run goes on without it after one warning; the store's own commands show it as their error.
    """


class StoreBusy(StoreUnusable):
    """Another process kept the catalogue locked for longer than anything here takes."""


class TooLarge(StoreUnusable):
    """One thing is larger than all of its kind may be; others may still be kept."""
