"""Greedy packing of segments into blocks of a target token count. Knows text only as what it adds up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from localctx.blocks.boundaries import Rank
from localctx.blocks.segments import Segment

__all__ = ["Packer", "Sizes"]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of a block: aimed at, fewest unless a section is smaller, most."""

    target: int
    min: int
    max: int

    @property
    def segment_limit(self) -> int:
        """Most tokens of a segment such that some cut always falls in [min, max]."""
        return min(self.max, self.max - self.min + 1)


class Packer:
    """Collects segments, each of at most `sizes.segment_limit`, and gives groups of at most `sizes.max`.

    A group is a list of segments and the rank of the cut that ended it.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._waiting: list[Segment] = []
        self._weight = 0

    @property
    def waiting(self) -> list[Segment]:
        """Segments not yet given out; not to be changed."""
        return self._waiting

    def add(self, segment: Segment) -> Iterator[tuple[list[Segment], Rank]]:
        """Take a segment; a group is complete once enough follows it that no small rest remains."""
        self._waiting.append(segment)
        self._weight += segment.weight
        while self._weight >= self._sizes.max + max(1, self._sizes.min):
            yield self._cut()

    def flush(self, rank: Rank | None) -> Iterator[tuple[list[Segment], Rank | None]]:
        """Give out all that waits; the last group ends with `rank`, None at the end of the text."""
        while self._weight > self._sizes.max:
            yield self._cut()
        if self._waiting:
            group, self._waiting, self._weight = self._waiting, [], 0
            yield group, rank

    def _cut(self) -> tuple[list[Segment], Rank]:
        """Cut at the best rank between min and max, the nearest to the target among equals."""
        sizes = self._sizes
        highest = min(sizes.max, max(sizes.min, self._weight - sizes.min))
        best, best_key, fallback = 0, (-1, 0), 1
        weight = 0
        for index, segment in enumerate(self._waiting):
            if index and weight > sizes.max:
                break
            if index:
                fallback = index
                key = (int(segment.rank), -abs(weight - sizes.target))
                if sizes.min <= weight <= highest and key > best_key:
                    best, best_key = index, key
            weight += segment.weight
        return self._take(best or fallback)

    def _take(self, count: int) -> tuple[list[Segment], Rank]:
        """Give out so many segments, fewer than wait."""
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        self._weight -= sum(segment.weight for segment in group)
        return group, self._waiting[0].rank
