"""Streaming text to segments, the parts that are tokenised once and then packed. Knows no pages, no files.

The text is read in windows whose ends depend on the text alone, so the segments are the same however the
stream is cut into pieces. Memory: two windows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from localctx.blocks.boundaries import RUN_LOOK, Rank, candidate_cuts
from localctx.blocks.pieces import split_long
from localctx.errors import UsageError
from localctx.values import Tokenizer

__all__ = ["CODE_POINTS_PER_TOKEN", "Segment", "SegmentReader", "SpellingTokenizer"]

WINDOW = 65_536
MARGIN = 4 * RUN_LOOK
"""Code points kept as context behind the last cut taken in a window."""
CODE_POINTS_PER_TOKEN = 4
"""Longest text given to the tokenizer at once, per token of a segment's limit."""
GROUP_CODE_POINTS = 8192
"""Parts tokenised in one call, where the tokens' spelling tells where each part ends: a call for each would
take twice the time.
"""
CODE_POINTS_PER_WEIGHT = 64
"""More code points than this count as a further token, so blank or endless words cannot grow a block."""


@dataclass(frozen=True, slots=True)
class SpellingTokenizer:
    """A tokenizer that tells what its tokens spell: with it, many parts are tokenised in one call.

    piece(token): its text in UTF-8, or the part of a character that it stands for.
    """

    tokenize: Tokenizer
    piece: Callable[[int], bytes]

    def __call__(self, text: str, first: bool) -> Sequence[int]:
        """See values.Tokenizer."""
        return self.tokenize(text, first)


@dataclass(frozen=True, slots=True)
class Segment:
    """Text between two neighbouring cuts with its token ids; `rank` is that of the cut before it.

    `weight` is the token count, or more where a token stands for very many code points.
    """

    start: int
    text: str
    tokens: tuple[int, ...]
    rank: Rank
    weight: int


