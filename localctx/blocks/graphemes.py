"""Grapheme clusters (UAX 29) near one place of a text. Looks around that place only, never over the whole."""

from __future__ import annotations

import regex

__all__ = ["is_boundary", "last_boundary"]

LOOK_BACK = 2048

_CLUSTER = regex.compile(r"\X")
_JOINS_NEXT = regex.compile(r"\p{Grapheme_Cluster_Break=Prepend}")
# A character that always begins a cluster, whatever stands further back. Pictographs are left out because
# a joiner may stand before them, and letters after Extend because of conjuncts.
_SURE_START = regex.compile(
    r"(?r)(?<=[^\p{Grapheme_Cluster_Break=Prepend}\p{Grapheme_Cluster_Break=Extend}\p{Grapheme_Cluster_Break=ZWJ}])"
    r"[\p{Grapheme_Cluster_Break=Other}--\p{Extended_Pictographic}]",
    regex.V1,
)


def is_boundary(text: str, at: int, start: int = 0) -> bool:
    """Whether no cluster of `text` is split at `at`; `start` <= at is known to be a boundary."""
    if at <= start or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if after < "\x80":
        # ASCII joins what precedes it in two cases only.
        if before < "\x80":
            return not (before == "\r" and after == "\n")
        return _JOINS_NEXT.match(before) is None
    return last_boundary(text, at, start) == at


def last_boundary(text: str, at: int, start: int = 0) -> int:
    """The last boundary at or before `at`; `start` is a boundary."""
    low = max(start, at - LOOK_BACK)
    sure = _SURE_START.search(text, low, at)
    position = sure.start() if sure else low
    # One character past `at` shows whether the cluster goes on.
    for cluster in _CLUSTER.finditer(text, position, min(len(text), at + 1)):
        if cluster.end() > at:
            break
        position = cluster.end()
    return position
