"""Packing by what the text says: cuts where the topic changes, dense text in smaller blocks. Knows no words.

Of all ways to cut what waits (some blocks' worth) into blocks within the limits, the one with the best mean
is taken, and its first block given out: a cut now is not taken at the price of a better one behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from localctx.blocks.boundaries import Rank
from localctx.blocks.packing import Packer, Sizes
from localctx.blocks.profile import Profile
from localctx.blocks.segments import Segment

__all__ = ["AdaptivePacker"]

RANK_WEIGHTS = {
    Rank.LIMIT: -4.0,
    Rank.WHITESPACE: -4.0,
    Rank.LINE: -3.0,
    Rank.SENTENCE: 0.0,
    Rank.ROW: 0.0,
    Rank.PARAGRAPH: 0.5,
    Rank.SECTION: 0.5,
}
"""A cut inside a sentence is worse than any size within the limits."""
CHANGE_WEIGHT = 2.0
SIZE_WEIGHT = 1.0
DENSITY_SHARE = 0.35
"""How much smaller the densest blocks are aimed at, and the sparsest larger."""
BLOCKS_AHEAD = 3
NEVER = float("-inf")


class AdaptivePacker(Packer):
    """A Packer that is told each segment's profile before the segment is added."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self._profiles: list[Profile] = []

    def profile(self, profile: Profile) -> None:
        """What is known of the segment that is added next."""
        self._profiles.append(profile)

    def add(self, segment: Segment) -> Iterator[tuple[list[Segment], Rank]]:
        """Take a segment; a group is given out once some blocks' worth of segments follows it."""
        self._waiting.append(segment)
        self._weight += segment.weight
        while self._weight >= BLOCKS_AHEAD * self._sizes.max + max(1, self._sizes.min):
            yield self._give(is_end=False)

    def flush(self, rank: Rank | None) -> Iterator[tuple[list[Segment], Rank | None]]:
        """Give out all that waits; the last group ends with `rank`, None at the end of the text."""
        while self._weight > self._sizes.max:
            yield self._give(is_end=True)
        yield from super().flush(rank)
        self._profiles.clear()

    def _give(self, is_end: bool) -> tuple[list[Segment], Rank]:
        """The first group of the best way to cut all that waits; the fixed policy's where there is none."""
        count = self._first_of_best(is_end)
        group, rank = self._take(count) if count else self._cut()
        del self._profiles[: len(group)]
        return group, rank

    def _first_of_best(self, is_end: bool) -> int:
        """Segments of the first block; 0 where no way keeps the limits. is_end: the last block ends with what
        waits, else its end is open.
        """
        weights = [0, *accumulate(segment.weight for segment in self._waiting)]
        dense = [
            0.0,
            *accumulate(
                profile.density * segment.weight
                for segment, profile in zip(self._waiting, self._profiles, strict=True)
            ),
        ]
        n = len(self._waiting)
        values, firsts = [NEVER] * (n + 1), [0] * (n + 1)
        values[0] = 0.0
        for end in range(1, n + 1):
            for begin in range(end - 1, -1, -1):
                size = weights[end] - weights[begin]
                if size > self._sizes.max:
                    break
                if size < self._sizes.min or values[begin] == NEVER:
                    continue
                wanted = self._sizes.target * (1 - DENSITY_SHARE * (dense[end] - dense[begin]) / max(1, size))
                off = (size - wanted) / self._sizes.target
                value = values[begin] + size * (self._worth(end) - SIZE_WEIGHT * off * off)
                if value > values[end]:
                    values[end], firsts[end] = value, firsts[begin] or end
        if is_end:
            return firsts[n]
        open_ends = [
            end for end in range(1, n) if values[end] > NEVER and weights[n] - weights[end] <= self._sizes.max
        ]
        return firsts[max(open_ends, key=lambda end: values[end] / max(1, weights[end]))] if open_ends else 0

    def _worth(self, place: int) -> float:
        """How good a cut before the waiting segment is."""
        if place == len(self._waiting):
            return 0.0
        return RANK_WEIGHTS[self._waiting[place].rank] + CHANGE_WEIGHT * self._profiles[place].change