class SegmentReader:
    """Reads segments of at most `limit` tokens from the pieces of a text that begins at `start`."""

    def __init__(
        self,
        tokenize: Tokenizer,
        limit: int,
        section_edges: Sequence[int],
        after_line_breaks: bool,
        *,
        is_table: bool = False,
    ) -> None:
        self._sizes = _Sizes(tokenize.piece) if isinstance(tokenize, SpellingTokenizer) else None
        self._tokenize = tokenize
        self._limit = limit
        self._size = limit * CODE_POINTS_PER_TOKEN
        self._edges = section_edges
        self._after = after_line_breaks
        self._is_table = is_table

    def segments(self, pieces: Iterable[str], start: int) -> Iterator[Segment]:
        """Segments in order; their texts concatenate to the pieces'."""
        at = start
        for text, rank, tokens in self._tokenised_parts(pieces, start):
            known = [(text, rank, tokens)] if tokens is not None and len(tokens) <= self._limit else None
            for part, part_rank, part_tokens in known or self._tokenised(text, rank, first=at == 0):
                weight = max(len(part_tokens), 1 + (len(part) - 1) // CODE_POINTS_PER_WEIGHT)
                yield Segment(at, part, part_tokens, part_rank, weight)
                at += len(part)

    def _tokenised_parts(
        self, pieces: Iterable[str], start: int
    ) -> Iterator[tuple[str, Rank, tuple[int, ...] | None]]:
        """The parts, with their tokens where those of a group of parts could be told apart."""
        group: list[tuple[str, Rank]] = []
        n_before = n_code_points = 0
        for text, rank in self._parts(pieces, start):
            if group and (n_code_points + len(text) > GROUP_CODE_POINTS or len(text) > self._size):
                yield from self._together(group, first=start + n_before == 0)
                group, n_before, n_code_points = [], n_before + n_code_points, 0
            group.append((text, rank))
            n_code_points += len(text)
        yield from self._together(group, first=start + n_before == 0)

    def _together(
        self, group: Sequence[tuple[str, Rank]], first: bool
    ) -> Iterator[tuple[str, Rank, tuple[int, ...] | None]]:
        """Tokenise neighbouring parts in one call; None for parts at whose edges no token ends."""
        ends: list[int] = []
        if self._sizes is not None and len(group) > 1:
            tokens = self._tokenize("".join(text for text, _ in group), first)
            ends = list(accumulate(map(self._sizes.__getitem__, tokens)))
        edges = list(accumulate(len(text.encode("utf-8", "replace")) for text, _ in group))
        if not ends or ends[-1] != edges[-1]:  # no spelling, or one that is not the text's
            yield from ((text, rank, None) for text, rank in group)
            return
        begin: int | None = 0
        for (text, rank), edge in zip(group, edges, strict=True):
            last = bisect_left(ends, edge)
            end = last + 1 if ends[last] == edge else None
            yield text, rank, tuple(tokens[begin:end]) if begin is not None and end is not None else None
            begin = end

    def _parts(self, pieces: Iterable[str], start: int) -> Iterator[tuple[str, Rank]]:
        """Text between neighbouring candidate cuts, with the rank of the cut before it."""
        carry, offset, carried = "", start, Rank.SECTION
        for chunk, is_last in _rechunk(pieces, WINDOW):
            window = carry + chunk
            horizon = len(window) if is_last else len(window) - MARGIN
            cuts = candidate_cuts(window, offset, self._edges, self._after, horizon, self._is_table)
            if cuts and cuts[0][0] == 0:
                carried = cuts.pop(0)[1]
            at = 0
            for cut, rank in cuts:
                yield window[at:cut], carried
                at, carried = cut, rank
            carry, offset = window[at:], offset + at
            if is_last:
                if carry:
                    yield carry, carried
            elif len(carry) >= WINDOW:
                # Nothing to cut at in a whole window: its last part stays, as its end is not known.
                *parts, (carry, next_rank) = split_long(carry, self._size, self._after)
                for part, rank in parts:
                    yield part, (carried if rank is Rank.LIMIT and part is parts[0][0] else rank)
                offset += sum(len(part) for part, _ in parts)
                carried = next_rank

    def _tokenised(self, text: str, rank: Rank, first: bool) -> Iterator[tuple[str, Rank, tuple[int, ...]]]:
        """The text with its token ids, cut further until no part has more than the limit."""
        size = self._size
        if len(text) <= size:
            tokens = tuple(self._tokenize(text, first))
            if len(tokens) <= self._limit:
                yield text, rank, tokens
                return
            if len(text) == 1:
                raise UsageError(
                    f"one character ({text!a}) takes {len(tokens)} tokens, a block may hold {self._limit}",
                    "raise the token limit of blocks",
                )
            # Aim below the limit so that the parts rarely need another round.
            size = max(1, min(len(text) - 1, len(text) * self._limit * 7 // (len(tokens) * 8)))
        for index, (part, part_rank) in enumerate(split_long(text, size, self._after)):
            yield from self._tokenised(part, part_rank if index else rank, first and index == 0)


class _Sizes(dict[int, int]):
    """Bytes of each token's text, looked up once."""

    def __init__(self, piece: Callable[[int], bytes]) -> None:
        self._piece = piece

    def __missing__(self, token: int) -> int:
        size = self[token] = len(self._piece(token))
        return size


def _rechunk(pieces: Iterable[str], size: int) -> Iterator[tuple[str, bool]]:
    """The same text in chunks of `size` code points, and whether a chunk is the last (shorter, or empty)."""
    waiting: list[str] = []
    n_waiting = 0
    for piece in pieces:
        at = 0
        while n_waiting + len(piece) - at > size:
            take = at + size - n_waiting
            waiting.append(piece[at:take])
            yield "".join(waiting), False
            waiting, n_waiting, at = [], 0, take
        if at < len(piece):
            waiting.append(piece[at:])
            n_waiting += len(piece) - at
    yield "".join(waiting), True
