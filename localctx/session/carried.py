"""KV that the context of the question before left: passages and turns that stand in the next one are put back
from it, at their new places, as they were evaluated there.

It is exported when the answer is complete, so it outlives the context; an answer that was stopped leaves what
was there before. Knows no text and no scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import TypeAlias

from localctx._native import State
from localctx.assemble import NewTokens, Piece, RunOf, StoredTokens
from localctx.kv import KVContext, KVSource, KVSpace

__all__ = ["Carried", "Desk"]

Key: TypeAlias = tuple[str, int, int]
"""A passage: its document's hash, its first token, their number."""
LEAST_TOKENS = 4
"""Of a turn's beginning: fewer in common are no reason to put them back."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What a context is arranged for. space: what its KV depends on · documents: hash of each, by number ·
    history: as in Frame · keeps_passages: whether the next question wants them; no where the store gives
    them back exactly.
    """

    space: KVSpace
    documents: tuple[str, ...]
    history: tuple[tuple[int, ...], ...]
    keeps_passages: bool = True

    def key(self, piece: StoredTokens) -> Key:
        """The passage's name."""
        return self.documents[piece.document], piece.first, len(piece.tokens)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where in the context arranged last things stand: passages, the header line before each, and the parts
    of the history with the task as the last one. rows_from: the first position worth keeping.
    """

    space: KVSpace
    passages: dict[Key, int]
    headers: dict[Key, tuple[int, ...]]
    parts: tuple[int, ...]
    rows_from: int


@dataclass(frozen=True, slots=True)
class _Left:
    """The rows of `state` are the positions from plan.rows_from on, where `tokens` stand."""

    plan: _Plan
    state: State
    tokens: tuple[int, ...]


class Carried:
    """Use arrange() for a context, finder() to fill it, take() when its answer is complete."""

    def __init__(self) -> None:
        self._left: _Left | None = None
        self._plan: _Plan | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be put back."""
        return self._left is None

    @property
    def n_tokens(self) -> int:
        """Tokens that the context held at the end of the last answer."""
        return 0 if self._left is None else self._left.plan.rows_from + len(self._left.tokens)

    def clear(self) -> None:
        """Forget all."""
        self._left = self._plan = None

    def holds(self, space: KVSpace, key: Key) -> bool:
        """Whether the passage can be put back."""
        left = self._left
        return left is not None and left.plan.space == space and key in left.plan.passages

    def arrange(self, desk: Desk, pieces: Sequence[Piece]) -> list[Piece]:
        """The pieces and the history behind them, for lay_out(): what can be put back is a piece of one
        document more, whose number is that of the documents.
        """
        left = self._left if self._left is not None and self._left.plan.space == desk.space else None
        arranged = _passages(desk, pieces, left)
        for part in desk.history:
            arranged += _part(part, left, len(desk.documents))
        self._plan = _planned(desk, pieces)
        return arranged

    def finder(self, find_run: RunOf, n_documents: int) -> RunOf:
        """find_run, which also knows the one document more."""
        left = self._left

        def find(document: int | None, token: int) -> tuple[KVSource, int]:
            if left is not None and document == n_documents:
                return left.state, token
            return find_run(document, token)

        return find

    def take(self, context: KVContext) -> None:
        """Export what the context holds, arranged before; nothing where that is no more than was asked."""
        plan, held = self._plan, context.held_tokens
        self._plan = None
        if plan is None or len(held) <= plan.rows_from:
            return
        self._left = _Left(plan, context.export(plan.rows_from, len(held)), held[plan.rows_from :])


def _passages(desk: Desk, pieces: Sequence[Piece], left: _Left | None) -> list[Piece]:
    """The pieces, those from the context before put back, header lines with the passages behind them."""
    if left is None:
        return list(pieces)
    arranged: list[Piece] = []
    for piece, behind in zip_longest(pieces, pieces[1:]):
        passage = piece if isinstance(piece, StoredTokens) else behind
        key = desk.key(passage) if isinstance(passage, StoredTokens) else None
        if key is None or key not in left.plan.passages:
            arranged.append(piece)
            continue
        row, header = left.plan.passages[key], left.plan.headers[key]
        if isinstance(piece, StoredTokens):
            arranged.append(StoredTokens(len(desk.documents), row, piece.tokens))
        elif piece.tokens == header:
            arranged.append(StoredTokens(len(desk.documents), row - len(header), header))
        else:
            arranged.append(piece)
    return arranged


def _part(part: tuple[int, ...], left: _Left | None, number: int) -> list[Piece]:
    """A part of the history: as much of its beginning as one that stood there has, and the rest anew."""
    best, n_best = 0, 0
    if left is not None:
        for row in left.plan.parts:
            n_shared = _n_shared(part, left.tokens[row : row + len(part)])
            if n_shared > n_best:
                best, n_best = row, n_shared
    if n_best < LEAST_TOKENS:
        return [NewTokens(part)]
    stored = StoredTokens(number, best, part[:n_best])
    return [stored, NewTokens(part[n_best:])] if n_best < len(part) else [stored]


def _n_shared(one: Sequence[int], other: Sequence[int]) -> int:
    """The length of the beginning that both have."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _planned(desk: Desk, pieces: Sequence[Piece]) -> _Plan:
    """Where things will stand, in rows: counted from the first position that is kept."""
    n_prefix, n_body = len(desk.space.prefix), sum(len(piece.tokens) for piece in pieces)
    rows_from = n_prefix if desk.keeps_passages else n_prefix + n_body
    passages: dict[Key, int] = {}
    headers: dict[Key, tuple[int, ...]] = {}
    at, header = 0, tuple[int, ...]()
    for piece in pieces if desk.keeps_passages else ():
        if isinstance(piece, StoredTokens):
            passages[desk.key(piece)], headers[desk.key(piece)] = at, header
        header = piece.tokens if isinstance(piece, NewTokens) else ()
        at += len(piece.tokens)
    ends = accumulate((len(part) for part in desk.history), initial=at)
    return _Plan(desk.space, passages, headers, tuple(ends), rows_from)
