"""Grapheme clusters (UAX 29) near one place of a text. Looks around that place only, never over the whole."""

from __future__ import annotations

import regex

__all__ = ["is_boundary", "last_boundary"]

LOOK_BACK = 2048

_CLUSTER = regex.compile(r"\X")
_JOINS_NEXT = regex.compile(r"\p{Grapheme_Cluster_Break=Prepend}")
# A pair that is always cut, whatever stands further back. Pictographs are left out because a joiner may stand
# before them, and letters after Extend because of conjuncts.
_BEFORE = (
    r"[^\p{Grapheme_Cluster_Break=Prepend}\p{Grapheme_Cluster_Break=Extend}\p{Grapheme_Cluster_Break=ZWJ}]"
)
_AFTER = r"[\p{Grapheme_Cluster_Break=Other}--\p{Extended_Pictographic}]"
_SURE_PAIR = regex.compile(_BEFORE + _AFTER, regex.V1)
_LAST_SURE_START = regex.compile(f"(?r)(?<={_BEFORE}){_AFTER}", regex.V1)


def is_boundary(text: str, at: int, start: int = 0) -> bool:
    """Whether no cluster of `text` is split at `at`; `start` <= at is known to be a boundary."""
    if at <= start or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if after < "\x80":
        # ASCII joins what precedes it in two cases only: CR LF, and what stands before a visible character.
        if before < "\x80":
            return not (before == "\r" and after == "\n")
        return after < " " or after == "\x7f" or _JOINS_NEXT.match(before) is None
    return _SURE_PAIR.match(text, at - 1) is not None or last_boundary(text, at, start) == at


def last_boundary(text: str, at: int, start: int = 0) -> int:
    """The last boundary at or before `at`; `start` is a boundary."""
    low = max(start, at - LOOK_BACK)
    sure = _LAST_SURE_START.search(text, low, at)
    position = sure.start() if sure else low
    # One character past `at` shows whether the cluster goes on. A slice, because \X counts flags' letters
    # back to the start of its string.
    for cluster in _CLUSTER.findall(text[position : at + 1]):
        if position + len(cluster) > at:
            break
        position += len(cluster)
    return position
