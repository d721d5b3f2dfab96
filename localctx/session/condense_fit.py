"""Chosen sentences → one text whose tokens, counted on that text, never exceed the budget.

Neighbours stay as they stand; each stretch begins a line of its own, or a paragraph where one begins there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localctx.selection.truncation import TextUnits
from localctx.values import TextSource, Tokenizer

__all__ = ["Fitted", "cut_to", "fit"]

MOST_ROUNDS = 12
CLOSE_ENOUGH = 0.005
"""A budget is used up to this share, or to its last few tokens."""
FEW_TOKENS = 3

Chooser = Callable[[int], "NDArray[np.int64]"]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A text, its tokens, the code points it is made of, and the rows of its sentences."""

    text: str
    n_tokens: int
    spans: tuple[tuple[int, int], ...]
    rows: NDArray[np.int64]


def fit(text: TextSource, tokenize: Tokenizer, units: TextUnits, choose: Chooser, budget: int) -> Fitted:
    """The fullest text found within the budget; empty where no sentence fits.

    choose(room): the rows for so many tokens as the sentences were counted; separators and estimates make the
    difference to what the text has, so `room` is corrected by it.
    """
    best = Fitted("", 0, (), np.zeros(0, np.int64))
    room = budget
    tried: set[int] = set()
    for _ in range(MOST_ROUNDS):
        if room < 1 or room in tried:
            break
        tried.add(room)
        candidate = _joined(text, tokenize, units, choose(room))
        if best.n_tokens < candidate.n_tokens <= budget:
            best = candidate
        missing = budget - candidate.n_tokens
        if 0 <= missing <= max(FEW_TOKENS, CLOSE_ENOUGH * budget):
            break
        counted = int(units.n_tokens[candidate.rows].sum(dtype=np.int64))
        room = min(2 * room, counted + missing) if missing < 0 else min(2 * room, room + max(1, missing // 2))
    return best if best.spans else _shrunk(text, tokenize, units, choose, budget)


def _shrunk(text: TextSource, tokenize: Tokenizer, units: TextUnits, choose: Chooser, budget: int) -> Fitted:
    """Halve the room until the text fits."""
    room = budget
    while room > 1:
        room //= 2
        candidate = _joined(text, tokenize, units, choose(room))
        if candidate.n_tokens <= budget:
            return candidate
    return Fitted("", 0, (), np.zeros(0, np.int64))


def cut_to(text: TextSource, tokenize: Tokenizer, units: TextUnits, row: int, budget: int) -> Fitted:
    """The beginning of one sentence, cut before a word where there is one, else anywhere."""
    start, end = int(units.starts[row]), int(units.ends[row])
    whole = text.read(start, end)
    start += len(whole) - len(whole.lstrip())
    kept = whole.strip()
    while kept and (n_tokens := len(tokenize(kept, True))) > budget:
        shorter = kept[: max(1, len(kept) * budget // n_tokens)] if len(kept) > 1 else ""
        kept = (
            shorter.rpartition(" ")[0] or (shorter if len(shorter) < len(kept) else shorter[:-1])
        ).rstrip()
    if not kept:
        return Fitted("", 0, (), np.zeros(0, np.int64))
    rows = np.array([row], np.int64)
    return Fitted(kept, len(tokenize(kept, True)), ((start, start + len(kept)),), rows)


def _joined(text: TextSource, tokenize: Tokenizer, units: TextUnits, rows: NDArray[np.int64]) -> Fitted:
    """The text of the rows, and what it has."""
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    for first, last in _runs(rows):
        start = int(units.starts[first])
        whole = text.read(start, int(units.ends[last]))
        piece = whole.strip()
        if not piece:
            continue
        start += len(whole) - len(whole.lstrip())
        if pieces:
            pieces.append("\n\n" if units.breaks[first] else "\n")
        pieces.append(piece)
        spans.append((start, start + len(piece)))
    joined = "".join(pieces)
    return Fitted(joined, len(tokenize(joined, True)) if joined else 0, tuple(spans), rows)


def _runs(rows: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """(first, last) of each stretch of neighbouring rows."""
    if not len(rows):
        return
    gaps = np.flatnonzero(np.diff(rows) > 1)
    firsts = [0, *(gaps + 1).tolist()]
    lasts = [*gaps.tolist(), len(rows) - 1]
    for first, last in zip(firsts, lasts, strict=True):
        yield int(rows[first]), int(rows[last])
