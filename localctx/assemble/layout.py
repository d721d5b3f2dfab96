"""Pieces in order → what stands where in a context, what of it is restored and what is evaluated. Pure.

Knows no store, no engine and no text: a document is a number, its tokens are addressed by their place in its
token stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from localctx.errors import UsageError

__all__ = ["PREFIX", "Budget", "Layout", "NewTokens", "Piece", "StoredTokens", "Stretch", "lay_out"]

PREFIX = None
"""The document number of the prefix, whose KV is kept like a document's."""

Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class NewTokens:
    """Tokens that no store has (a header line): evaluated where they stand."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StoredTokens:
    """Tokens [first, first + len(tokens)) of a document's stream, restored but for the `refresh` spans.

    `refresh` spans are half-open ranges of the document's stream, in any order; what of them lies outside the
    piece is ignored.
    """

    document: int
    first: int
    tokens: tuple[int, ...]
    refresh: tuple[Span, ...] = ()


Piece: TypeAlias = NewTokens | StoredTokens


@dataclass(frozen=True, slots=True)
class Stretch:
    """Tokens [first, first + n_tokens) of a document (PREFIX: of the prefix), restored at `position`."""

    document: int | None
    first: int
    n_tokens: int
    position: int


@dataclass(frozen=True, slots=True)
class Budget:
    """Cells of a context, and what is spoken for: prefix, question (`n_suffix`) and answer."""

    n_ctx: int
    n_prefix: int
    n_suffix: int
    n_answer: int

    @property
    def room(self) -> int:
        """Tokens left for pieces; negative when not even the question fits."""
        return self.n_ctx - self.n_prefix - self.n_suffix - self.n_answer


@dataclass(frozen=True, slots=True)
class Layout:
    """`tokens` stand at positions 0, 1 …; the stretches of them are restored, all others evaluated.

    Stretches are in order and do not overlap. The question follows `tokens`. `ends`: (document, position
    behind it) of each piece of a document, in order. is_apart: only new tokens are evaluated, header lines
    as a rule, and none of them needs to see another.
    """

    tokens: tuple[int, ...]
    restored: tuple[Stretch, ...]
    ends: tuple[tuple[int, int], ...] = ()
    is_apart: bool = False

    @property
    def n_restored(self) -> int:
        """Tokens put back from the store."""
        return sum(stretch.n_tokens for stretch in self.restored)

    @property
    def n_evaluated(self) -> int:
        """Tokens evaluated in place."""
        return len(self.tokens) - self.n_restored

    @property
    def evaluated(self) -> tuple[Span, ...]:
        """Half-open ranges of positions that are evaluated, in order."""
        return tuple(self._gaps())

    def _gaps(self) -> Iterator[Span]:
        at = 0
        for stretch in self.restored:
            if stretch.position > at:
                yield at, stretch.position
            at = stretch.position + stretch.n_tokens
        if at < len(self.tokens):
            yield at, len(self.tokens)


def lay_out(
    prefix: Sequence[int], pieces: Iterable[Piece], budget: Budget, *, prefix_is_stored: bool = True
) -> Layout:
    """The prefix, then the pieces in order. Raises UsageError when they do not fit the budget."""
    tokens: list[int] = list(prefix)
    restored: list[Stretch] = []
    ends: list[tuple[int, int]] = []
    is_apart = prefix_is_stored or not prefix
    if prefix_is_stored and prefix:
        restored.append(Stretch(PREFIX, 0, len(prefix), 0))
    for piece in pieces:
        if isinstance(piece, StoredTokens):
            kept = list(_kept(piece))
            is_apart &= kept == [(piece.first, piece.first + len(piece.tokens))]
            for start, end in kept:
                at = len(tokens) + start - piece.first
                _add(restored, Stretch(piece.document, start, end - start, at))
        tokens.extend(piece.tokens)
        if isinstance(piece, StoredTokens):
            ends.append((piece.document, len(tokens)))
    n_body = len(tokens) - len(prefix)
    if n_body > budget.room:
        raise UsageError(
            f"{n_body:,} tokens of passages, room for {max(budget.room, 0):,}: context of {budget.n_ctx:,}",
            "raise --ctx, or lower --max-tokens or --kv budget",
        )
    return Layout(tuple(tokens), tuple(restored), tuple(ends), is_apart)


def _add(restored: list[Stretch], stretch: Stretch) -> None:
    """Append the stretch, joined to the last one where it goes on in the document and the context alike."""
    if restored:
        last = restored[-1]
        goes_on = (last.document, last.first + last.n_tokens, last.position + last.n_tokens)
        if goes_on == (stretch.document, stretch.first, stretch.position):
            restored[-1] = Stretch(last.document, last.first, last.n_tokens + stretch.n_tokens, last.position)
            return
    restored.append(stretch)


def _kept(piece: StoredTokens) -> Iterator[Span]:
    """The spans of the piece that are not evaluated again, in stream positions."""
    at, high = piece.first, piece.first + len(piece.tokens)
    for first, last in sorted(piece.refresh):
        start, end = max(first, at), min(last, high)
        if start >= end:
            continue
        if start > at:
            yield at, start
        at = end
    if at < high:
        yield at, high
