"""chosen pieces + budget → `Layout` → a filled context. Does not know where scores came from.

`layout` is pure: what stands where, and what of it is restored or evaluated. `apply` is the one mutator.
"""

from __future__ import annotations

from localctx.assemble.apply import RunOf, apply, n_sweeps_of, parts_of
from localctx.assemble.layout import (
    Budget,
    Layout,
    NewTokens,
    Piece,
    StoredTokens,
    Stretch,
    lay_out,
)
from localctx.assemble.order import BEST_LAST_FROM, best_last
from localctx.assemble.refresh import RefreshCandidate, pick_refresh

__all__ = [
    "BEST_LAST_FROM",
    "Budget",
    "Layout",
    "NewTokens",
    "Piece",
    "RefreshCandidate",
    "RunOf",
    "StoredTokens",
    "Stretch",
    "apply",
    "best_last",
    "lay_out",
    "n_sweeps_of",
    "parts_of",
    "pick_refresh",
]
