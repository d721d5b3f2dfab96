"""The ways of answering that are compared, by name. Names only."""

from __future__ import annotations

__all__ = [
    "BOUND",
    "DEFAULT_MODES",
    "EXACT",
    "MODES",
    "ORACLE_STORED",
    "RANKS",
    "REFRESH",
    "RETRIEVE",
    "SELECT",
    "STREAM",
]

RANKS = ("lexical", "dense", "landmarks", "lexical+dense", "lexical+landmarks", "fused")
EXACT, BOUND, ORACLE_STORED, RETRIEVE = "exact", "oracle-text", "oracle-stored", "retrieve"
SELECT = "select"
STREAM = "stream-"
MODES = (EXACT, BOUND, ORACLE_STORED, *(f"{STREAM}{rank}" for rank in RANKS), RETRIEVE, SELECT)
"""oracle-text: the right blocks and as many others, all evaluated again · oracle-stored: the same from the
store · stream-R: blocks chosen by `--kv rank=R` · retrieve: blocks chosen as `ask` chooses, read as text ·
select: nothing is asked, selectors are ranked alone.
"""
DEFAULT_MODES = MODES[:-2]
REFRESH = "33%"
"""Of what is restored: `auto` would follow the machine's speed, and scores would too."""
